// The embedded store: contract, SIGKILL, full disks, long logs, format versions.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { access, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { open } from 'lmdb';
import { loadNativeFiles } from '../../src/platform/native-files.js';
import { openLmdbStore } from '../../src/storage/lmdb-store.js';
import type { Store } from '../../src/storage/store.js';
import { type Finding, StoreInspection } from '../../src/storage/store-inspection.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { eventually } from '../support/waiting.js';
import { startCommitter } from './committer-process.js';
import { storeContract } from './contract.js';
import { lmdbHarness, makeDirectory, onSmallDisk, openIn } from './directories.js';
import { liveRandomly } from './random-history.js';

storeContract('lmdb', lmdbHarness);

describe('lmdb store: durability', () => {
  it('keeps every acknowledged commit when its process is killed', async () => {
    await surviveKills(await makeDirectory());
  });

  it('keeps them also while it gives free pages back, since the disk is low', async (t) => {
    if (!(await onSmallDisk(64, surviveKills)))
      t.skip('mounting a small tmpfs is not permitted here');
  });

  async function surviveKills(directory: string): Promise<void> {
    let acknowledged = 0;
    for (let round = 0; round < 6; round++) {
      const child = startCommitter(directory);
      assert.ok(await child.isReady(), child.errors());
      await eventually('a commit is acknowledged', () => child.lines.length > 1);
      await sleep(50 + 97 * round);
      await child.kill();
      acknowledged = Math.max(acknowledged, ...child.lines.slice(1).map(Number));

      const store = await openIn(directory);
      const count = Number(Buffer.from(store.get(['count'])!).toString());
      assert.ok(count >= acknowledged, `${count} kept, ${acknowledged} acknowledged`);
      const sequences: number[] = [];
      for (const { sequence, record } of store.readLog('l', 0)) {
        assert.equal(record.byteLength, 1_500);
        assert.ok(record.every((byte) => byte === sequence % 251));
        sequences.push(sequence);
      }
      const first = sequences[0]!;
      assert.deepEqual(
        sequences,
        sequences.map((_, i) => first + i),
        'no record is missing in the middle',
      );
      assert.equal(sequences.at(-1), count, 'record and value of a commit came together');
      // The trim of the last commit that had one, no more and no less.
      const trimmedAt = Math.floor(count / 50) * 50;
      assert.equal(first, trimmedAt > 200 ? trimmedAt - 200 + 1 : 1);
      await store.close();
    }
    assert.ok(acknowledged > 0);
  }

  it('has the writes of lmdb completed where its library can be changed', async (t) => {
    const native = loadNativeFiles();
    if (typeof native === 'string') return t.skip(native);
    if (process.platform !== 'linux') return t.skip('not on this system');
    await (await openIn(await makeDirectory())).close();
    // Again, when it is loaded and in use: the same functions are found.
    assert.equal(native.completeLmdbWrites?.(), true);
    return undefined;
  });

  it('rejects a directory of a newer format with both versions', async () => {
    const directory = await makeDirectory();
    await (await openIn(directory)).close();
    const root = open({
      path: join(directory, 'store.lmdb'),
      overlappingSync: false,
      encoding: 'binary',
      keyEncoding: 'binary',
    });
    const meta = root.openDB<Buffer, Buffer>({
      name: 'meta',
      encoding: 'binary',
      keyEncoding: 'binary',
    });
    await meta.put(Buffer.from('format\u0000'), Buffer.from('99'));
    await root.close();
    for (let i = 0; i < 2; i++) {
      await assert.rejects(openLmdbStore({ directory }), {
        code: 'configuration_invalid',
        message: /format version 99.*reads 2/,
      });
    }
  });

  it('does not keep its process running, closed or not', async () => {
    const url = JSON.stringify(new URL('../../src/storage/lmdb-store.js', import.meta.url).href);
    const path = JSON.stringify(await makeDirectory());
    for (const ending of ['', 'await store.close();']) {
      const script = `const { openLmdbStore } = await import(${url});
        const store = await openLmdbStore({ directory: ${path} });
        await store.commit([{ kind: 'append', log: 'l', sequence: Date.now(), record: Buffer.alloc(9) },
          { kind: 'trim', log: 'l', throughSequence: Date.now() }]);
        store.get(['k']);
        ${ending}`;
      const child = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
        timeout: 60_000,
        encoding: 'utf8',
      });
      assert.equal(child.status, 0, child.stderr);
    }
  });
});

