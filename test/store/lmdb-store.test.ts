// The embedded store: the contract, a second process, death by SIGKILL, a full disk.

import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openLmdbStore } from '../../src/store/lmdb-store.js';
import type { Store } from '../../src/store/store.js';
import { storeContract } from './contract.js';

const COMMITTER = fileURLToPath(new URL('./committer.js', import.meta.url));
const directories: string[] = [];
const directoryOf = new WeakMap<Store, string>();

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sagitta-store-'));
  directories.push(directory);
  return directory;
}

async function openIn(directory: string): Promise<Store> {
  const store = await openLmdbStore({ directory });
  directoryOf.set(store, directory);
  return store;
}

after(async () => {
  for (const directory of directories) await rm(directory, { recursive: true, force: true });
});

storeContract('lmdb', {
  open: async () => openIn(await temporaryDirectory()),
  reopen: async (store) => {
    await store.close();
    return openIn(directoryOf.get(store)!);
  },
});

describe('lmdb store', () => {
  it('keeps every acknowledged commit whole when its process is killed', async () => {
    const directory = await temporaryDirectory();
    let last = 0;
    for (let round = 0; round < 4; round++) {
      const child = spawn(process.execPath, [COMMITTER, directory], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const lines = collectLines(child);
      await waitFor(() => lines.includes('ready'));
      await sleep(50 + 97 * round);
      child.kill('SIGKILL');
      await once(child, 'close');
      const acknowledged = lines.filter((line) => line !== 'ready').map(Number);

      const store = await openIn(directory);
      const sequences = [...store.readLog('l', 0)].map(({ sequence, record }) => {
        assert.equal(record.byteLength, 1500);
        assert.ok(record.every((byte) => byte === sequence % 251));
        return sequence;
      });
      assert.deepEqual(
        sequences,
        sequences.map((_, i) => i + 1),
        'no record is missing in the middle',
      );
      const highest = Math.max(last, ...acknowledged);
      assert.ok(
        sequences.length >= highest,
        `${sequences.length} records, ${highest} acknowledged`,
      );
      const count = store.get(['count']);
      assert.equal(Number(count && Buffer.from(count)), sequences.length, 'no half commit');
      last = sequences.length;
      await store.close();
    }
    assert.ok(last > 0);
  });

  it('refuses a directory that another store has open, and takes it when that one is closed', async () => {
    const directory = await temporaryDirectory();
    const first = await openIn(directory);
    await assert.rejects(openLmdbStore({ directory }), {
      code: 'data_directory_locked',
      message: new RegExp(directory),
    });
    await first.close();
    await (await openIn(directory)).close();
  });

  it('lets exactly one of several processes that start at once have the directory', async () => {
    const directory = await temporaryDirectory();
    const children = Array.from({ length: 4 }, () =>
      spawn(process.execPath, [COMMITTER, directory], { stdio: ['ignore', 'pipe', 'pipe'] }),
    );
    const outputs = children.map(collectLines);
    const isDecided = (i: number) =>
      children[i]!.exitCode !== null || outputs[i]!.includes('ready');
    await waitFor(() => children.every((_, i) => isDecided(i)));
    assert.equal(outputs.filter((lines) => lines.includes('ready')).length, 1);
    for (const child of children) {
      if (child.exitCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'close');
    }
  });

  it('deletes what an interrupted blob write left', async () => {
    const directory = await temporaryDirectory();
    await mkdir(join(directory, 'segments', 'c'), { recursive: true });
    await writeFile(join(directory, 'segments', 'c', '1.arrow.unfinished'), 'half');
    const store = await openIn(directory);
    assert.deepEqual(await store.listBlobs(), []);
    assert.deepEqual(await readdir(join(directory, 'segments', 'c')), []);
    await store.close();
  });

  it('refuses a directory of a newer format, naming both versions', async () => {
    const directory = await temporaryDirectory();
    const store = await openIn(directory);
    await store.commit([{ kind: 'put', key: ['store', 'format'], value: Buffer.from('99') }]);
    await store.close();
    await assert.rejects(openLmdbStore({ directory }), {
      code: 'configuration_invalid',
      message: /format version 99.*version 1/,
    });
  });

  it('uses the room of trimmed records again', async () => {
    const directory = await temporaryDirectory();
    const store = await openIn(directory);
    const record = new Uint8Array(100_000).fill(1);
    let sequence = 0;
    const fill = async () => {
      for (let i = 0; i < 100; i++) {
        await store.commit([{ kind: 'append', log: 'l', sequence: ++sequence, record }]);
      }
      await store.commit([{ kind: 'trim', log: 'l', throughSequence: sequence }]);
      await sleep(50);
    };
    for (let round = 0; round < 6; round++) await fill();
    await store.close();
    const bytesOnDisk = Number(execFileSync('du', ['-sb', directory]).toString().split('\t')[0]);
    assert.ok(bytesOnDisk < 40_000_000, `${bytesOnDisk} bytes on disk for 10 MB at a time`);
  });

  it('answers a full disk with storage_full, writes nothing, and goes on when there is room', async (t) => {
    const directory = await temporaryDirectory();
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', directory], {
        stdio: 'ignore',
      });
    } catch {
      return t.skip('mounting a small tmpfs is not permitted here');
    }
    try {
      const store = await openIn(directory);
      const record = new Uint8Array(400_000).fill(1);
      let sequence = 0;
      const fill = async () => {
        for (; sequence < 100; sequence++) {
          await store.commit([
            { kind: 'append', log: 'l', sequence: sequence + 1, record },
            { kind: 'put', key: ['count'], value: Buffer.from(String(sequence + 1)) },
          ]);
        }
      };
      await assert.rejects(fill(), { code: 'storage_full' });
      assert.equal([...store.readLog('l', 0)].length, sequence);
      assert.equal(Buffer.from(store.get(['count'])!).toString(), String(sequence));
      await assert.rejects(store.writeBlob('c/1', [new Uint8Array(8_000_000)]), {
        code: 'storage_full',
      });
      assert.deepEqual(await store.listBlobs(), []);
      execFileSync('mount', ['-o', 'remount,size=64m', directory]);
      await store.commit([{ kind: 'append', log: 'l', sequence: sequence + 1, record }]);
      await store.writeBlob('c/1', [new Uint8Array(8_000_000)]);
      assert.equal([...store.readLog('l', 0)].length, sequence + 1);
      await store.close();
    } finally {
      execFileSync('umount', [directory]);
    }
    return undefined;
  });
});

function collectLines(child: ChildProcess): string[] {
  const lines: string[] = [];
  let rest = '';
  child.stdout!.on('data', (chunk: Buffer) => {
    const parts = (rest + chunk.toString()).split('\n');
    rest = parts.pop()!;
    lines.push(...parts);
  });
  return lines;
}

async function waitFor(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('waited 20 s in vain');
    await sleep(10);
  }
}
