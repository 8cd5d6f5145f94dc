// Blocks of shared files, for the thread of the store that fetches what this node does not keep. The thread loads this
// module by its URL and verifies each block.

import type { BlobStoreSettings } from '../../platform/settings.js';
import type { BlockSource } from '../../storage/block-source.js';
import type { Blobs } from './blobs.js';
import { openBlobs } from './open-blobs.js';
import { type BlobDigest, openPinned, type PinnedBlocks } from './pinned-blobs.js';

/** Names a file for the source, as JSON. */
export interface BlockName extends BlobDigest {
  readonly blob: string;
}

/** Files whose digests of blocks are remembered, 32 bytes for each MiB. */
const FILES_MAX = 1_000;

/** Called by the thread with the settings of the shared files. */
export async function openBlockSource(data: unknown): Promise<BlockSource> {
  const blobs = await openBlobs(data as BlobStoreSettings);
  const files = new Map<string, PinnedBlocks>();
  const open = async ({ blob, digest, byteCount }: BlockName) => {
    const known = files.get(digest);
    if (known !== undefined) return known;
    const expected = { byteCount, digest };
    const found = await openPinned(blobs, blob, expected).catch(async () =>
      openPinned(blobs, await currentName(blobs, blob), expected),
    );
    if (files.size >= FILES_MAX) files.delete(files.keys().next().value!);
    files.set(digest, found);
    return found;
  };
  return {
    async read(source, block) {
      const name = JSON.parse(source) as BlockName;
      const file = await open(name);
      try {
        return await file.read(block);
      } catch (error) {
        // The file may have been uploaded again, under another name, and removed.
        files.delete(name.digest);
        throw error;
      }
    },
  };
}

/**
 * The name under which the same file exists now. A name ends with the digest and a text that differs by upload. The file
 * of a clone may have been uploaded for the collection that it was made from, which was deleted since, and for itself.
 */
async function currentName(blobs: Blobs, blob: string): Promise<string> {
  const prefix = blob.slice(0, blob.lastIndexOf('-') + 1);
  for await (const name of blobs.list(prefix)) return name;
  const end = prefix.slice(prefix.lastIndexOf('/'));
  for await (const name of blobs.list(blob.slice(0, blob.indexOf('/') + 1))) {
    if (name.includes(end)) return name;
  }
  return blob;
}
