// A real server on a disk that fills up: it refuses writes and answers reads while checkpoints fail, and resumes when
// space is free again, for example after a collection is deleted. No acknowledged write is lost, and the log does not
// fill the disk.

import assert from 'node:assert/strict';
import { mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyDirectory } from '../../src/offline.js';
import { run } from '../cli/command.js';
import { makeDirectory, onSmallDisk } from '../storage/directories.js';
import { createCaller, type Reply, startServerProcess } from '../support/server-process.js';

/** Size of the disk: more than the space that the store reserves for deletions. */
const MEGABYTES = 12;
const DIMENSION = 64;
const ROWS = 40;
const SEGMENT_ROWS = 512;
/** Number of writes after which ids repeat and rows are replaced. */
const WRITES_UNTIL_AGAIN = 320;
/** A segment that is not full exists only in the log. The factor 2 allows for everything besides the values. */
const LOG_BYTES_MAX = SEGMENT_ROWS * DIMENSION * 4 * 2;
const FULL_MS = 1_500;
const REFUSED_MIN = 20;
const CATCH_UP_MS_MAX = 90_000;

/** The last acknowledged write to an id. */
interface Acknowledged {
  readonly number: number;
  readonly sequence: number;
}

type Call = ReturnType<typeof createCaller>['call'];

