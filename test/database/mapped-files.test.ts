// A collection in mapped files answers as from memory, and never from a damaged file, whether the
// damage happened before the start or while the database runs.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, it, test } from 'node:test';
import { type Named, valuesOfRows } from '../../src/common/vectors.js';
import type { Database } from '../../src/database/database.js';
import { loadNativeFiles } from '../../src/platform/native-files.js';
import { openStore } from '../../src/storage/open-store.js';
import { makeDirectory } from '../storage/directories.js';
import { eventually } from '../support/waiting.js';
import { batchOf, openDatabase, type TestVector } from './harness.js';

const DIMENSION = 64;
const ROW_COUNT = 200;
const SHAPE = {
  vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
  description: null,
  labels: {},
} as const;

const vector = (i: number): TestVector => ({
  id: `v${i}`,
  values: Array.from({ length: DIMENSION }, (_, j) => Math.sin(i * DIMENSION + j)),
  metadata: `{"i":${i},"kind":"${i % 2 === 0 ? 'even' : 'odd'}"}`,
});
const vectors = Array.from({ length: ROW_COUNT }, (_, i) => vector(i));
const ALL = { includeValues: true, includeMetadata: true };
const DELETE = { dryRun: false };
const query = { vector: Float32Array.from(vectors[150]!.values), topK: 5, includeValues: true };

async function open(directory: string, mapping: 'mapped' | 'memory' = 'mapped') {
  const store = await openStore({ directory, mapping });
  const database = await openDatabase({ store });
  const close = async () => {
    await database.close();
    await store.close();
  };
  return { database, close };
}

const memoryOf = (database: Database) => database.collection('c').record().memory;

/** The collection `c` with three files and some rows in the log, and `other` without files. */
async function fill(directory: string) {
  const opened = await open(directory);
  for (const [id, count] of [
    ['c', ROW_COUNT],
    ['other', 10],
  ] as const) {
    await opened.database.createCollection({ id, ...SHAPE });
    const batch = batchOf(vectors.slice(0, count));
    await opened.database.collection(id).write(batch, { mode: 'upsert' });
  }
  await eventually(
    'the full segments are mapped',
    () => memoryOf(opened.database).mappedBytes > 3 * 64 * DIMENSION * 4,
  );
  return opened;
}

/** The paths of the files of `c`, in the order of its segments. */
function filesIn(directory: string): string[] {
  const paths = readdirSync(join(directory, 'segments'), { recursive: true }) as string[];
  const files = paths.filter((path) => path.endsWith('.arrow')).sort();
  assert.equal(files.length, 3);
  return files.map((path) => join(directory, 'segments', path));
}

/** All answers of the collection. */
async function answersOf(database: Database): Promise<unknown[]> {
  const collection = database.collection('c');
  const chunks = [];
  for (const chunk of (await collection.scan(ALL)).chunks()) {
    const [{ values }] = chunk.vectors as [Named];
    chunks.push({ count: chunk.count, values: Float32Array.from(values) });
  }
  const { timings: _, ...found } = await collection.query({ ...query, filter: { kind: 'even' } });
  return [
    found,
    await collection.fetch(['v0', 'v70', 'v199'], { values: true, metadata: true }),
    await collection.list({ limit: 300, ...ALL }),
    await collection.count({ kind: 'odd' }),
    chunks,
  ];
}

