// Verification finds nothing in intact data and reports every kind of damage, even besides other damage. It changes
// nothing. verify.ci.test.ts damages the frames of the journal one by one.

import assert from 'node:assert/strict';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import type { ColumnSpec } from '../../../src/common/vectors.js';
import { segmentBlobName } from '../../../src/database/layout/keys.js';
import type { Manifest } from '../../../src/database/layout/manifest.js';
import { verifyDirectory } from '../../../src/offline.js';
import { BACKUP_BASE } from '../../../src/storage/backup.js';
import type { DiskStore } from '../../../src/storage/store.js';
import type { VerifyReport } from '../../../src/tools/verify/verify-report.js';
import { batchOf, createRandom, openDatabase, testSeed } from '../../database/harness.js';
import { makeDirectory, openIn } from '../../storage/directories.js';
import { columnOf, columnsOf, dense, multi, sparse } from '../../vector-columns.js';
import { DAMAGES, DamagedData, LEFTOVERS } from './damages.js';
import { copyOf, makeSoundData } from './sound-data.js';

let sound: string;
let backup: string;
let incarnation: string;
let manifest: Manifest;

before(async () => {
  ({ sound, backup, incarnation, manifest } = await makeSoundData());
});

const lines = ({ findings }: VerifyReport) =>
  findings.map(({ severity, where, what }) => `${severity}: ${where}: ${what}`);

/** The contents of all files in the folder, by name. */
async function contentsOf(directory: string): Promise<Map<string, string>> {
  const contents = new Map<string, string>();
  for (const name of (await readdir(directory, { recursive: true })).sort()) {
    const path = join(directory, name);
    const isFile = (await stat(path)).isFile();
    contents.set(name, isFile ? (await readFile(path)).toString('base64') : 'folder');
  }
  return contents;
}