it('a server on a full disk refuses writes, answers reads, and resumes when space is free', {
  timeout: 180_000,
}, async (t) => {
  const isDone = await onSmallDisk(MEGABYTES, async (disk, resize) => {
    const dataDirectory = join(disk, 'data');
    const backupDirectory = join(disk, 'backups');
    await mkdir(backupDirectory);
    const log = await open(join(disk, 'log'), 'a');
    const settings = {
      SAGITTA_ENGINE: 'reference',
      SAGITTA_THREADS: '1',
      // Logs a line for every request, so that the log is also written to the full disk.
      SAGITTA_LOG_LEVEL: 'debug',
      SAGITTA_BACKUP_DIR: backupDirectory,
      SAGITTA_SEGMENT_ROWS_MAX: String(SEGMENT_ROWS),
      // Shorter than the test, so that compactions, which need space, remove old rows.
      SAGITTA_RETENTION_MS: '1000',
    };
    const begin = async () => {
      const server = await startServerProcess({ dataDirectory, settings, logDescriptor: log.fd });
      return { server, ...createCaller(server.url) };
    };
    let { server, call, close } = await begin();
    try {
      const acknowledged = new Map<string, Acknowledged>();
      let writeCount = 0;
      const write = async (): Promise<Reply> => {
        const number = ++writeCount;
        const ids = Array.from({ length: ROWS }, (_, i) => `v${number % WRITES_UNTIL_AGAIN}-${i}`);
        const reply = await call('POST', '/v1/collections/c/vectors', bodyOf(ids, number));
        if (reply.status !== 200) assertFull(reply);
        else {
          const { sequence } = reply.json<{ sequence: number }>();
          for (const id of ids) {
            // Among concurrent writes, the one with the latest sequence wins.
            const before = acknowledged.get(id);
            if (before === undefined || before.sequence < sequence) {
              acknowledged.set(id, { number, sequence });
            }
          }
        }
        return reply;
      };

      assert.equal((await call('POST', '/v1/collections', collection('c'))).status, 200);
      const beginAt = performance.now();
      while ((await write()).status === 200) assert.ok(writeCount < 2_000);
      assert.ok(writeCount * ROWS > SEGMENT_ROWS * 4, `${writeCount} writes`);

      const until = performance.now() + FULL_MS;
      let refusedCount = 0;
      // A round may take long on a busy machine.
      while (performance.now() < until || refusedCount <= REFUSED_MIN) {
        const replies = await Promise.all(Array.from({ length: 8 }, write));
        refusedCount += replies.filter(({ status }) => status === 507).length;
        await assertReads(call, acknowledged);
      }
      t.diagnostic(
        `${writeCount} writes, ${acknowledged.size} vectors; ${refusedCount} writes refused`,
      );
      // Fills the space that a compaction may just have freed.
      await writeFile(join(disk, 'ballast'), Buffer.alloc(MEGABYTES * 1e6)).catch(() => {});
      for (const [method, path, body] of [
        ['POST', '/v1/collections', collection('d')],
        ['PATCH', '/v1/collections/c', { description: 'x' }],
        ['POST', '/v1/keys', { owner: 'o', scopes: ['admin'] }],
        ['PUT', '/v1/collections/c/vectors/x', { values: Array(DIMENSION).fill(1) }],
        ['DELETE', '/v1/collections/c/vectors/v1-1', undefined],
        ['POST', '/v1/backups', { name: 'b' }],
      ] as const) {
        assertFull(await call(method, path, body));
      }
      assert.equal((await call('GET', '/v1/collections')).json<{ total: number }>().total, 1);
      assert.deepEqual((await call('GET', '/v1/keys')).json(), { keys: [] });
      assert.deepEqual(await readdir(backupDirectory), []);
      assert.equal((await call('GET', '/readyz')).status, 200);

      // After a kill, the server starts on the full disk with all acknowledged writes.
      await server.kill();
      close();
      ({ server, call, close } = await begin());
      await assertAll(call, acknowledged);
      assertFull(await write());
      // It also stops and starts in the regular way, although it cannot write its log.
      await server.stop();
      close();
      assert.equal(server.child.exitCode, 0);
      ({ server, call, close } = await begin());

      resize(64);
      const roomAt = performance.now();
      for (let i = 0; i < 10; i++) assert.equal((await write()).status, 200);
      assert.equal((await call('POST', '/v1/collections', collection('d'))).status, 200);
      assert.equal((await call('POST', '/v1/backups', { name: 'b' })).status, 200);
      // Full segments are written to files even without more writes.
      while ((await logBytes(call)) > LOG_BYTES_MAX) {
        assert.ok(
          performance.now() - roomAt < CATCH_UP_MS_MAX,
          'no checkpoint after there was room',
        );
        await sleep(50);
      }
      t.diagnostic(`caught up ${Math.round(performance.now() - roomAt)} ms after there was room`);
      await assertReads(call, acknowledged);
      await server.stop();
      close();
      assert.equal(server.child.exitCode, 0);

      ({ server, call, close } = await begin());
      await assertAll(call, acknowledged);
      await server.stop();
      close();
      for (const directory of [dataDirectory, join(backupDirectory, 'b')]) {
        assert.deepEqual((await verifyDirectory(directory)).findings, []);
      }
      const seconds = (performance.now() - beginAt) / 1000;
      const lines = (await readFile(join(disk, 'log'), 'utf8')).split('\n');
      for (const what of ['"msg":"request refused"', '"msg":"maintenance failed']) {
        const count = lines.filter(
          (line) => line.includes(what) && !line.includes('"level":20'),
        ).length;
        // Each of two processes logs at most one line every ten seconds.
        assert.ok(count <= seconds / 10 + 2, `${count} lines of ${what} in ${seconds} s`);
      }
    } finally {
      await server.kill();
      await log.close();
    }
  });
  if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
});