const native = loadNativeFiles();
if (typeof native === 'string') test('mapped files of a database', { skip: native }, () => {});
else {
  describe('a collection in mapped files', () => {
    it('answers as from memory, before and after a restart', async () => {
      const directory = await makeDirectory();
      const first = await fill(directory);
      const expected = JSON.stringify(await answersOf(first.database));
      await first.close();
      for (const mapping of ['mapped', 'memory'] as const) {
        const { database, close } = await open(directory, mapping);
        assert.equal(JSON.stringify(await answersOf(database)), expected, mapping);
        const { hostBytes, mappedBytes } = memoryOf(database);
        const valueBytes = 192 * DIMENSION * 4;
        assert.equal(mappedBytes > valueBytes, mapping === 'mapped');
        assert.equal(hostBytes > valueBytes, mapping === 'memory');
        await close();
      }
    });

    const reads: Record<string, (database: Database) => Promise<unknown>> = {
      'a query': (database) => database.collection('c').query(query),
      'a query in a session': async (database) => {
        const session = await database.collection('c').openQuerySession();
        return session.prepare([query])[0]!.answer();
      },
      'a fetch of values': (database) =>
        database.collection('c').fetch(['v70'], { values: true, metadata: true }),
      'a list': (database) => database.collection('c').list({ limit: 300, includeValues: true }),
      'a count by a filter': (database) => database.collection('c').count({ kind: 'odd' }),
      'a scan': async (database) =>
        Array.from((await database.collection('c').scan(ALL)).chunks(), ({ count }) => count),
      'a write of metadata, which copies the values': (database) =>
        database.collection('c').patch('v70', { metadata: '{"changed":true}' }),
      'a delete by a filter': (database) =>
        database.collection('c').delete({ kind: 'filter', filter: { kind: 'odd' } }, DELETE),
    };
    for (const [what, read] of Object.entries(reads)) {
      it(`answers ${what} with an error when a file is cut under it, and is not served from then on`, async () => {
        const directory = await makeDirectory();
        const { database, close } = await fill(directory);
        const { sequence } = database.collection('c').record();
        truncateSync(filesIn(directory)[1]!, 1000);
        await assert.rejects(read(database), { code: 'data_corrupt', message: /was cut/ });
        await assert.rejects(read(database), { code: 'collection_unavailable' });
        const { status, statusReason } = database.collection('c').record();
        assert.equal(status, 'failed');
        assert.match(statusReason!, /Segment file .+ is damaged/);
        assert.equal((await database.collection('other').query(query)).matches.length, 5);
        await close();
        // The write was not committed.
        const store = await openStore({ directory });
        const log = basename(dirname(filesIn(directory)[0]!));
        assert.ok([...store.readLog(log, 0)].every((entry) => entry.sequence <= sequence));
        await store.close();
      });
    }

    it('ends a scan when a file is cut between two chunks', async () => {
      const directory = await makeDirectory();
      const { database, close } = await fill(directory);
      const scan = await database.collection('c').scan({ ...ALL, chunkBytesMax: 10_000 });
      const chunks = scan.chunks()[Symbol.iterator]();
      const { value } = chunks.next();
      truncateSync(filesIn(directory)[0]!, 0);
      const first = valuesOfRows(value!.vectors[0]!, 0, 1);
      assert.deepEqual(first, Float32Array.from(vectors[0]!.values));
      assert.throws(() => chunks.next(), { code: 'data_corrupt' });
      await close();
    });

    it('does not answer from a file that was changed before the start', async () => {
      const directory = await makeDirectory();
      await (await fill(directory)).close();
      const [, path] = filesIn(directory);
      const bytes = readFileSync(path!);
      const values = Float32Array.from(vectors[100]!.values);
      bytes[bytes.indexOf(new Uint8Array(values.buffer))]! ^= 1;
      writeFileSync(path!, bytes);
      for (const mapping of ['mapped', 'memory'] as const) {
        for (const read of [reads['a query']!, reads['a count by a filter']!]) {
          const { database, close } = await open(directory, mapping);
          await assert.rejects(read(database), (error: Error & { code: string }) => {
            assert.match(error.code, /^(data_corrupt|collection_unavailable)$/);
            assert.match(
              error.message,
              /2\.arrow is damaged: Expected crc32:\w+; found the checksum/,
            );
            return true;
          });
          assert.equal((await database.collection('other').query(query)).matches.length, 5);
          await close();
        }
      }
    });

    it('does not copy a damaged file into a new one', async () => {
      const directory = await makeDirectory();
      const { database, close } = await fill(directory);
      truncateSync(filesIn(directory)[0]!, 1000);
      await database
        .collection('c')
        .write(batchOf(vectors), { mode: 'upsert' })
        .catch(() => {});
      await close();
      const names = filesIn(directory);
      assert.ok(names[0]!.endsWith('/1.arrow'));
    });
  });
}