/** Of the file system and the addon: without them dropped logs keep their space. */
const NO_HOLES = 'no addon that makes holes in files';

function mayMakeHoles(): boolean {
  const native = loadNativeFiles();
  return typeof native === 'object' && native.makeHole !== undefined;
}

describe('lmdb store: disk space', () => {
  const record = new Uint8Array(400_000).fill(1);

  /** Commits until one fails; answers how many went well. */
  async function fill(store: Store): Promise<number> {
    let sequence = 0;
    await assert.rejects(
      async () => {
        for (; sequence < 1_000; sequence++) {
          await store.commit([
            { kind: 'append', log: 'l', sequence: sequence + 1, record },
            { kind: 'put', key: ['count'], value: Buffer.from(String(sequence + 1)) },
          ]);
        }
      },
      { code: 'storage_full' },
    );
    return sequence;
  }

  it('fails with storage_full on a full disk, writes nothing, and resumes when there is space', async (t) => {
    const isDone = await onSmallDisk(16, async (directory, resize) => {
      let store = await openIn(directory);
      const count = await fill(store);
      assert.ok(count > 5);
      const assertWhole = () => {
        assert.equal([...store.readLog('l', 0)].length, count);
        assert.equal(Buffer.from(store.get(['count'])!).toString(), String(count));
      };
      assertWhole();
      await assert.rejects(store.writeBlob('c/1', [new Uint8Array(9_000_000)]), {
        code: 'storage_full',
      });
      assert.deepEqual(await store.listBlobs(), []);
      await store.close();
      store = await openIn(directory);
      assertWhole();
      resize(64);
      await store.commit([{ kind: 'append', log: 'l', sequence: count + 1, record }]);
      await store.writeBlob('c/1', [new Uint8Array(9_000_000)]);
      assert.equal([...store.readLog('l', 0)].length, count + 1);
      await store.close();
    });
    if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
  });

  it('opens on a full disk, unless it has to be created there', async (t) => {
    const isDone = await onSmallDisk(4, async (directory) => {
      const made = join(directory, 'made');
      const store = await openIn(made);
      await store.commit([{ kind: 'put', key: ['k'], value: new Uint8Array([1]) }]);
      await store.close();
      await writeFile(join(directory, 'ballast'), Buffer.alloc(8_000_000)).catch(() => {});
      const again = await openIn(made);
      assert.deepEqual([...again.get(['k'])!], [1]);
      await assert.rejects(again.commit([{ kind: 'remove', key: ['k'] }]), {
        code: 'storage_full',
      });
      await again.close();
      await assert.rejects(openIn(join(directory, 'new')), { code: 'storage_full' });
    });
    if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
  });

  it('matches a model through random operations on a disk that is full repeatedly', async (t) => {
    let fullCount = 0;
    const isDone = await onSmallDisk(11, async (directory, resize) => {
      let megabytes = 11;
      const { store, failedCount } = await liveRandomly({
        open: () => openIn(directory),
        reopen: lmdbHarness.reopen,
        stepCount: 300,
        failuresMin: 1,
        recordBytesMax: 800_000,
        mayFail: (error) => (error as { code?: string }).code === 'storage_full',
        makeRoom: async () => resize(++megabytes),
      });
      fullCount = failedCount;
      await store.close();
    });
    if (!isDone) return t.skip('mounting a small tmpfs is not permitted here');
    assert.ok(fullCount > 0, 'the disk was never full');
    return undefined;
  });

  it('has room for records of every size when logs are dropped on a full disk', async (t) => {
    if (!mayMakeHoles()) return t.skip(NO_HOLES);
    const isDone = await onSmallDisk(48, async (directory) => {
      let store = await openIn(directory);
      // Records of three logs lie between each other, so that the pages of one are not in a row.
      let sequence = 0;
      const append = (log: string, byteCount: number) => {
        const bytes = new Uint8Array(byteCount).fill(++sequence % 251);
        return store.commit([{ kind: 'append', log, sequence, record: bytes }]);
      };
      await assert.rejects(
        async () => {
          while (sequence < 10_000) await append(`l${sequence % 3}`, 30_000);
        },
        { code: 'storage_full' },
      );
      const kept = [...store.readLog('l2', 0)].map((entry) => entry.sequence);

      await store.commit([{ kind: 'dropLog', log: 'l0' }]);
      await append('large', 7_000_000);
      await store.commit([{ kind: 'dropLog', log: 'l1' }]);
      await append('large', 7_000_000);
      await append('large', 100);
      await store.writeBlob('c/1', [new Uint8Array(1_000_000)]);
      // Without the release of free pages the disk has only what the records had to leave.
      const assertWhole = () => {
        const entries = [...store.readLog('l2', 0)];
        assert.deepEqual(
          entries.map((entry) => entry.sequence),
          kept,
        );
        for (const entry of [...entries, ...store.readLog('large', 0)]) {
          assert.ok(entry.record.every((byte) => byte === entry.sequence % 251));
        }
      };
      assertWhole();
      store = await lmdbHarness.reopen(store);
      assertWhole();
      await store.close();
      const findings: Finding[] = [];
      const inspection = await StoreInspection.open(directory, (found) => findings.push(found));
      await inspection.close();
      assert.deepEqual(findings, []);
    });
    if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
  });

  it('drops a log on a full disk although large records wait beside it', async (t) => {
    if (!mayMakeHoles()) return t.skip(NO_HOLES);
    const isDone = await onSmallDisk(16, async (directory) => {
      const store = await openIn(directory);
      const count = await fill(store);
      const large = new Uint8Array(20_000_000);
      const results = await Promise.allSettled([
        store.commit([{ kind: 'append', log: 'a', sequence: 1, record: large }]),
        store.commit([{ kind: 'dropLog', log: 'l' }]),
        store.commit([{ kind: 'append', log: 'b', sequence: 1, record }]),
      ]);
      const codes = results.map((result) => result.status === 'rejected' && result.reason.code);
      assert.deepEqual(codes, ['storage_full', false, false]);
      assert.ok(count > 5);
      assert.deepEqual([...store.readLog('l', 0)], []);
      await store.close();
    });
    if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
  });

  it('reuses the space of trimmed records', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory);
    let sequence = 0;
    const sizes = [3_000_000, 1_500, 40_000, 700_000, 200, 250_000];
    for (let round = 0; round < 12; round++) {
      for (let i = 0; i < 24; i++) {
        const log = i % 2 === 0 ? 'even' : 'odd';
        const bytes = new Uint8Array(sizes[i % sizes.length]!);
        await store.commit([{ kind: 'append', log, sequence: ++sequence, record: bytes }]);
      }
      await store.commit([{ kind: 'trim', log: 'odd', throughSequence: sequence }]);
      await store.commit([{ kind: 'trim', log: 'even', throughSequence: sequence }]);
    }
    await store.close();
    const { size } = await stat(join(directory, 'store.lmdb'));
    assert.ok(size < 50_000_000, `${size} bytes on disk for 16 MB at a time`);
  });
});

