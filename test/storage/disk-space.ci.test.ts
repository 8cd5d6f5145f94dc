// The disk store on full disks, and the space that it frees.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { openStore } from '../../src/storage/open-store.js';
import type { Store, StoreOperation } from '../../src/storage/store.js';
import { type Finding, StoreInspection } from '../../src/storage/store-inspection.js';
import { eventually } from '../support/waiting.js';
import { diskHarness, makeDirectory, onSmallDisk, openIn } from './directories.js';
import { liveRandomly } from './random-history.js';

const SKIPPED = 'mounting a small tmpfs is not permitted here';

/** Free space of the disk in bytes. */
function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/** Fills the disk except for `leftBytes`, as another program would. */
async function fillDisk(directory: string, leftBytes = 0): Promise<() => Promise<void>> {
  const ballast = join(directory, 'ballast');
  await writeFile(ballast, Buffer.alloc(Math.max(0, freeBytes(directory) - leftBytes))).catch(
    () => {},
  );
  return () => rm(ballast);
}

/** Leaves an unfinished write after the last frame. */
async function tearWrite(directory: string): Promise<void> {
  const folder = join(directory, 'journal');
  const name = (await readdir(folder))
    .filter((each) => each.endsWith('.log'))
    .sort()
    .at(-1)!;
  const bytes = await readFile(join(folder, name));
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
  const file = await open(join(folder, name), 'r+');
  await file.write(Buffer.alloc(2_000, 7), 0, 2_000, end + 10);
  await file.close();
}

async function findingsIn(directory: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  const inspection = await StoreInspection.open(directory, (found) => findings.push(found));
  await inspection.close();
  return findings;
}