describe('verify', () => {
  it('finds nothing in intact data, counts what it read, and changes nothing', async () => {
    for (const directory of [sound, backup]) {
      const before = await contentsOf(directory);
      const shares: number[] = [];
      const report = await verifyDirectory(directory, (_rows, share) => shares.push(share));
      assert.deepEqual(report.findings, []);
      assert.equal(report.isBackup, directory === backup);
      const { bytes, ...counts } = report.counts;
      assert.ok(bytes > 1_000 && shares.at(-1)! <= 1);
      assert.deepEqual(counts, {
        collections: 2,
        segments: manifest.segments.length,
        rows: 6 * 50 + 30,
        deletions: counts.deletions,
        logRecords: counts.logRecords,
        idempotentReplies: 1,
        apiKeys: 1,
      });
      assert.ok(counts.deletions > 0 && counts.logRecords > 0);
      assert.deepEqual(await contentsOf(directory), before);
    }
  });

  it('finds nothing in collections without the unnamed vector', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory);
    const database = await openDatabase({ store });
    const input = { description: null, labels: {} };
    const vectors = {
      title: { ...dense(2), metric: 'cosine' },
      tokens: { ...multi(1), metric: 'cosine' },
    } as const;
    await database.createCollection({ id: 'named', vectors, ...input });
    // A sealed segment, and rows in the log.
    const ids = Array.from({ length: 100 }, (_, i) => ({
      id: `v${i}`,
      values: [],
      metadata: '{}',
    }));
    const rows = ids.map((_, i) => ({
      title: [2 * i + 1, 2 * i + 2],
      tokens: i % 3 === 0 ? undefined : new Array<number>(i % 3).fill(1),
    }));
    const batch = batchOf(ids, columnsOf(vectors, rows));
    await database.collection('named').write(batch, { mode: 'upsert' });
    await database.close();
    await store.close();
    const { findings, counts } = await verifyDirectory(directory);
    assert.deepEqual(findings, []);
    assert.equal(counts.rows, 100);
  });

  it('finds nothing in collections with dropped vectors or with only text', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory);
    const database = await openDatabase({ store });
    const input = { description: null, labels: {} };
    const shapes = { title: { ...dense(2), metric: 'cosine' }, words: sparse } as const;
    const vectors = { '': { ...dense(1), metric: 'dot' }, ...shapes } as const;
    await database.createCollection({ id: 'c', vectors, ...input });
    const text = { fields: ['t'], language: null, stopWords: [], k1: 1.2, b: 0.75 };
    await database.createCollection({ id: 'text', vectors: {}, text, ...input });
    const samples = (prefix: string, values: readonly number[]) =>
      Array.from({ length: 40 }, (_, i) => ({ id: `${prefix}${i}`, values, metadata: '{}' }));
    const write = (prefix: string, specs: Readonly<Record<string, ColumnSpec>>, row: object) => {
      const rows = samples(prefix, [1]);
      const columns = columnsOf(
        specs,
        rows.map(() => ({ ...row })),
      );
      return database.collection('c').write(batchOf(rows, columns), { mode: 'upsert' });
    };
    await database.collection('text').write(batchOf(samples('t', [])), { mode: 'upsert' });
    await write('a', shapes, { title: [1, 2], words: new Map([[1, 1]]) });
    await write('b', shapes, { title: [1, 2] });
    await database.collection('c').update({ vectors: { title: null } });
    const title = { ...multi(3), metric: 'cosine' } as const;
    await database.collection('c').update({ vectors: { title }, sparseVectors: { words: null } });
    await write('c', { title }, { title: [1, 2, 3, 4, 5, 6] });
    const { digest } = await database.collection('c').digest({});
    await database.close();
    await store.close();
    const { findings, counts } = await verifyDirectory(directory);
    assert.deepEqual(findings, []);
    assert.equal(counts.rows, 160);
    const reopened = await openIn(directory);
    const again = await openDatabase({ store: reopened });
    assert.equal((await again.collection('c').digest({})).digest, digest);
    await again.close();
    await reopened.close();
  });

  it('checks sparse vectors of segments and of the log', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory);
    const database = await openDatabase({ store });
    const vectors = { words: sparse };
    await database.createCollection({ id: 'c', vectors, description: null, labels: {} });
    const write = (prefix: string, indices: Uint32Array, values: Float32Array) => {
      const rows = Array.from({ length: 60 }, (_, i) => ({
        id: `${prefix}${i}`,
        values: [],
        metadata: '{}',
      }));
      const words = columnOf(
        'words',
        sparse,
        rows.map(() => ({ indices, values })),
      );
      return database.collection('c').write(batchOf(rows, [words]), { mode: 'upsert' });
    };
    await write('a', Uint32Array.of(1, 5), Float32Array.of(1, 2));
    await database.close();
    await store.close();
    assert.deepEqual(lines(await verifyDirectory(directory)), []);
    const reopened = await openIn(directory);
    const again = await openDatabase({ store: reopened });
    // Written past the checks of requests.
    const vector = { indices: Uint32Array.of(5, 5), values: Float32Array.of(1, 0) };
    const rows = [{ id: 'bad', values: [], metadata: '{}' }];
    const batch = batchOf(rows, [columnOf('words', sparse, [vector])]);
    await again.collection('c').write(batch, { mode: 'upsert' });
    await again.close();
    await reopened.close();
    const found = lines(await verifyDirectory(directory)).join('\n');
    assert.match(found, /"words" of row 0, element 1: the index is 5, expected more than 5/);
    assert.match(found, /"words" of row 0, element 1: the value is 0/);
  });

  for (const [severity, damages] of Object.entries({ error: DAMAGES, note: LEFTOVERS })) {
    for (const [what, [damage, expected]] of Object.entries(damages)) {
      it(`reports ${what}`, async () => {
        const directory = await copyOf(sound);
        const store = (await openIn(directory)) as DiskStore;
        await damage(new DamagedData(store));
        await store.close();
        const report = await verifyDirectory(directory);
        const found = lines(report);
        assert.ok(
          found.some((line) => expected.test(line)),
          found.join('\n'),
        );
        assert.equal(report.errorCount > 0, severity === 'error', found.join('\n'));
      });
    }
  }

  it('reports all damage, with a bounded number of findings per subject', async () => {
    const directory = await copyOf(sound);
    const store = (await openIn(directory)) as DiskStore;
    const data = new DamagedData(store);
    await data.rewriteSegment(1, ({ vectors }) => vectors[0]!.values.fill(Number.NaN));
    await store.removeBlob(data.segmentName(1));
    await data.appendRecord(100, new Uint8Array(16));
    await store.close();
    const report = await verifyDirectory(directory);
    assert.equal(lines(report).filter((line) => /2\.arrow: values of row/.test(line)).length, 10);
    assert.ok(report.errorCount >= 66, `${report.errorCount}`);
    assert.ok(lines(report).some((line) => /1\.arrow: the file is missing/.test(line)));
    assert.ok(lines(report).some((line) => /record 100/.test(line)));
  });

  it('finds every flipped byte of a segment file, and of the journal of a backup', async () => {
    const random = createRandom(testSeed());
    for (const name of [BACKUP_BASE, `segments/${segmentBlobName(incarnation, 2)}`]) {
      const directory = await copyOf(backup);
      const path = join(directory, name);
      const bytes = await readFile(path);
      const places = [0, 1, 7, 8, bytes.length >> 1, bytes.length - 1];
      for (let i = 0; i < 25; i++) places.push(Math.floor(random() * bytes.length));
      for (const at of places) {
        const flipped = Buffer.from(bytes);
        flipped[at]! ^= 1 << Math.floor(random() * 8);
        await writeFile(path, flipped);
        const report = await verifyDirectory(directory).catch((error: { code: string }) => {
          assert.ok(['data_corrupt', 'configuration_invalid'].includes(error.code), `${error}`);
        });
        assert.ok(report === undefined || report.errorCount > 0, `byte ${at} of ${name}`);
      }
    }
  });

  it('rejects a folder that is not a data directory and leaves it unchanged', async () => {
    const directory = await makeDirectory();
    await writeFile(join(directory, 'mine'), 'x');
    for (const path of [directory, join(directory, 'none'), join(directory, 'mine')]) {
      await assert.rejects(verifyDirectory(path), {
        code: 'configuration_invalid',
        message: /is neither a data directory nor a backup: it contains no folder journal/,
      });
    }
    assert.deepEqual(await readdir(directory), ['mine']);
  });

  it('names the journal if only that is missing', async () => {
    const directory = await copyOf(sound);
    await rm(join(directory, 'journal'), { recursive: true });
    await assert.rejects(verifyDirectory(directory), {
      code: 'data_corrupt',
      message: /The folder journal is missing in .*Restore a backup/,
    });
  });

  it('rejects a marker whose members were changed, and one without checksum', async () => {
    const directory = await copyOf(backup);
    const path = join(directory, 'backup.json');
    const { checksum, ...members } = JSON.parse(await readFile(path, 'utf8'));
    assert.match(checksum, /^crc32:/);
    await writeFile(path, JSON.stringify({ ...members, createdAt: '2001-01-01', checksum }));
    await assert.rejects(verifyDirectory(directory), {
      code: 'data_corrupt',
      message: /its members do not match their checksum/,
    });
    await writeFile(path, JSON.stringify(members));
    await assert.rejects(verifyDirectory(directory), {
      code: 'data_corrupt',
      message: /members are missing/,
    });
  });

  it('rejects a directory that is in use and a backup with a damaged marker', async () => {
    const directory = await copyOf(sound);
    const store = await openIn(directory);
    await assert.rejects(verifyDirectory(directory), { code: 'data_directory_locked' });
    await store.close();
    const broken = await copyOf(backup);
    await writeFile(join(broken, 'backup.json'), '{"format_version": 1}');
    await assert.rejects(verifyDirectory(broken), { code: 'data_corrupt' });
    await writeFile(join(broken, 'backup.json'), '{"format_version": 2}');
    await assert.rejects(verifyDirectory(broken), {
      code: 'configuration_invalid',
      message: /format version 2; this version of Sagitta reads 1/,
    });
    await rm(join(broken, 'backup.json'));
    assert.equal((await verifyDirectory(broken)).isBackup, false);
  });
});