describe('lmdb store: long logs', () => {
  const RECORD_COUNT = IS_NIGHTLY ? 100_000 : 20_000;

  for (const kind of ['trim', 'dropLog'] as const) {
    it(`answers other calls while a ${kind} of ${RECORD_COUNT} records is swept`, async () => {
      const directory = await makeDirectory();
      const store = await openIn(directory);
      const record = new Uint8Array(100);
      for (let from = 1; from <= RECORD_COUNT; from += 5_000) {
        await store.commit(
          Array.from({ length: 5_000 }, (_, i) => ({
            kind: 'append' as const,
            log: 'long',
            sequence: from + i,
            record,
          })),
        );
      }
      const delay = monitorEventLoopDelay({ resolution: 5 });
      delay.enable();
      const startedAt = performance.now();
      await store.commit([
        kind === 'trim'
          ? { kind, log: 'long', throughSequence: RECORD_COUNT - 1 }
          : { kind, log: 'long' },
      ]);
      assert.equal([...store.readLog('long', 0)].length, kind === 'trim' ? 1 : 0);
      let slowestMs = 0;
      for (let i = 0; i < 20; i++) {
        const commitAt = performance.now();
        await store.commit([{ kind: 'put', key: ['k'], value: record }]);
        slowestMs = Math.max(slowestMs, performance.now() - commitAt);
      }
      // Closing in the midst of it loses nothing: the next start goes on.
      await store.close();
      delay.disable();
      assert.ok(delay.max < 2e9, `the event loop stood still for ${delay.max / 1e6} ms`);
      assert.ok(slowestMs < 30_000, `a commit took ${slowestMs} ms`);
      assert.ok(performance.now() - startedAt < 60_000);
      const again = await openIn(directory);
      assert.equal([...again.readLog('long', 0)].length, kind === 'trim' ? 1 : 0);
      await sweptThrough(again);
      await again.close();
      assert.ok((await recordCount(directory)) <= 1);
    });
  }

  /** A sweep goes on as long as it makes progress; each batch of it is a commit's wait. */
  async function sweptThrough(store: Store): Promise<void> {
    for (let i = 0; i < RECORD_COUNT / 500 + 5; i++) {
      await store.commit([{ kind: 'put', key: ['k'], value: new Uint8Array(1) }]);
    }
  }

  async function recordCount(directory: string): Promise<number> {
    const root = open({ path: join(directory, 'store.lmdb'), overlappingSync: false });
    const records = root.openDB<Buffer, Buffer>({
      name: 'records',
      encoding: 'binary',
      keyEncoding: 'binary',
    });
    const count = records.getKeysCount({ start: Buffer.of(0) });
    await root.close();
    return count;
  }
});

