// Temporary data directories of tests, removed when the process ends: several files share it, and some directories.

import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { restoreBackup } from '../../src/storage/backup.js';
import { openStore } from '../../src/storage/open-store.js';
import type { Store } from '../../src/storage/store.js';
import type { StoreHarness } from './contract.js';
import { SourceControl } from './made-blocks.js';

const made: string[] = [];
const directoryOf = new WeakMap<Store, string>();

process.once('exit', () => {
  for (const directory of made) rmSync(directory, { recursive: true, force: true });
});

export async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sagitta-store-'));
  made.push(directory);
  return directory;
}

export async function openIn(directory: string, logBytesMax?: number): Promise<Store> {
  const store = await openStore({
    directory,
    blocks: {
      module: new URL('./made-blocks.js', import.meta.url).href,
      data: new SourceControl().shared,
    },
    ...(logBytesMax !== undefined && { logBytesMax }),
  });
  directoryOf.set(store, directory);
  return store;
}

/** Opens a copy of the backup. */
export async function openRestored(backup: string): Promise<Store> {
  const directory = join(await makeDirectory(), 'restored');
  await restoreBackup(backup, directory);
  return openIn(directory);
}

/** Disk stores with logs of this size, or of the usual size. */
export function diskHarnessOf(logBytesMax?: number): StoreHarness {
  return {
    open: async () => openIn(await makeDirectory(), logBytesMax),
    reopen: async (store) => {
      await store.close();
      return openIn(directoryOf.get(store)!, logBytesMax);
    },
  };
}

export const diskHarness = diskHarnessOf();

/** Calls `use` with a directory on a disk of this size; returns false if such a disk cannot be created. */
export async function onSmallDisk(
  megabytes: number,
  use: (directory: string, resize: (megabytes: number) => void) => Promise<void>,
): Promise<boolean> {
  const directory = await makeDirectory();
  const mount = (options: string) =>
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', directory], { stdio: 'ignore' });
  try {
    mount(`size=${megabytes}m`);
  } catch {
    return false;
  }
  try {
    await use(directory, (newMegabytes) => mount(`remount,size=${newMegabytes}m`));
  } finally {
    execFileSync('umount', [directory]);
  }
  return true;
}
