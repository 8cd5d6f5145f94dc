// Helpers for the tests of backups.

import type { DiskStore, ListEntries } from '../../src/storage/store.js';
import { openIn } from './directories.js';

export const bytes = (text: string) => new Uint8Array(Buffer.from(text));
export const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

/** The stored value `blobs` lists the blobs that belong to the backup. */
export const choose = async (list: ListEntries) => {
  const [entry] = [...list(['blobs'])];
  return { blobNames: text(entry?.value)?.split(' ') ?? [], collectionCount: 1 };
};
export const nameBlobs = (...names: string[]) =>
  ({ kind: 'put', key: ['blobs'], value: bytes(names.join(' ')) }) as const;

export async function openDisk(directory: string): Promise<DiskStore> {
  return (await openIn(directory)) as DiskStore;
}
