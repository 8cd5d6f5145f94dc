// The segment files of a collection and the manifest that names them, which is replaced in one transaction with what
// goes with it. Only maintenance changes them, one step at a time.

import type { WorkerPool } from '../../platform/pool.js';
import type { Segment } from '../../segment/segment.js';
import { decodeSegment, encodeSegmentTask } from '../../segment/segment-file.js';
import { encodeDeletions } from '../../segment/stored-tables.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import { keys, segmentBlobName } from '../layout/keys.js';
import {
  decodeJson,
  encodeJson,
  FORMAT_VERSION,
  type Manifest,
  type ManifestSegment,
  removeUnnamedBlobs,
} from '../layout/manifest.js';
import type { AddedFiles } from './added-files.js';
import { readStoredSegment } from './stored-segment.js';

export interface CollectionFilesOptions {
  readonly store: Store;
  readonly pool: WorkerPool;
  readonly incarnation: string;
  readonly manifest: Manifest;
  readonly added: AddedFiles;
  /** Whether other nodes may read the files, which they find by their digests. */
  readonly areShared: boolean;
  /** Resolves when the store contains what was applied to memory. */
  readonly whenStored: () => Promise<void> | undefined;
  /** Called when a manifest is about to be committed. */
  readonly onCommitting: () => void;
}

export class CollectionFiles {
  readonly #options: CollectionFilesOptions;
  #manifest: Manifest;
  #writtenBytes = 0;
  #isCommitting = false;

  constructor(options: CollectionFilesOptions) {
    this.#options = options;
    this.#manifest = options.manifest;
  }

  get manifest(): Manifest {
    return this.#manifest;
  }

  /** The files of the manifest, and those that writes up to a sequence have added since. */
  namedThrough(sequence: number): readonly ManifestSegment[] {
    return [...this.#manifest.segments, ...this.#options.added.namedThrough(sequence)];
  }

  /** Whether a manifest is being committed, which waits for writes that are being applied. */
  get isCommitting(): boolean {
    return this.#isCommitting;
  }

  /** Bytes of the files that were named since the collection was loaded, except files that were shared before. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  nameOf(number: number): string {
    return segmentBlobName(this.#options.incarnation, number);
  }

  /** Writes the file of a segment, which no manifest names yet. */
  async write(segment: Segment): Promise<ManifestSegment> {
    const { pool, store, areShared } = this.#options;
    const { parts, byteLength, checksum, digest, kept } = await pool.run(encodeSegmentTask, {
      data: segment.toStoredData(),
      hasDigest: areShared,
    });
    await store.writeBlob(this.nameOf(segment.number), parts);
    const { number, rowCount, homeKey } = segment;
    const shape = { rowCount, byteLength, checksum, digest, kept, homeKey };
    return { number, ...shape, blob: null, sequence: null };
  }

  /** The segment in a file that was written by another node. Throws `data_corrupt`. */
  async read(entry: ManifestSegment, key: string): Promise<Segment> {
    const name = this.nameOf(entry.number);
    return (await readStoredSegment(this.#options.store, name, entry, key)).segment;
  }

  /** Frees the memory of a segment whose file can be mapped. The checksum was computed from the same bytes. */
  async mapSegment(segment: Segment): Promise<void> {
    const { key, number } = segment;
    const mapping = await this.#options.store.mapBlob(this.nameOf(number));
    if (mapping !== null) segment.switchTo(decodeSegment(mapping.bytes, { key, number }, mapping));
  }

  /** The operations that store the deletions in a segment after a sequence, up to and including another. */
  deletions(segment: Segment, after: number, through: number): StoreOperation[] {
    const entries = segment.deletionsBetween(after, through);
    if (entries.rows.length === 0) return [];
    const key = keys.deletions(this.#options.incarnation, segment.number, through);
    return [{ kind: 'put', key, value: encodeDeletions(entries) }];
  }

  /** The operations that remove the stored deletions of segments. */
  withoutDeletions(segments: readonly Segment[]): StoreOperation[] {
    return segments.map(({ number }) => ({
      kind: 'removeUnder',
      prefix: keys.deletionsOfSegment(this.#options.incarnation, number),
    }));
  }

  /** Replaces the manifest in a transaction with other operations. */
  async commit(manifest: Manifest, operations: readonly StoreOperation[]): Promise<void> {
    this.#isCommitting = true;
    this.#options.onCommitting();
    try {
      await this.#commit(manifest, operations);
    } finally {
      this.#isCommitting = false;
    }
  }

  async #commit(manifest: Manifest, operations: readonly StoreOperation[]): Promise<void> {
    const { store, incarnation, added, whenStored } = this.#options;
    const next: Manifest = { ...manifest, formatVersion: FORMAT_VERSION };
    // The files contain what was applied to memory, which the store must contain first.
    await whenStored();
    await store.commit([
      { kind: 'put', key: keys.manifest(incarnation), value: encodeJson(next) },
      ...operations,
      ...added.unnaming(next.checkpointSequence),
    ]);
    added.unnamed(next.checkpointSequence);
    const before = new Set(this.#manifest.segments.map(({ number }) => number));
    for (const { number, byteLength, blob } of next.segments) {
      if (!before.has(number) && blob === null) this.#writtenBytes += byteLength;
    }
    this.#manifest = next;
  }

  /** Removes the files of segments that the manifest does not name any more. */
  async remove(segments: readonly Segment[]): Promise<void> {
    for (const { number } of segments) await this.#options.store.removeBlob(this.nameOf(number));
  }

  /** Removes files whose commit failed, because later attempts do not reuse them and disk space may be short. */
  async removeUnnamed(): Promise<void> {
    const { store, incarnation, added } = this.#options;
    const stored = store.get(keys.manifest(incarnation));
    // If it is unknown whether a commit reached the disk, the next start may read either manifest.
    const manifests = [this.#manifest];
    if (stored !== undefined) manifests.push(decodeJson<Manifest>(stored, 'The manifest'));
    const named = manifests.flatMap(({ segments }) => segments);
    await removeUnnamedBlobs(store, incarnation, [...named, ...added.numbers]);
  }
}
