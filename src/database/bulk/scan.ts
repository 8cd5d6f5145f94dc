// Scans all rows of a collection, or those that pass a filter, as columns: one snapshot in order
// of arrival, in chunks of some megabytes, as fast as the reader takes them. A chunk is a view of
// a segment if its rows are contiguous and not in a mapped file; otherwise it is a copy. Views
// remain valid and unchanged even if the segment is compacted or deleted.

import { nextSetBit } from '../../common/bitmap.js';
import type { JsonObject, Utf8Column } from '../../common/types.js';
import { gatherText } from '../../common/utf8-column.js';
import {
  type ColumnSpec,
  gatherRows,
  type Named,
  OWN_MEMORY,
  rowBytesOf,
  rowsOfColumn,
  specOf,
  type VectorColumn,
} from '../../common/vectors.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { Warning } from '../api/warning.js';
import type { Collection } from '../collection/collection.js';
import { rowSizesOf } from '../collection/row-sizes.js';
import { selectPassing } from '../collection/select-passing.js';
import { countVisible, type SegmentView } from '../collection/snapshot.js';
import type { BulkServices } from './bulk-services.js';
import { type SampleRequest, sampleViews } from './sample.js';
import {
  countTypedCells,
  makeTypedColumns,
  makeTypedColumnsTask,
  type TypedColumns,
  type TypedInput,
  typedInput,
} from './typed-columns.js';
import { findTypedFields, type TypedField } from './typed-fields.js';

/** Large enough to make the work per chunk negligible, small enough that a stalled reader holds little memory. */
const CHUNK_BYTES = 4 * 1024 * 1024;

/** Bounds chunks of very small rows. */
const CHUNK_ROWS_MAX = 16_384;

export interface ScanRequest {
  readonly filter?: JsonObject | undefined;
  /** A sample of the rows that pass the filter; absent for all of them. */
  readonly sample?: SampleRequest | undefined;
  readonly includeValues: boolean;
  readonly includeMetadata: boolean;
  /** Whether metadata is returned as typed columns instead of text; by default false. */
  readonly hasTypedMetadata?: boolean | undefined;
  /** The maximum bytes of all columns of a chunk, by default 4 MiB. A longer row is a chunk of its own. */
  readonly chunkBytesMax?: number | undefined;
}

export interface Scan {
  readonly sequence: number;
  /** The vectors of the collection, in the order of the vectors of each chunk. */
  readonly fields: readonly Named<ColumnSpec>[];
  /** The typed columns of metadata, in the order of the columns of each chunk; empty unless requested. */
  readonly typedFields: readonly TypedField[];
  readonly rowCount: number;
  readonly warnings: readonly Warning[] | undefined;
  /** The approximate size of all rows, with vectors and metadata. */
  readonly byteCount: number;
  /** Non-empty chunks in order of arrival. */
  chunks(): Iterable<RowChunk>;
  /** Chunks with typed columns, which are created ahead in the pool. */
  typedChunks(): AsyncIterable<TypedChunk>;
}

/** Rows as columns, which are read-only because memory may be shared; null for a column that was not requested. */
export interface RowChunk {
  readonly count: number;
  readonly ids: Utf8Column;
  /** All vectors of the collection, or none if not requested. A row may lack any except the unnamed one. */
  readonly vectors: readonly Named[];
  /** One JSON object per row, as sent. */
  readonly metadata: Utf8Column | null;
}

export interface TypedChunk extends RowChunk {
  readonly typed: TypedColumns;
}

/** A chunk with the input of its typed columns. */
interface ChunkToType extends RowChunk {
  readonly input: TypedInput;
}

interface ChunkOptions {
  /** The columns of the vectors at the start of the scan, by name. */
  readonly columns: ReadonlyMap<string, string>;
  /** The vectors to read. */
  readonly fields: Scan['fields'];
  readonly metadata: boolean;
  /** The typed columns to read. */
  readonly typedFields: readonly TypedField[];
  readonly bytesMax: number;
  readonly rowsMax: number;
}

/** Rows from..to of a block. */
interface RowRange {
  readonly from: number;
  readonly to: number;
}

/** The rows of a chunk. */
interface Run {
  readonly ranges: readonly RowRange[];
  readonly count: number;
  readonly canShareMemory: boolean;
}