describe('lmdb store: blobs', () => {
  it('deletes files of interrupted writes and empty folders when it is opened', async () => {
    const directory = await makeDirectory();
    await (await openIn(directory)).close();
    const folder = join(directory, 'segments', 'c');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, '1.arrow.1.unfinished'), 'half');
    await mkdir(join(directory, 'segments', 'd'));
    await writeFile(join(directory, 'segments', 'd', '2.arrow'), 'whole');
    await writeFile(join(directory, 'segments', 'd', '2.arrow.7.unfinished'), 'half');
    const store = await openIn(directory);
    assert.deepEqual(await store.listBlobs(), ['d/2.arrow']);
    assert.deepEqual(await readdir(join(directory, 'segments', 'd')), ['2.arrow']);
    await assert.rejects(access(folder));
    await store.close();
  });

  it('leaves no file behind when a write fails', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory);
    const failing = function* () {
      yield new Uint8Array(10);
      throw new Error('no more');
    };
    await assert.rejects(store.writeBlob('c/1', failing()), /no more/);
    assert.deepEqual(await readdir(join(directory, 'segments', 'c')), []);
    await store.close();
  });

  it('names the file of a blob that cannot be read', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory);
    const path = join(directory, 'segments', 'c', '1.arrow');
    await mkdir(path, { recursive: true });
    await assert.rejects(store.readBlob('c/1.arrow'), (error: Error & { code: string }) => {
      assert.equal(error.code, 'data_corrupt');
      assert.ok(error.message.includes(path), error.message);
      return true;
    });
    await store.close();
  });

  it('writes and reads a blob that is longer than one system call transfers', async () => {
    const store = await openIn(await makeDirectory());
    const part = new Uint8Array(70 * 1024 * 1024);
    for (let i = 0; i < part.length; i += 4_096) part[i] = i / 4_096;
    await store.writeBlob('c/1', [part, new Uint8Array([1, 2, 3])]);
    const whole = (await store.readBlob('c/1'))!;
    assert.equal(whole.byteLength, part.byteLength + 3);
    assert.ok(Buffer.from(whole.buffer, 0, part.byteLength).equals(part));
    assert.deepEqual([...whole.subarray(-3)], [1, 2, 3]);
    await store.close();
  });
});
