// The rows of a collection in memory: its segments in order of arrival, and the index from ids to live rows. Log
// records are applied in the order of the log, by the same code for writes and recovery. Nothing here knows the store
// or the clock.

import type { Limits } from '../../common/limits.js';
import type { RowEncoder, Utf8Column, VectorBatch } from '../../common/types.js';
import type { WorkerPool } from '../../platform/pool.js';
import { IdIndex } from '../../segment/id-index.js';
import { Segment } from '../../segment/segment.js';
import { type VectorNameColumns, VectorNames } from '../../segment/vector-names.js';

export interface RowAddress {
  readonly segment: Segment;
  readonly row: number;
}

export interface RowsOptions {
  readonly incarnation: string;
  /** Distinguishes segments that had the same number at different times; by default 0. */
  readonly generation?: number;
  /** The columns of the vectors. */
  readonly vectors: VectorNameColumns;
  readonly limits: Pick<Limits, 'segmentRowsMax' | 'segmentValueBytesMax' | 'metadataColumnsMax'>;
  /** Creates the codes that the engine scans; null if it scans values. */
  readonly encoder: RowEncoder | null;
  readonly pool: WorkerPool;
}

/** Blocks of a segment by their keys. */
export interface SegmentBlocks {
  readonly key: string;
  readonly blockKeys: readonly string[];
}

/** The rows `from..batch.count` of a batch. */
export interface RowsToWrite {
  readonly batch: VectorBatch;
  readonly from: number;
}

/** Writes of up to this many values are copied and encoded while they are applied, in half a millisecond. */
const UNSTAGED_VALUES_MAX = 2 ** 18;
/** Writes with fewer values on average take less time to copy and encode than to hand over to the pool. */
const STAGED_VALUES_MIN = 2 ** 12;

export class Rows {
  readonly #options: RowsOptions;
  readonly #names = new VectorNames();
  #segments: readonly Segment[] = [];
  readonly #byNumber = new Map<number, Segment>();
  readonly #index = new IdIndex();
  #nextSegmentNumber = 1;
  /** Segments after the active one, empty except for staged rows. */
  #upcoming: Segment[] = [];

  constructor(options: RowsOptions) {
    this.#options = options;
    this.#names.redefine(options.vectors);
  }

  /** The columns of the vectors, by name. */
  get columns(): ReadonlyMap<string, string> {
    return this.#names.columns;
  }

  columnOf(name: string): string | undefined {
    return this.columns.get(name);
  }

  /**
   * Replaces the names of the vectors; vectors that are no longer named are dropped. Returns the dropped blocks of each
   * segment that had any.
   */
  redefineVectors(vectors: VectorNameColumns): readonly SegmentBlocks[] {
    this.#names.redefine(vectors);
    return [...this.#segments, ...this.#upcoming].flatMap((segment) => {
      const blockKeys = segment.readNamesFrom(this.#names);
      return blockKeys === null ? [] : { key: segment.key, blockKeys };
    });
  }

  /** In order of arrival; the last segment may be active. The array is replaced, never changed. */
  get segments(): readonly Segment[] {
    return this.#segments;
  }

  get liveCount(): number {
    return this.#index.count;
  }

  /** Memory of the id index, which is not part of the segments. */
  get indexBytes(): number {
    return this.#index.hostBytes;
  }

  /** The live row with this id. */
  find(id: Uint8Array): RowAddress | undefined {
    const slot = this.#findSlot(id);
    return slot < 0 ? undefined : this.#addressAt(slot);
  }

  has(id: Uint8Array): boolean {
    return this.#findSlot(id) >= 0;
  }

  /** A number that no segment of this incarnation has had. */
  takeSegmentNumber(): number {
    return this.#nextSegmentNumber++;
  }

