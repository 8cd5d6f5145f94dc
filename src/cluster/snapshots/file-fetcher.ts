// Fetches files of snapshots into the store of a node: whole files, or of those that other nodes keep only the blocks that
// every read needs.

import { blockCountOf } from '../../platform/blocks.js';
import type { Store } from '../../storage/store.js';
import type { BlockName } from '../blobs/block-source.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import type { SnapshotFiles, StoredFile } from './snapshot-files.js';

export interface FileFetcherOptions {
  readonly store: Store;
  readonly blobs: SealedBlobs;
  /** Whether this node is one of those that keep all of the file with this first sequence. */
  readonly isHome: (log: string, firstSequence: number) => boolean;
}

export class FileFetcher {
  readonly #options: FileFetcherOptions;

  constructor(options: FileFetcherOptions) {
    this.#options = options;
  }

  /** Whether this node keeps all of a file. */
  isWhole(log: string, { byteCount, kept, firstSequence }: StoredFile): boolean {
    const { store, isHome } = this.#options;
    if (!store.canPartial || isHome(log, firstSequence)) return true;
    return kept.reduce((sum, { count }) => sum + count, 0) >= blockCountOf(byteCount);
  }

  /** Writes a file of a snapshot of a log to the store, under a name. Throws `data_corrupt`. */
  async fetch(
    log: string,
    files: SnapshotFiles,
    file: StoredFile,
    { name, signal }: { readonly name: string; readonly signal: AbortSignal },
  ): Promise<void> {
    signal.throwIfAborted();
    const { store, blobs } = this.#options;
    if (this.isWhole(log, file)) {
      await store.writeBlob(name, [await files.readFile(file)]);
      return;
    }
    const { blob, byteCount, digest, kept } = file;
    const blocks = await blobs.openPinned(blob, file);
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
