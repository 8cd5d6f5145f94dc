// Segment files that are written before a log names them. A node seals rows that it received in bulk, writes their file
// and shares it; then the owner of the log commits a record with its name and digest, and all nodes add the same segment.
// The store names such a file, no later than it contains the record, by the sequence of the write, until a checkpoint
// names it in the manifest.

import { assert, SagittaError } from '../../common/errors.js';
import type { RowEncoder } from '../../common/types.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { SharedSegment } from '../../segment/log-record.js';
import type { Segment } from '../../segment/segment.js';
import { encodeSegmentTask } from '../../segment/segment-file.js';
import type { FileSharing } from '../../storage/commit-log.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import { keys, segmentBlobName } from '../layout/keys.js';
import { type AddedFile, encodeJson } from '../layout/manifest.js';
import { addedFileOperation } from '../layout/store-layout.js';
import type { Rows } from './rows.js';
import { readStoredSegment } from './stored-segment.js';

export interface AddedFilesOptions {
  readonly store: Store;
  readonly pool: WorkerPool;
  readonly encoder: RowEncoder | null;
  readonly incarnation: string;
  readonly rows: Rows;
  /** Null without a cluster, where no file is added. */
  readonly sharing: FileSharing | null;
  /** The files whose rows were added and that no manifest names, by sequence. */
  readonly named: ReadonlyMap<number, AddedFile>;
}

/** A file that is in the store of this node while the record that adds its rows is not. */
export interface StagedFile {
  readonly file: SharedSegment;
  readonly segment: Segment;
}

export class AddedFiles {
  readonly #options: AddedFilesOptions;
  readonly #named: Map<number, AddedFile>;
  /** By the names of their blobs. */
  readonly #staged = new Map<string, Promise<StagedFile>>();
  /** The numbers of segments whose files are staged, or being staged. */
  readonly #stagedNumbers = new Set<number>();

  constructor(options: AddedFilesOptions) {
    this.#options = options;
    this.#named = new Map(options.named);
  }