  /**
   * Adds the rows `from..batch.count` and ends live rows with the same ids, all at one sequence. The vectors of the
   * batch are named by their columns; dropped vectors are skipped.
   */
  applyWrite(written: VectorBatch, sequence: number, from = 0): void {
    const batch = this.withoutDropped(written);
    let next = from;
    while (next < batch.count) {
      const segment = this.#activeSegment();
      const count = Math.min(batch.count - next, segment.fits(batch, next));
      if (count === 0) {
        segment.seal();
        continue;
      }
      const firstRow = segment.append(batch, next, count, sequence);
      for (let i = 0; i < count; i++) this.#makeLive(segment, firstRow + i, sequence);
      next += count;
      if (segment.isFull) segment.seal();
    }
  }

  /** The batch without dropped vectors; the same object if it has none. */
  withoutDropped(batch: VectorBatch): VectorBatch {
    const isLive = ({ name }: { readonly name: string }) => !this.#names.isDropped(name);
    return batch.vectors.every(isLive)
      ? batch
      : { ...batch, vectors: batch.vectors.filter(isLive) };
  }

  /**
   * Copies and encodes large writes in the pool. They must then be applied in this order, without others in between.
   * Undefined if the writes are small. Staging is optional: `applyWrite` does the same on the calling thread for rows that
   * were not staged in the right place, because a segment was sealed or the pool failed.
   */
  stage(writes: readonly RowsToWrite[]): Promise<void> | undefined {
    const valueCount = writes.reduce((sum, write) => sum + countValues(write), 0);
    if (valueCount <= Math.max(UNSTAGED_VALUES_MAX, STAGED_VALUES_MIN * writes.length)) {
      return undefined;
    }
    const unstaged = this.#cutForSegments(writes).filter(
      ({ segment, rows }) => !segment.hasStaged(rows),
    );
    if (unstaged.length === 0) return undefined;
    const { pool } = this.#options;
    const staging = unstaged.map(({ segment, rows }) => segment.stage(rows, pool));
    return Promise.allSettled(staging).then(() => {});
  }

  /** The segments that will contain the rows, estimated by row counts only; `fits` may find less room. */
  #cutForSegments(writes: readonly RowsToWrite[]) {
    const cuts: { segment: Segment; rows: (RowsToWrite & { count: number })[] }[] = [];
    let placedCount = 0;
    for (const { batch, from } of writes) {
      for (let next = from; next < batch.count; ) {
        const spareRowCount = (cuts.at(-1)?.segment.spareRowsFor(batch) ?? 0) - placedCount;
        if (spareRowCount <= 0) {
          cuts.push({ segment: this.#segmentAhead(cuts.length), rows: [] });
          placedCount = 0;
          continue;
        }
        const count = Math.min(batch.count - next, spareRowCount);
        cuts.at(-1)!.rows.push({ batch, from: next, count });
        placedCount += count;
        next += count;
      }
    }
    return cuts;
  }

  /** Ends the rows with these ids; ids without a live row are ignored. */
  applyDelete(ids: Utf8Column, count: number, sequence: number): void {
    for (let i = 0; i < count; i++) {
      const slot = this.#findSlot(ids.bytes.subarray(ids.offsets[i]!, ids.offsets[i + 1]!));
      if (slot < 0) continue;
      const { segment, row } = this.#addressAt(slot);
      segment.markDeleted(row, sequence);
      this.#index.removeAt(slot);
    }
  }

  applyDeleteAll(sequence: number): void {
    for (const segment of this.#segments) {
      for (let row = 0; row < segment.rowCount; row++) {
        if (segment.deletedSequence(row) === Number.POSITIVE_INFINITY) {
          segment.markDeleted(row, sequence);
        }
      }
    }
    this.#index.clear();
  }

  /** Appends a loaded segment whose deletions are applied. */
  adopt(segment: Segment): void {
    this.#insertSegment(segment);
    for (let row = 0; row < segment.rowCount; row++) {
      if (segment.deletedSequence(row) === Number.POSITIVE_INFINITY) {
        this.#makeLive(segment, row, segment.insertedSequence(row));
      }
    }
  }

  /** Appends a segment with the rows of one write, which end live rows with the same ids. */
  applyFile(segment: Segment): void {
    this.sealActive();
    this.adopt(segment);
  }

  /** Replaces `old` by compacted segments with the same live rows. */
  replace(old: readonly Segment[], compacted: readonly Segment[]): void {
    const gone = new Set(old);
    const at = this.#segments.findIndex((segment) => gone.has(segment));
    const kept = this.#segments.filter((segment) => !gone.has(segment));
    this.#segments = kept.toSpliced(at, 0, ...compacted);
    for (const segment of compacted) {
      segment.readNamesFrom(this.#names);
      this.#byNumber.set(segment.number, segment);
      for (let row = 0; row < segment.rowCount; row++) {
        if (segment.deletedSequence(row) !== Number.POSITIVE_INFINITY) continue;
        const slot = this.#findSlot(segment.idBytes(row));
        this.#index.moveTo(slot, segment.number, row);
      }
    }
    for (const segment of old) this.#byNumber.delete(segment.number);
  }

  /** Seals the active segment, so that a checkpoint can write it. */
  sealActive(): void {
    const last = this.#segments.at(-1);
    if (last !== undefined && !last.isSealed && last.rowCount > 0) last.seal();
  }

  reserveSegmentNumbers(next: number): void {
    this.#nextSegmentNumber = Math.max(this.#nextSegmentNumber, next);
  }

  get nextSegmentNumber(): number {
    return this.#nextSegmentNumber;
  }

  segmentKey(number: number): string {
    const { incarnation, generation = 0 } = this.#options;
    return generation === 0 ? `${incarnation}/${number}` : `${incarnation}/${number}~${generation}`;
  }

  #activeSegment(): Segment {
    const last = this.#segments.at(-1);
    if (last !== undefined && !last.isSealed) return last;
    const segment = this.#upcoming.shift() ?? this.#createSegment();
    this.#insertSegment(segment);
    return segment;
  }

  /** The segment that will be active after `count` others. */
  #segmentAhead(count: number): Segment {
    const last = this.#segments.at(-1);
    const active = last === undefined || last.isSealed ? [] : [last];
    while (active.length + this.#upcoming.length <= count) {
      this.#upcoming.push(this.#createSegment());
    }
    return [...active, ...this.#upcoming][count]!;
  }

  #createSegment(): Segment {
    const number = this.takeSegmentNumber();
    const { encoder, limits } = this.#options;
    return Segment.createActive({
      key: this.segmentKey(number),
      number,
      rowsMax: limits.segmentRowsMax,
      vectorBytesMax: limits.segmentValueBytesMax,
      columnsMax: limits.metadataColumnsMax,
      encoder,
      others: () => this.#segments,
    });
  }

  #insertSegment(segment: Segment): void {
    segment.readNamesFrom(this.#names);
    this.#segments = [...this.#segments, segment];
    this.#byNumber.set(segment.number, segment);
    this.reserveSegmentNumbers(segment.number + 1);
  }

  #makeLive(segment: Segment, row: number, sequence: number): void {
    const id = segment.idBytes(row);
    const hash = this.#index.hashOf(id);
    const slot = this.#findSlot(id, hash);
    if (slot < 0) {
      this.#index.insert(hash, segment.number, row);
      return;
    }
    const old = this.#addressAt(slot);
    old.segment.markDeleted(old.row, sequence);
    this.#index.moveTo(slot, segment.number, row);
  }

  #findSlot(id: Uint8Array, hash = this.#index.hashOf(id)): number {
    return this.#index.find(hash, (segmentNumber, row) =>
      this.#byNumber.get(segmentNumber)!.idEquals(row, id),
    );
  }

  #addressAt(slot: number): RowAddress {
    return {
      segment: this.#byNumber.get(this.#index.segmentNumberAt(slot))!,
      row: this.#index.rowAt(slot),
    };
  }
}

/** The number of values of the dense vectors, which are what is staged. */
function countValues({ batch: { count, vectors }, from }: RowsToWrite): number {
  let dimensions = 0;
  for (const column of vectors) if (column.kind === 'dense') dimensions += column.dimension;
  return dimensions * (count - from);
}