it('deleting a collection makes space for batches of every size and for an import', {
  timeout: 180_000,
}, async (t) => {
  const isDone = await onSmallDisk(40, async (disk) => {
    const dataDirectory = join(disk, 'data');
    const settings = {
      SAGITTA_ENGINE: 'reference',
      SAGITTA_THREADS: '1',
      // No segment becomes full, so everything stays in the log.
      SAGITTA_SEGMENT_ROWS_MAX: '1000000',
    };
    const server = await startServerProcess({ dataDirectory, settings });
    const { call, close } = createCaller(server.url);
    const folder = await makeDirectory();
    const rowsIn = (count: number) =>
      bodyOf(
        Array.from({ length: count }, (_, i) => String(i)),
        count,
      );
    try {
      for (const id of ['old', 'older']) await call('POST', '/v1/collections', collection(id));
      const write = (id: string, count: number) =>
        call('POST', `/v1/collections/${id}/vectors`, rowsIn(count));
      // The records of both alternate, so that the pages of neither are contiguous.
      let reply = await write('older', 1_000);
      for (; reply.status === 200; reply = await write('older', 1_000)) {
        await write('old', 200);
      }
      assertFull(reply);
      const path = join(folder, 'rows.ndjson');
      const { vectors } = rowsIn(30_000);
      await writeFile(path, vectors.map((vector) => JSON.stringify(vector)).join('\n'));
      const importRows = () =>
        run(['import', path, '-c', 'new', '--batch', '500', '--json'], {
          env: { SAGITTA_URL: server.url, XDG_STATE_HOME: folder },
        });
      assert.equal((await call('DELETE', '/v1/collections/old')).status, 200);
      const failed = await importRows();
      assert.equal(failed.code, 1, failed.stderr);
      assert.match(
        failed.stderr,
        /no space left.*\n.* rows were written before the error; make room and run the same command again to resume after them/,
      );
      assert.equal((await call('DELETE', '/v1/collections/older')).status, 200);
      const resumed = await importRows();
      assert.equal(resumed.code, 0, resumed.stderr);
      const { rows, resumed_rows } = JSON.parse(resumed.stdout);
      assert.ok(resumed_rows > 0 && rows + resumed_rows === 30_000, resumed.stdout);
      for (const count of [10, 1_000, 5_000, 10_000]) {
        assert.equal((await write('new', count)).status, 200, `${count} rows`);
      }
      await server.stop();
      assert.deepEqual((await verifyDirectory(dataDirectory)).findings, []);
    } finally {
      close();
      await server.kill();
    }
  });
  if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
});

const collection = (id: string) => ({ id, dimension: DIMENSION, metric: 'dot' });

const bodyOf = (ids: readonly string[], number: number) => ({
  vectors: ids.map((id, i) => ({
    id,
    values: Array.from({ length: DIMENSION }, (_, d) => (number * 31 + i * 7 + d) % 97),
    metadata: { number },
  })),
});

function assertFull(reply: Reply): void {
  assert.equal(reply.status, 507, reply.text);
  const { code, retryable } = reply.json<{ code: string; retryable: boolean }>();
  assert.deepEqual([code, retryable], ['storage_full', true]);
}

/** Checks reads of every kind while the disk is full. */
async function assertReads(
  call: Call,
  acknowledged: ReadonlyMap<string, Acknowledged>,
): Promise<void> {
  const [id, { number }] = [...acknowledged].at(-1)!;
  const vector = await call('GET', `/v1/collections/c/vectors/${id}`);
  assert.deepEqual(vector.json<{ metadata: unknown }>().metadata, { number });
  const count = await call('POST', '/v1/collections/c/count', {});
  assert.equal(count.json<{ count: number }>().count, acknowledged.size);
  const query = await call('POST', '/v1/collections/c/query', { id, top_k: 3 });
  assert.equal(query.json<{ matches: unknown[] }>().matches.length, 3, query.text);
}

async function assertAll(
  call: Call,
  acknowledged: ReadonlyMap<string, Acknowledged>,
): Promise<void> {
  const ids = [...acknowledged.keys()];
  for (let i = 0; i < ids.length; i += 500) {
    const page = ids.slice(i, i + 500);
    const reply = await call('POST', '/v1/collections/c/vectors/fetch', { ids: page });
    const { vectors, not_found } = reply.json<{
      vectors: { id: string; metadata: { number: number } }[];
      not_found: string[];
    }>();
    assert.deepEqual(not_found, [], 'an acknowledged vector is gone');
    for (const { id, metadata } of vectors) {
      assert.equal(metadata.number, acknowledged.get(id)!.number, id);
    }
  }
}

async function logBytes(call: Call): Promise<number> {
  const { text } = await call('GET', '/metrics');
  return Number(/^sagitta_log_bytes (\S+)$/m.exec(text)![1]);
}