/** Rejects with `invalid_filter`, `limit_exceeded` and the signal's reason. */
export async function runScan(
  collection: Collection,
  request: ScanRequest,
  services: BulkServices,
  signal: AbortSignal | undefined,
): Promise<Scan> {
  const { pool, scanStats } = services;
  const passing = await selectPassing(collection, request.filter, services, { signal });
  const views = await sampleViews(passing.views, request.sample, pool);
  const hasTyped = request.includeMetadata && request.hasTypedMetadata === true;
  const typedFields = hasTyped ? await findTypedFields(pool, views, signal) : [];
  const rowCount = countVisible(views);
  const { textBytes, vectorBytes } = rowSizesOf(collection);
  const vectors = allVectors(collection);
  const options = {
    ...(request.includeValues ? vectors : NO_VECTORS),
    metadata: request.includeMetadata && !hasTyped,
    typedFields,
    bytesMax: request.chunkBytesMax ?? CHUNK_BYTES,
    rowsMax: CHUNK_ROWS_MAX,
  };
  return {
    sequence: passing.snapshot.sequence,
    fields: vectors.fields,
    typedFields,
    rowCount,
    warnings: passing.warnings,
    byteCount: Math.ceil(rowCount * (textBytes + vectorBytes)),
    chunks: () => scanStats.countScan(intactChunks(collection, views, options), rowCount),
    async *typedChunks() {
      const chunks = scanStats.countScan(chunksToType(views, options), rowCount);
      try {
        for await (const chunk of withTypedColumns(chunks, pool)) {
          requireIntact(collection, views);
          collection.requireVectorsOf(options);
          yield chunk;
        }
      } catch (error) {
        // The error may come from invalid JSON in a damaged file.
        requireIntact(collection, views);
        throw error;
      }
    },
  };
}

/** All columns of the rows of views, in the order of `rowsOf`. Throws `data_corrupt`. */
export function allChunks(
  collection: Collection,
  views: readonly SegmentView[],
): Generator<RowChunk> {
  return intactChunks(collection, views, {
    ...allVectors(collection),
    metadata: true,
    typedFields: [],
    bytesMax: CHUNK_BYTES,
    rowsMax: CHUNK_ROWS_MAX,
  });
}

type VectorOptions = Pick<ChunkOptions, 'columns' | 'fields'>;

const NO_VECTORS: VectorOptions = { columns: new Map(), fields: [] };

function allVectors({ definition, rows }: Collection): VectorOptions {
  const fields = Object.entries(definition.vectors).map(([name, spec]) => ({
    name,
    ...specOf(spec),
  }));
  return { columns: rows.columns, fields };
}

/** Yields chunks after checking the segments for damage. Throws `data_corrupt`. */
function* intactChunks(
  collection: Collection,
  views: readonly SegmentView[],
  options: ChunkOptions,
): Generator<RowChunk> {
  for (const chunk of chunksOf(views, options)) {
    requireIntact(collection, views);
    collection.requireVectorsOf(options);
    yield chunk;
  }
}

function requireIntact(collection: Collection, views: readonly SegmentView[]): void {
  collection.requireIntact(views.map(({ segment }) => segment));
}

function* chunksOf(views: readonly SegmentView[], options: ChunkOptions): Generator<RowChunk> {
  for (const view of views) {
    for (const ranges of splitIntoChunks(view, options)) yield chunkOf(view, ranges, options);
  }
}

function* chunksToType(
  views: readonly SegmentView[],
  options: ChunkOptions,
): Generator<ChunkToType> {
  for (const view of views) {
    for (const ranges of splitIntoChunks(view, options)) {
      const rows = rowsOf(ranges);
      const input = typedInput(view.metadata, options.typedFields, rows);
      yield { ...chunkOf(view, ranges, options), input };
    }
  }
}

function rowsOf(ranges: readonly RowRange[]): Int32Array {
  const rows = new Int32Array(ranges.reduce((sum, { from, to }) => sum + to - from, 0));
  let at = 0;
  for (const { from, to } of ranges) for (let row = from; row < to; row++) rows[at++] = row;
  return rows;
}

/** Chunks whose typed columns are created ahead of the reader; other threads are left to other requests. */
const CHUNKS_AHEAD_MAX = 4;

/** Up to this many cells are created on the calling thread, in less time than a message to a worker takes. */
const INLINE_CELLS_MAX = 2_048;

async function* withTypedColumns(
  chunks: Iterable<ChunkToType>,
  pool: WorkerPool,
): AsyncGenerator<TypedChunk> {
  const waiting: Promise<TypedChunk>[] = [];
  // Only the first chunk may be refused, because the reply has begun once it was sent.
  let mayBeRefused = true;
  for (const { input, ...chunk } of chunks) {
    const making =
      countTypedCells(input) <= INLINE_CELLS_MAX
        ? Promise.resolve(makeTypedColumns(input))
        : pool.run(makeTypedColumnsTask, input, { mayBeRefused });
    mayBeRefused = false;
    const made = making.then((typed) => ({ ...chunk, typed }));
    // Awaited below, unless an earlier chunk fails.
    made.catch(() => {});
    waiting.push(made);
    if (waiting.length >= Math.min(pool.threadCount, CHUNKS_AHEAD_MAX)) {
      yield await waiting.shift()!;
    }
  }
  for (const made of waiting) yield await made;
}