describe('an embedded store and the space on its disk', () => {
  const record = new Uint8Array(400_000).fill(1);

  /** Commits until one fails; returns the number of successful commits. */
  async function fill(store: Store, log = 'l'): Promise<number> {
    let sequence = 0;
    await assert.rejects(
      async () => {
        for (; sequence < 1_000; sequence++) {
          await store.commit([
            { kind: 'append', log, sequence: sequence + 1, record },
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
    if (!isDone) t.skip(SKIPPED);
  });

  it('opens on a full disk, unless it has to be created there', async (t) => {
    const isDone = await onSmallDisk(16, async (directory) => {
      const made = join(directory, 'made');
      const store = await openIn(made);
      await store.commit([{ kind: 'put', key: ['k'], value: new Uint8Array([1]) }]);
      await store.close();
      await fillDisk(directory);
      const again = await openIn(made);
      assert.deepEqual([...again.get(['k'])!], [1]);
      const append = { kind: 'append', log: 'l', sequence: 1, record } as const;
      await assert.rejects(again.commit([append]), { code: 'storage_full' });
      const put = { kind: 'put', key: ['k'], value: new Uint8Array([2]) } as const;
      await assert.rejects(again.commit([put]), { code: 'storage_full' });
      await again.commit([{ kind: 'remove', key: ['k'] }]);
      await again.close();
      await assert.rejects(openIn(join(directory, 'new')), { code: 'storage_full' });
    });
    if (!isDone) t.skip(SKIPPED);
  });

  it('matches a model through random operations on a disk that is full repeatedly', async (t) => {
    let fullCount = 0;
    const isDone = await onSmallDisk(11, async (directory, resize) => {
      let megabytes = 11;
      const { store, failedCount } = await liveRandomly({
        open: () => openIn(directory),
        reopen: diskHarness.reopen,
        stepCount: 300,
        failuresMin: 1,
        recordBytesMax: 800_000,
        mayFail: (error) => (error as { code?: string }).code === 'storage_full',
        makeRoom: async () => resize(++megabytes),
      });
      fullCount = failedCount;
      await store.close();
    });
    if (!isDone) return t.skip(SKIPPED);
    assert.ok(fullCount > 0, 'the disk was never full');
    return undefined;
  });

  it('has space for records of every size after logs are dropped on a full disk', async (t) => {
    const isDone = await onSmallDisk(48, async (directory) => {
      let store = await openIn(directory);
      // Records of three logs are interleaved, so that no file contains records of only one.
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
      store = await diskHarness.reopen(store);
      assertWhole();
      await store.close();
      assert.deepEqual(await findingsIn(directory), []);
    });
    if (!isDone) t.skip(SKIPPED);
  });

  it('drops a log on a full disk while large records are waiting', async (t) => {
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
    if (!isDone) t.skip(SKIPPED);
  });

  it('says that its file system is mounted read-only', async (t) => {
    const isDone = await onSmallDisk(16, async (disk) => {
      const directory = join(disk, 'data');
      await (await openIn(directory)).close();
      const mount = (options: string) => execFileSync('mount', ['-o', options, disk]);
      mount('remount,ro');
      const message = /its file system is mounted read-only/;
      const refused = { code: 'configuration_invalid', message };
      await assert.rejects(openIn(directory), refused);
      await assert.rejects(openIn(join(disk, 'new')), refused);
      mount('remount,rw');
      await (await openIn(directory)).close();
    });
    if (!isDone) t.skip(SKIPPED);
  });

  it('removes, drops and trims on a disk that others have filled, even after a restart', async (t) => {
    const isDone = await onSmallDisk(32, async (directory) => {
      const data = join(directory, 'data');
      let store = await openIn(data);
      const append = (log: string, sequence: number): StoreOperation => ({
        kind: 'append',
        log,
        sequence,
        record,
      });
      for (const log of ['a', 'b', 'c']) {
        for (let i = 1; i <= 6; i++) await store.commit([append(log, i)]);
      }
      let makeRoom = await fillDisk(directory);
      await assert.rejects(store.commit([append('a', 7)]), { code: 'storage_full' });
      const results = await Promise.allSettled([
        store.commit([append('a', 7)]),
        store.commit([
          { kind: 'removeUnder', prefix: ['a'] },
          { kind: 'dropLog', log: 'a' },
        ]),
        store.commit([append('b', 7)]),
      ]);
      assert.deepEqual(
        results.map(({ status }) => status),
        ['rejected', 'fulfilled', 'rejected'],
      );
      for (let round = 1; round <= 3; round++) {
        await store.close();
        await tearWrite(data);
        await fillDisk(directory);
        store = await openIn(data);
        await fillDisk(directory);
        // Commits what a checkpoint does.
        await store.commit([
          { kind: 'put', key: ['manifest'], value: new Uint8Array(200).fill(round) },
          { kind: 'trim', log: 'b', throughSequence: round },
        ]);
        await assert.rejects(store.commit([append('b', 7)]), { code: 'storage_full' });
        assert.equal([...store.readLog('b', 0)].length, 6 - round);
      }
      await store.commit([{ kind: 'dropLog', log: 'c' }]);
      assert.deepEqual(
        ['a', 'c'].flatMap((log) => [...store.readLog(log, 0)]),
        [],
      );
      await makeRoom();
      await store.commit([append('b', 7)]);
      // The used part of the reserve is available again.
      makeRoom = await fillDisk(directory);
      store = await diskHarness.reopen(store);
      await store.commit([{ kind: 'dropLog', log: 'b' }]);
      await makeRoom();
      await store.close();
      assert.deepEqual(await findingsIn(data), []);
    });
    if (!isDone) t.skip(SKIPPED);
  });

  it('frees the space of a dropped log at once', async (t) => {
    const isDone = await onSmallDisk(64, async (directory) => {
      const data = join(directory, 'data');
      const store = await openIn(data);
      const emptyBytes = freeBytes(directory);
      await store.commit([{ kind: 'append', log: 'kept', sequence: 1, record }]);
      for (let round = 0; round < 3; round++) {
        const log = `l${round}`;
        await fill(store, log);
        assert.ok(freeBytes(directory) < 10_000_000, `${freeBytes(directory)} bytes`);
        const makeRoom = await fillDisk(directory);
        await store.commit([{ kind: 'dropLog', log }]);
        await makeRoom();
        // The space is freed without another commit. The first log contains a record in use, so it is freed later.
        await eventually('its space is free', () => emptyBytes - freeBytes(directory) < 6_000_000);
      }
      assert.deepEqual(
        [...store.readLog('kept', 0)].map((entry) => entry.record),
        [record],
      );
      await store.close();
      assert.deepEqual(await findingsIn(data), []);
    });
    if (!isDone) t.skip(SKIPPED);
  });

  it('retries a base for which there was no space', async (t) => {
    const isDone = await onSmallDisk(64, async (directory) => {
      const data = join(directory, 'data');
      const warnings: string[] = [];
      const store = await openStore({ directory: data, warn: (text) => warnings.push(text) });
      const value = new Uint8Array(250).fill(3);
      // The next base contains all of it.
      for (let group = 0; group < 20; group++) {
        const puts = Array.from({ length: 1_000 }, (_, i): StoreOperation => {
          return { kind: 'put', key: [`g${group}`, String(i)], value };
        });
        await store.commit(puts);
      }
      for (let i = 1; i <= 20; i++) {
        await store.commit([{ kind: 'append', log: 'l', sequence: i, record }]);
      }
      const makeRoom = await fillDisk(directory, 1_500_000);
      const usedBytes = freeBytes(directory);
      await store.commit([{ kind: 'dropLog', log: 'l' }]);
      await eventually('a base has failed', () => warnings.length > 0);
      assert.match(warnings[0]!, /could not be written to .*journal: ENOSPC.* tried again/);
      assert.ok(freeBytes(directory) <= usedBytes + 2_000_000, 'nothing of it is left');
      await makeRoom();
      const before = freeBytes(directory);
      await eventually('a base is written', async () => {
        await store.commit([{ kind: 'remove', key: ['none'] }]);
        return freeBytes(directory) > before + 3_000_000;
      });
      assert.equal([...store.list([])].length, 20_000);
      assert.equal(warnings.length, 1);
      await store.close();
      assert.deepEqual(await findingsIn(data), []);
    });
    if (!isDone) t.skip(SKIPPED);
  });

  it('reuses the space of trimmed records', async () => {
    const directory = await makeDirectory();
    const store = await openIn(directory, 4_000_000);
    let sequence = 0;
    let bytesMax = 0;
    const sizes = [3_000_000, 1_500, 40_000, 700_000, 200, 250_000];
    for (let round = 0; round < 12; round++) {
      for (let i = 0; i < 24; i++) {
        const log = i % 2 === 0 ? 'even' : 'odd';
        const bytes = new Uint8Array(sizes[i % sizes.length]!);
        await store.commit([{ kind: 'append', log, sequence: ++sequence, record: bytes }]);
      }
      await store.commit([{ kind: 'trim', log: 'odd', throughSequence: sequence }]);
      await store.commit([{ kind: 'trim', log: 'even', throughSequence: sequence }]);
      bytesMax = Math.max(bytesMax, await bytesIn(join(directory, 'journal')));
    }
    await store.close();
    assert.ok(bytesMax < 80_000_000, `${bytesMax} bytes on disk for 16 MB at a time`);
  });
});

async function bytesIn(folder: string): Promise<number> {
  let byteLength = 0;
  // A file may be removed during the loop.
  for (const name of await readdir(folder)) {
    byteLength += (await stat(join(folder, name)).catch(() => ({ size: 0 }))).size;
  }
  return byteLength;
}
