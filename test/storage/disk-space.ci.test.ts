// The embedded store on full disks, and the space that it gives back.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadNativeFiles } from '../../src/platform/native-files.js';
import { RESERVE_FILE } from '../../src/storage/space-reserve.js';
import type { Store } from '../../src/storage/store.js';
import { type Finding, StoreInspection } from '../../src/storage/store-inspection.js';
import { diskHarness, makeDirectory, onSmallDisk, openIn } from './directories.js';
import { liveRandomly } from './random-history.js';

/** Of the file system and the addon: without them dropped logs keep their space. */
const NO_HOLES = 'no addon that makes holes in files';

function mayMakeHoles(): boolean {
  const native = loadNativeFiles();
  return typeof native === 'object' && native.makeHole !== undefined;
}

describe('an embedded store and the space on its disk', () => {
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
      store = await diskHarness.reopen(store);
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
    if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
  });

  it('drops logs on a disk that others have filled, and reserves the space for it again', async (t) => {
    const isDone = await onSmallDisk(32, async (directory) => {
      const data = join(directory, 'data');
      let store = await openIn(data);
      const reservedBytes = async () =>
        (await stat(join(data, RESERVE_FILE)).catch(() => undefined))?.size ?? 0;
      for (const log of ['a', 'b']) {
        for (let i = 0; i < 6; i++) {
          await store.commit([{ kind: 'append', log, sequence: i + 1, record }]);
        }
      }
      const ballast = join(directory, 'ballast');
      await writeFile(ballast, Buffer.alloc(32_000_000)).catch(() => {});
      const put = { kind: 'put', key: ['k'], value: new Uint8Array([1]) } as const;
      await assert.rejects(store.commit([put]), { code: 'storage_full' });
      assert.ok((await reservedBytes()) > 0);
      const results = await Promise.allSettled([
        store.commit([put]),
        store.commit([
          { kind: 'removeUnder', prefix: ['a'] },
          { kind: 'dropLog', log: 'a' },
        ]),
        store.commit([{ kind: 'dropLog', log: 'b' }]),
      ]);
      assert.deepEqual(
        results.map(({ status }) => status),
        ['rejected', 'fulfilled', 'fulfilled'],
      );
      store = await diskHarness.reopen(store);
      assert.deepEqual([...store.readLog('a', 0), ...store.readLog('b', 0)], []);
      await rm(ballast);
      await store.commit([put]);
      assert.ok((await reservedBytes()) > 0, 'the space is not reserved again');
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
