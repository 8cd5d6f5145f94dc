// Files that nodes share before a record of a log names them: whoever encodes rows uploads the file, and the owner of the
// log commits a record with its name and digest. They are among the blobs of the snapshots, which use them unchanged.

import type { FileSharing, FileToShare, PresentFile } from '../../storage/commit-log.js';
import type { Store } from '../../storage/store.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import type { FileFetcher } from './file-fetcher.js';
import type { SharedFile } from './log-state.js';
import { sharedFileName, sharedFilePosition } from './snapshot-files.js';
import { readSnapshotRecord } from './snapshot-record.js';

export interface SharedFilesOptions {
  readonly store: Store;
  readonly blobs: SealedBlobs;
  readonly fetcher: FileFetcher;
  /** See `FileSharing.homeKeyFor`. */
  readonly homeKeyFor: FileSharing['homeKeyFor'];
  /** The position up to which this node has applied a log. */
  readonly positionOf: (log: string) => number;
  /** Aborted when the node closes. */
  readonly signal: AbortSignal;
}

export class SharedFiles implements FileSharing {
  readonly #options: SharedFilesOptions;

  constructor(options: SharedFilesOptions) {
    this.#options = options;
  }

  homeKeyFor(incarnation: string, present: readonly PresentFile[]): string {
    return this.#options.homeKeyFor(incarnation, present);
  }

  async upload(
    log: string,
    { digest }: FileToShare,
    { parts, blockDigests }: Parameters<FileSharing['upload']>[2],
  ): Promise<string> {
    const { blobs, positionOf } = this.#options;
    const blob = sharedFileName(log, positionOf(log), digest);
    await blobs.putPinned(blob, parts, blockDigests);
    return blob;
  }

  fetch(
    log: string,
    { byteLength: byteCount, ...file }: SharedFile,
    target: Parameters<FileSharing['fetch']>[2],
  ): Promise<void> {
    const { fetcher, signal } = this.#options;
    return fetcher.fetch(log, { ...file, byteCount }, { ...target, signal });
  }

  mayName(log: string, blob: string): boolean {
    const newest = readSnapshotRecord(this.#options.store, log)?.position ?? 0;
    return (sharedFilePosition(blob) ?? -1) >= newest;
  }

  remove(blob: string): Promise<void> {
    return this.#options.blobs.remove(blob);
  }
}