/** The visible rows of each chunk. */
function* splitIntoChunks(view: SegmentView, options: ChunkOptions): Generator<RowRange[]> {
  const { bytesMax, rowsMax } = options;
  let ranges: RowRange[] = [];
  let rowsLeft = rowsMax;
  let bytesLeft = bytesMax;
  for (let { from, to } of visibleRanges(view)) {
    while (from < to) {
      const isEmpty = ranges.length === 0;
      const fitting = lastFitting(view, from, Math.min(to, from + rowsLeft), bytesLeft, options);
      const end = fitting > from || !isEmpty ? fitting : from + 1;
      if (end > from) {
        ranges.push({ from, to: end });
        rowsLeft -= end - from;
        bytesLeft -= bytesOf(view, from, end, options);
        from = end;
      }
      if (from < to || rowsLeft === 0) {
        yield ranges;
        ranges = [];
        rowsLeft = rowsMax;
        bytesLeft = bytesMax;
      }
    }
  }
  if (ranges.length > 0) yield ranges;
}

function* visibleRanges({ rows, rowCount }: SegmentView): Generator<RowRange> {
  if (rows === null) {
    if (rowCount > 0) yield { from: 0, to: rowCount };
    return;
  }
  let from = nextSetBit(rows, 0);
  while (from >= 0 && from < rowCount) {
    const to = Math.min(nextClearBit(rows.words, from + 1), rowCount);
    yield { from, to };
    from = nextSetBit(rows, to);
  }
}

/** Bits beyond the last word count as clear. */
function nextClearBit(words: Uint32Array, from: number): number {
  let index = from >>> 5;
  if (index >= words.length) return from;
  let word = ~words[index]! & (0xffffffff << (from & 31));
  while (word === 0) {
    index++;
    if (index >= words.length) return index * 32;
    word = ~words[index]!;
  }
  return index * 32 + (31 - Math.clz32(word & -word));
}

/** The end of the longest range from `from`, at most to `to`, whose columns take at most `bytesMax` bytes. */
function lastFitting(
  view: SegmentView,
  from: number,
  to: number,
  bytesMax: number,
  options: ChunkOptions,
): number {
  if (bytesOf(view, from, to, options) <= bytesMax) return to;
  let fitting = from;
  let tooFar = to;
  while (tooFar - fitting > 1) {
    const middle = (fitting + tooFar) >>> 1;
    if (bytesOf(view, from, middle, options) <= bytesMax) fitting = middle;
    else tooFar = middle;
  }
  return fitting;
}

function bytesOf(
  { segment, metadata: { ids, json } }: SegmentView,
  from: number,
  to: number,
  { fields, metadata, typedFields }: ChunkOptions,
): number {
  let byteCount = ids.offsets[to]! - ids.offsets[from]!;
  for (const { name, ...spec } of fields) {
    const field = segment.vectorField(name);
    byteCount += field?.bytesOfRows(from, to) ?? (to - from) * rowBytesOf(spec);
  }
  if (metadata || typedFields.length > 0) byteCount += json.offsets[to]! - json.offsets[from]!;
  return byteCount + (to - from) * typedFields.length * CELL_BYTES;
}

/** The bytes of a cell of a typed column, excluding its text. */
const CELL_BYTES = 8;

function chunkOf(
  { segment, metadata: { ids, json } }: SegmentView,
  ranges: readonly RowRange[],
  { fields, metadata }: ChunkOptions,
): RowChunk {
  const run: Run = {
    ranges,
    count: ranges.reduce((sum, { from, to }) => sum + to - from, 0),
    // A view of a mapped file could be read after the check for damage.
    canShareMemory: ranges.length === 1 && !segment.isMapped,
  };
  return {
    count: run.count,
    ids: textOf(ids, run),
    vectors: fields.map(({ name, ...spec }) => {
      return { name, ...vectorsOf(segment.vectorColumn(name), spec, run) };
    }),
    metadata: metadata ? textOf(json, run) : null,
  };
}

function vectorsOf(
  column: VectorColumn | undefined,
  spec: ColumnSpec,
  { ranges, canShareMemory }: Run,
): VectorColumn {
  if (column !== undefined && canShareMemory) {
    const { from, to } = ranges[0]!;
    return rowsOfColumn(column, from, to);
  }
  const parts = ranges.map((range) => ({ column, ...range }));
  return gatherRows(spec, parts, OWN_MEMORY);
}

function textOf(column: Utf8Column, { ranges, canShareMemory }: Run): Utf8Column {
  if (canShareMemory) {
    const { from, to } = ranges[0]!;
    return { offsets: column.offsets.subarray(from, to + 1), bytes: column.bytes };
  }
  return gatherText(
    ranges.map((range) => ({ column, ...range })),
    OWN_MEMORY,
  );
}