  /** The files whose rows were added and that no manifest names, in the order of their writes. */
  get named(): readonly AddedFile[] {
    return [...this.#named.values()];
  }

  /** Those of writes up to a sequence. */
  namedThrough(sequence: number): readonly AddedFile[] {
    return this.named.filter((file) => file.sequence <= sequence);
  }

  /** The numbers of all segments with files that no manifest names but that must stay. */
  get numbers(): Iterable<{ readonly number: number }> {
    return [...this.named, ...Array.from(this.#stagedNumbers, (number) => ({ number }))];
  }

  /** Writes the file of a sealed segment and shares it. The record of the file may be committed when this resolves. */
  async share(segment: Segment): Promise<SharedSegment> {
    const { pool, incarnation, rows } = this.#options;
    const { parts, blockDigests, digest, byteLength, checksum, kept } = await pool.run(
      encodeSegmentTask,
      { data: segment.toStoredData(), hasDigest: true },
    );
    const { rowCount } = segment;
    const files = rows.segments.filter(({ isSealed }) => isSealed);
    const homeKey = this.#sharing.homeKeyFor(incarnation, files);
    const shape = { rowCount, byteLength, checksum, digest: digest!, kept, homeKey };
    const content = { parts, blockDigests: blockDigests! };
    const blob = await this.#sharing.upload(incarnation, shape, content).catch(unshared);
    const file = { ...shape, blob };
    try {
      await this.#stage(file, parts);
    } catch (error) {
      await this.#sharing.remove(blob).catch(() => {});
      throw error;
    }
    return file;
  }

  /** Puts a file into the store of this node, unless it is there. Rejects like `FileSharing.fetch`. */
  stage(file: SharedSegment): Promise<StagedFile> {
    return this.#staged.get(file.blob) ?? this.#stage(file, null);
  }

  #stage(file: SharedSegment, parts: readonly Uint8Array[] | null): Promise<StagedFile> {
    const staging = this.#fetch(file, parts);
    this.#staged.set(file.blob, staging);
    staging.catch(() => this.#staged.delete(file.blob));
    return staging;
  }

  async #fetch(file: SharedSegment, parts: readonly Uint8Array[] | null): Promise<StagedFile> {
    const { store, incarnation, rows, encoder } = this.#options;
    const number = rows.takeSegmentNumber();
    const name = segmentBlobName(incarnation, number);
    this.#stagedNumbers.add(number);
    try {
      await this.#sharing.fetch(incarnation, file, { name, parts });
      const { byteLength, homeKey } = file;
      const entry = { number, byteLength, homeKey, sequence: null };
      const { segment } = await readStoredSegment(store, name, entry, rows.segmentKey(number));
      await segment.encode(encoder);
      segment.shareBases(rows.segments);
      return { file, segment };
    } catch (error) {
      await store.removeBlob(name).catch(() => {});
      this.#stagedNumbers.delete(number);
      throw error;
    }
  }

  /** Whether the log may still name a file. */
  mayName({ blob }: SharedSegment): boolean {
    return this.#sharing.mayName(this.#options.incarnation, blob);
  }

  /** Gives the rows of a staged file their sequence. The operation must be stored no later than the record. */
  naming({ file, segment }: StagedFile, sequence: number): StoreOperation {
    segment.insertAt(sequence);
    return this.#entryOf(file, segment, sequence).operation;
  }

  /** Names a staged file in the store before the record of the sequence is committed. */
  async nameAhead(staged: StagedFile, sequence: number): Promise<void> {
    await this.#options.store.commit([this.naming(staged, sequence)]);
  }

  /** Names a file again whose rows were added although the store could not accept the record; empty for other writes. */
  namingAgain(sequence: number): StoreOperation[] {
    const file = this.#named.get(sequence);
    if (file === undefined) return [];
    const key = keys.addedFile(this.#options.incarnation, sequence);
    return [{ kind: 'put', key, value: encodeJson(file) }];
  }

  #entryOf(file: SharedSegment, { number }: Segment, sequence: number) {
    return addedFileOperation(this.#options.incarnation, file, { number, sequence });
  }

  /** Adds the rows of a staged file, whose record was committed. */
  apply({ file, segment }: StagedFile, sequence: number): void {
    this.#options.rows.applyFile(segment);
    this.#named.set(sequence, this.#entryOf(file, segment, sequence).entry);
    this.#staged.delete(file.blob);
    this.#stagedNumbers.delete(segment.number);
  }

  /**
   * Removes a file whose record was not committed, from the store and, if `isOwn`, from the shared files. `sequence` is
   * that of the record which failed; null if there was none.
   */
  async discard(
    file: SharedSegment,
    { sequence, isOwn }: { readonly sequence: number | null; readonly isOwn: boolean },
  ): Promise<void> {
    const { store, incarnation } = this.#options;
    const staging = this.#staged.get(file.blob);
    this.#staged.delete(file.blob);
    // Before the first await, so that it cannot remove the entry of the next write.
    const unnaming =
      sequence === null
        ? null
        : store.commit([{ kind: 'remove', key: keys.addedFile(incarnation, sequence) }]);
    if (isOwn) await this.#sharing.remove(file.blob);
    await unnaming;
    const staged = await staging?.catch(() => null);
    if (staged == null) return;
    await store.removeBlob(segmentBlobName(incarnation, staged.segment.number));
    this.#stagedNumbers.delete(staged.segment.number);
  }

  /** The operations that go with a manifest whose files contain everything up to a sequence. */
  unnaming(checkpointSequence: number): StoreOperation[] {
    const { store, incarnation } = this.#options;
    return [...store.list(keys.addedFiles(incarnation))]
      .filter(({ key }) => Number(key[2]) <= checkpointSequence)
      .map(({ key }) => ({ kind: 'remove', key }));
  }

  /** Called when these operations are stored. */
  unnamed(checkpointSequence: number): void {
    for (const { sequence } of this.namedThrough(checkpointSequence)) this.#named.delete(sequence);
  }

  get #sharing(): FileSharing {
    const { sharing } = this.#options;
    assert(sharing !== null, 'only in a cluster are files added');
    return sharing;
  }
}

/** Rejects with `no_leader`, after which a write can be repeated, unless the shared files have given another reason. */
export function unshared(cause: Error): never {
  if (cause instanceof SagittaError) throw cause;
  throw new SagittaError(
    'no_leader',
    `The shared files of the cluster did not answer (${cause.message}). Nothing was written. Retry after 1 s.`,
    { cause, retryAfterSeconds: 1 },
  );
}
