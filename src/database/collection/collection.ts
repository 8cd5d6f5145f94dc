// A collection in memory: its rows, its single writer, its sequence and the retained snapshots. Reads take a
// snapshot at the current sequence and never wait for writes; writes go through the writer and are visible when
// their promise resolves.

import type { Clock } from '../../common/clock.js';
import {
  type FieldPath,
  field,
  type IssueLocation,
  SagittaError,
  validationError,
} from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { Milestones } from '../../common/milestones.js';
import {
  BIT_METRICS,
  type FieldShape,
  type JsonObject,
  type Metric,
  type VectorShape,
} from '../../common/types.js';
import {
  type MultiVector,
  type SparseVector,
  UNNAMED,
  type Vector,
  type VectorKind,
} from '../../common/vectors.js';
import type { FilterNode } from '../../filter/filter-node.js';
import { parseFilter } from '../../filter/parse.js';
import type { Segment } from '../../segment/segment.js';
import type { CommitLog } from '../../storage/commit-log.js';
import type { Store } from '../../storage/store.js';
import type { CommitTimings, Include, VectorRecord } from '../api/database-api.js';
import type { DatabaseObserver } from '../api/observer.js';
import type { IncludeMetadata } from '../api/query-api.js';
import type { CollectionDefinition } from '../layout/manifest.js';
import type { AddedFiles } from './added-files.js';
import { type Expiries, NEVER } from './expiries.js';
import type { FileGuard } from './file-guard.js';
import type { RowAddress, Rows, SegmentBlocks } from './rows.js';
import { selectMetadata } from './selected-metadata.js';
import { type Snapshot, takeSnapshot } from './snapshot.js';
import { namesOfColumns } from './vector-changes.js';
import { type Followed, type RecordMark, type Write, Writer } from './writer.js';

/** The vectors of a row. */
type VectorsOfRow = Pick<VectorRecord, 'values' | 'vectors' | 'sparseVectors'>;

/** The shape of the vector that a query compares. */
export interface SearchedVector extends VectorShape {
  /** The name of the vector; '' for the unnamed one. */
  readonly using: string;
}

interface CollectionOptions {
  readonly definition: CollectionDefinition;
  readonly rows: Rows;
  readonly expiries: Expiries;
  readonly addedFiles: AddedFiles;
  readonly guard: FileGuard;
  readonly log: CommitLog;
  readonly store: Store;
  readonly clock: Clock;
  readonly limits: Pick<Limits, 'retentionMs' | 'queuedWritesMax'>;
  /** The sequence of the last applied write. */
  readonly sequence: number;
  readonly horizonSequence: number;
  readonly writtenAtMs: number;
  /** Called after each commit, to start maintenance that is due. */
  readonly onCommitted: () => void;
  /** Called with the blocks of a segment that dropping vectors has removed. */
  readonly unloadSegment: (dropped: SegmentBlocks) => void;
  /** Delays a commit so that writes are not faster than maintenance; undefined for no delay. */
  readonly whenRoom: () => Promise<void> | undefined;
  readonly observer: DatabaseObserver;
}

export class Collection {
  readonly rows: Rows;
  readonly expiries: Expiries;
  readonly addedFiles: AddedFiles;
  readonly #options: CollectionOptions;
  readonly #writer: Writer;
  readonly #history: SequenceHistory;
  readonly #visible: Milestones;
  readonly #pins = new Set<{ readonly sequence: number }>();
  #definition: CollectionDefinition;
  #sequence: number;
  #horizonSequence: number;
  #writtenAtMs: number;

