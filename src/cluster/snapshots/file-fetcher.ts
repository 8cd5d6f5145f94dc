// Fetches shared files into the store of a node: whole files, or of those that other nodes keep only the blocks that every
// read needs.

import { BLOCK_BYTES, blockCountOf, bytesOfBlock } from '../../platform/blocks.js';
import type { Store } from '../../storage/store.js';
import type { BlockName } from '../blobs/block-source.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import type { FileShape } from './log-state.js';
import type { SnapshotBlob } from './snapshot-files.js';

export interface FileFetcherOptions {
  readonly store: Store;
  readonly blobs: SealedBlobs;
  /** Whether this node is one of those that keep all of a file with this key. */
  readonly isHome: (log: string, homeKey: string) => boolean;
}

/** A file to fetch. */
type WantedFile = SnapshotBlob & FileShape;

interface Target {
  /** The name that the file gets in the store. */
  readonly name: string;
  /** Its bytes, if they are here; null reads the shared file. */
  readonly parts: readonly Uint8Array[] | null;
  readonly signal: AbortSignal;
}

export class FileFetcher {
  readonly #options: FileFetcherOptions;

  constructor(options: FileFetcherOptions) {
    this.#options = options;
  }

  /** Whether this node keeps all of a file. */
  isWhole(log: string, { byteCount, kept, homeKey }: WantedFile): boolean {
    const { store, isHome } = this.#options;
    if (!store.canPartial || isHome(log, homeKey)) return true;
    return kept.reduce((sum, { count }) => sum + count, 0) >= blockCountOf(byteCount);
  }

  /** Writes a shared file that belongs to a log to the store. Throws `data_corrupt`. */
  async fetch(log: string, file: WantedFile, { name, parts, signal }: Target): Promise<void> {
    signal.throwIfAborted();
    const { store, blobs } = this.#options;
    const { blob, byteCount, digest, kept } = file;
    const blocks =
      parts === null
        ? await blobs.openPinned(blob, file)
        : { read: async (block: number) => blockIn(parts, byteCount, block), readAll: () => parts };
    if (this.isWhole(log, file)) {
      await store.writeBlob(name, blocks.readAll());
      return;
    }
    const source: BlockName = { blob, byteCount, digest };
    await store.writePartialBlob(name, {
      byteLength: byteCount,
      kept,
      source: JSON.stringify(source),
      read: async (block) => {
        signal.throwIfAborted();
        return blocks.read(block);
      },
    });
  }
}

/** A block of the concatenated parts. */
function blockIn(parts: readonly Uint8Array[], byteCount: number, block: number): Uint8Array {
  const bytes = new Uint8Array(bytesOfBlock(byteCount, block));
  const from = block * BLOCK_BYTES;
  let start = 0;
  for (const part of parts) {
    const first = Math.max(from, start);
    const end = Math.min(from + bytes.length, start + part.length);
    if (first < end) bytes.set(part.subarray(first - start, end - start), first - from);
    start += part.length;
  }
  return bytes;
}