  constructor(options: CollectionOptions) {
    this.#options = options;
    this.rows = options.rows;
    this.expiries = options.expiries;
    this.addedFiles = options.addedFiles;
    this.#definition = options.definition;
    this.#sequence = options.sequence;
    this.#horizonSequence = options.horizonSequence;
    this.#writtenAtMs = options.writtenAtMs;
    this.#visible = new Milestones(options.sequence);
    this.#history = new SequenceHistory(options.limits.retentionMs);
    this.#history.add(options.clock.now(), options.sequence);
    this.#writer = new Writer({
      ...options,
      onApplied: (last) => this.#advance(last),
      waitingMax: options.limits.queuedWritesMax,
      requireIntact: () => this.requireIntact(),
      stage: (batches) => this.rows.stage(batches.map((batch) => ({ batch, from: 0 }))),
    });
  }

  get definition(): CollectionDefinition {
    return this.#definition;
  }

  get incarnation(): string {
    return this.#definition.incarnation;
  }

  /** The default expiry of a vector that is written at this time. */
  expiresAtMsOf(timeMs: number): number {
    const { ttlSeconds } = this.#definition;
    return ttlSeconds == null ? NEVER : timeMs + 1_000 * ttlSeconds;
  }

  /** The sequence of the last visible write. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Snapshots before this sequence can no longer be read. */
  get horizonSequence(): number {
    return this.#horizonSequence;
  }

  get writtenAtMs(): number {
    return this.#writtenAtMs;
  }

  /** Called by the catalogue when the new definition is on disk. */
  redefine(definition: CollectionDefinition): void {
    this.#definition = definition;
    const dropped = this.rows.redefineVectors(namesOfColumns(definition));
    if (dropped.length === 0) return;
    for (const segment of dropped) this.#options.unloadSegment(segment);
    // Maintenance rewrites the files that contain dropped vectors.
    this.#options.onCommitted();
  }

  /** Throws `vector_not_found` if a vector is no longer in its column. */
  requireVectorsOf({ columns }: { readonly columns: ReadonlyMap<string, string> }): void {
    for (const [name, column] of columns) {
      if (this.rows.columnOf(name) === column) continue;
      throw new SagittaError(
        'vector_not_found',
        `The vector "${name}" of collection "${this.#definition.id}" was dropped while it was read.`,
      );
    }
  }

  /** Called by maintenance when a manifest with this horizon is on disk. */
  raiseHorizon(sequence: number): void {
    this.#horizonSequence = Math.max(this.#horizonSequence, sequence);
  }

  /** The oldest sequence that pins and cursors may still read. */
  retainedSince(): number {
    return Math.min(this.pinnedSince(), this.#history.horizon(this.#options.clock.now()));
  }

  /** The oldest sequence that requests are reading; infinity for none. */
  pinnedSince(): number {
    let sequence = Number.POSITIVE_INFINITY;
    for (const pin of this.#pins) sequence = Math.min(sequence, pin.sequence);
    return sequence;
  }

  /** Retains the snapshot at this sequence, which must be readable. Returns the function that releases it. */
  pin(sequence: number): () => void {
    const pin = { sequence };
    this.#pins.add(pin);
    return () => this.#pins.delete(pin);
  }

  /**
   * Resolves when the checksums of all files are verified; undefined if they already are.
   * Rejects with `data_corrupt`.
   */
  whenVerified(): Promise<void> | undefined {
    return this.#options.guard.whenVerified()?.then(() => this.requireIntact());
  }

  /** Throws `data_corrupt` if a file is damaged; by default checks the files of all segments. */
  requireIntact(segments: Iterable<Segment> = this.rows.segments): void {
    this.#options.guard.requireIntact(segments);
  }

  async write<Result>(
    write: Write<Result>,
    onCommitted?: (timings: CommitTimings) => void,
  ): Promise<Result> {
    // No await when nothing is to be verified, so that writes are submitted in the order of the calls.
    const verifying = this.whenVerified();
    if (verifying !== undefined) await verifying;
    return this.#writer.submit(write, onCommitted);
  }

  /** Resolves when all writes submitted before the call are visible or refused. */
  async whenVisible(): Promise<void> {
    await this.#writer.submit(NO_WRITE);
  }

  /** Whether this process may write now; otherwise another node writes. */
  get isWritable(): boolean {
    return this.#options.log.isWritable;
  }

  /** See `CommitLog.whenStored`. */
  whenStored(): Promise<void> | undefined {
    return this.#options.log.whenStored();
  }

  /** Stores and applies what another node committed to the log (follow.ts), in the order of the calls. */
  follow(committed: Write<void>): Promise<Followed> {
    return this.#writer.submitCommitted(committed);
  }

  /** Finishes the submitted writes; later writes reject with `reason`. */
  closeWriter(reason: Error): Promise<void> {
    return this.#writer.close(reason);
  }

  snapshot(sequence: number = this.#sequence): Snapshot {
    return takeSnapshot(this.rows.segments, sequence);
  }

  /** Resolves when a write with this sequence is visible; rejects with the signal's reason. */
  waitForSequence(sequence: number, signal: AbortSignal | undefined): Promise<void> {
    return this.#visible.wait(sequence, signal);
  }

  find(id: string): RowAddress | undefined {
    return this.rows.find(Buffer.from(id));
  }

  /** Throws `vector_not_found`. */
  require(id: string): RowAddress {
    const address = this.find(id);
    if (address === undefined) throw vectorNotFound(this.#definition.id, id);
    return address;
  }

  record(segment: Segment, row: number, include: Include): VectorRecord {
    return {
      id: segment.id(row),
      version: this.version({ segment, row }),
      ...(include.values ? this.valuesOf({ segment, row }) : {}),
      ...this.metadataOf({ segment, row }, include.metadata),
      ...(include.expiry ? this.#expiryOf({ segment, row }) : {}),
      ...(include.sequence ? { sequence: segment.insertedSequence(row) } : {}),
    };
  }

  /** The metadata as it was written, or only the included paths. */
  metadataOf(
    { segment, row }: RowAddress,
    include: IncludeMetadata,
  ): { readonly metadata?: string } {
    if (include === false) return {};
    const text = segment.metadata(row);
    return { metadata: include === true ? text : selectMetadata(text, include) };
  }

  #expiryOf(address: RowAddress): { readonly expiresAt?: string } {
    const timeMs = this.expiries.timeOf(address);
    return timeMs === NEVER ? {} : { expiresAt: new Date(timeMs).toISOString() };
  }

  /** The vectors of a row in the form of records. */
  valuesOf(address: RowAddress): VectorsOfRow {
    const vectors: Record<string, Float32Array | MultiVector> = {};
    const sparseVectors: Record<string, SparseVector> = {};
    let values: Float32Array | undefined;
    for (const [name, vector] of this.vectorsOf(address)) {
      if (name === UNNAMED) values = vector as Float32Array;
      else if ('indices' in vector) sparseVectors[name] = vector;
      else vectors[name] = vector;
    }
    const kinds = new Set(
      Object.entries(this.#definition.vectors).map(([name, { kind }]) =>
        name === UNNAMED ? 'unnamed' : kind,
      ),
    );
    return {
      ...(values && { values }),
      ...((kinds.has('dense') || kinds.has('multi')) && { vectors }),
      ...(kinds.has('sparse') && { sparseVectors }),
    };
  }

  /** The vectors of a row by name, '' for the unnamed one. */
  vectorsOf({ segment, row }: RowAddress): Map<string, Vector> {
    const found = new Map<string, Vector>();
    for (const name of Object.keys(this.#definition.vectors)) {
      const vector = segment.vectorAt(row, name);
      if (vector !== undefined) found.set(name, vector);
    }
    return found;
  }

  /** The dense vector of this name; undefined if the row has none. */
  storedValues({ segment, row }: RowAddress, name: string): Float32Array | undefined {
    const vector = segment.vectorAt(row, name);
    return vector instanceof Float32Array ? vector : undefined;
  }

  /** The shape of the dense vector of this name, '' for the unnamed one. Throws `invalid_request` if none exists. */
  shapeOf(name: string, location: IssueLocation): VectorShape {
    const shape = this.#fieldOf(name);
    if (shape?.kind === 'dense') return shape as VectorShape;
    if (shape?.kind === 'multi') {
      const detail = `"${name}" is a multi-vector, which is for queries by multi_vector or id.`;
      throw validationError([{ location, code: 'invalid_request', detail }]);
    }
    const known = this.#describeNames('dense');
    const detail =
      name === UNNAMED
        ? `The collection has no unnamed vector. Name the vector to use; ${known}.`
        : `The collection has no named vector ${JSON.stringify(name)}; ${known}.`;
    throw validationError([{ location, code: 'invalid_request', detail }]);
  }

  /**
   * The dense vector `using` and the metric that a request compares by, which is by default the metric of the vector.
   * Throws `invalid_request`.
   */
  searchedVector(
    {
      using = UNNAMED,
      metric,
    }: {
      readonly using?: string | undefined;
      readonly metric?: Metric | undefined;
    },
    path: FieldPath,
  ): SearchedVector {
    const shape = this.shapeOf(using, field(...path, 'using'));
    const searched = { ...shape, metric: metric ?? shape.metric, using };
    requireComparable(shape, searched.metric, field(...path, 'metric'));
    return searched;
  }

  /** Returns the name. Throws `invalid_request` if no sparse vector has it. */
  requireSparse(name: string | undefined, location: IssueLocation): string {
    if (name !== undefined && this.#fieldOf(name)?.kind === 'sparse') return name;
    const known = this.#describeNames('sparse');
    const detail =
      name === undefined
        ? `Name the sparse vector of the collection to search in "using"; ${known}.`
        : `The collection has no sparse vector ${JSON.stringify(name)}; ${known}.`;
    throw validationError([{ location, code: 'invalid_request', detail }]);
  }

  /** The shape of each vector of the multi-vector of this name; undefined if none exists. */
  multiShapeOf(name: string): VectorShape | undefined {
    const shape = this.#fieldOf(name);
    return shape?.kind === 'multi' ? (shape as VectorShape) : undefined;
  }

  #fieldOf(name: string): FieldShape | undefined {
    const { vectors } = this.#definition;
    return Object.hasOwn(vectors, name) ? vectors[name] : undefined;
  }

  #describeNames(kind: VectorKind): string {
    const names = Object.entries(this.#definition.vectors).flatMap(([name, shape]) =>
      name !== UNNAMED && shape.kind === kind ? JSON.stringify(name) : [],
    );
    return names.length === 0 ? 'it has none' : `its names are ${names.join(', ')}`;
  }

  /** Throws `invalid_filter` with issues under the request field at `path`, by default `filter`. */
  parseFilter(filter: JsonObject, limits: Limits, path?: FieldPath): FilterNode {
    return parseFilter(filter, { limits, hasText: this.#definition.text !== undefined }, path);
  }

  /** The version of the vector in this row. Every write of a vector gives it another version. */
  version({ segment, row }: RowAddress): string {
    return this.versionOf(segment.insertedSequence(row));
  }

  /** The version of vectors that were written at this sequence. */
  versionOf(sequence: number): string {
    return `${this.incarnation.slice(-8)}-${sequence}`;
  }

  /** Throws `dimension_mismatch`, and `invalid_vector` for a vector that the metric is not defined for. */
  checkQueryVector(
    vector: Float32Array,
    { dimension, metric, using }: SearchedVector,
    location: IssueLocation,
  ): void {
    if (vector.length !== dimension) {
      const what = using === UNNAMED ? "the collection's dimension" : `the dimension of "${using}"`;
      const detail = `The query vector has ${vector.length} elements; ${what} is ${dimension}.`;
      const bound = { expected: dimension, actual: vector.length };
      throw validationError([{ location, code: 'dimension_mismatch', detail, ...bound }]);
    }
    if (metric === 'cosine' && vector.every((value) => value === 0)) {
      const detail = 'The cosine of a zero vector is not defined.';
      throw validationError([{ location, code: 'invalid_vector', detail }]);
    }
    const wrong = BIT_METRICS.has(metric)
      ? vector.findIndex((value) => value !== 0 && value !== 1)
      : -1;
    if (wrong >= 0) {
      const detail = `Element ${wrong} is ${vector[wrong]}; ${metric} compares elements of 0 and 1.`;
      throw validationError([{ location, code: 'invalid_vector', detail }]);
    }
  }

  #advance({ sequence, timeMs }: RecordMark): void {
    this.#sequence = sequence;
    this.#writtenAtMs = timeMs;
    // The retention follows the clock of this node, which may not be the node that wrote.
    this.#history.add(this.#options.clock.now(), sequence);
    this.#visible.reach(sequence);
    this.#options.onCommitted();
  }
}

/** Throws `invalid_request` for a metric of bits if the vectors have other elements. */
export function requireComparable(
  { element = 'float32' }: VectorShape,
  metric: Metric,
  location: IssueLocation,
): void {
  if (!BIT_METRICS.has(metric) || element === 'bit') return;
  const detail = `${metric} compares elements of bit; those of the vectors are ${element}.`;
  throw validationError([{ location, code: 'invalid_request', detail }]);
}

const NO_WRITE: Write<void> = {
  prepare: () => ({ operations: [], result: undefined, apply() {} }),
};

/** With a `name`, the vector exists but has no vector of this name. */
export function vectorNotFound(
  collectionId: string,
  vectorId: string,
  name: string | null = null,
): SagittaError {
  if (name !== null) {
    return new SagittaError(
      'vector_not_found',
      `The vector "${vectorId}" of collection "${collectionId}" has no "${name}"; expected an id that has it.`,
    );
  }
  return new SagittaError(
    'vector_not_found',
    `Collection "${collectionId}" has no vector with the id "${vectorId}".`,
  );
}

interface Mark {
  readonly timeMs: number;
  readonly sequence: number;
}

/** Marks per retention period. The horizon lags by at most one of these fractions of the period. */
const MARKS_PER_RETENTION = 60;

/**
 * The sequences that were current at past times, from which compaction derives which ended rows no snapshot can see
 * any more. It is empty after a restart, so that more rows than necessary are kept at first.
 */
class SequenceHistory {
  readonly #retentionMs: number;
  #marks: Mark[] = [];

  constructor(retentionMs: number) {
    this.#retentionMs = retentionMs;
  }

  /** Records that `sequence` is current from this time on. */
  add(timeMs: number, sequence: number): void {
    const last = this.#marks.at(-1);
    const distanceMs = this.#retentionMs / MARKS_PER_RETENTION;
    if (last !== undefined && timeMs - last.timeMs < distanceMs) return;
    this.#marks.push({ timeMs, sequence });
    // The newest mark that is older than the retention is the horizon; older marks are not needed.
    const firstYoung = this.#marks.findIndex((mark) => timeMs - mark.timeMs <= this.#retentionMs);
    if (firstYoung > 1) this.#marks = this.#marks.slice(firstYoung - 1);
  }

  /** The oldest sequence that a valid cursor can name. */
  horizon(timeMs: number): number {
    let sequence = 0;
    for (const mark of this.#marks) {
      if (timeMs - mark.timeMs > this.#retentionMs) sequence = mark.sequence;
    }
    return sequence;
  }
}
