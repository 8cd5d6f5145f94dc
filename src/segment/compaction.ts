// Compaction: merges neighbouring segments into one, without the rows that no snapshot can see. Order,
// sequences and values stay; metadata columns are copied, not parsed again. The caller carries over
// deletions that happen meanwhile, by the mapping of rows.

import { createBitmap, hasBit, setBit } from '../common/bitmap.js';
import { assert } from '../common/errors.js';
import { DEFAULT_LIMITS } from '../common/limits.js';
import { valuesOfRows } from '../common/multi-column.js';
import {
  sharedBytes,
  sharedFloat32,
  sharedFloat64,
  sharedInt32,
  sharedUint32,
} from '../common/shared-array.js';
import type { NamedMulti, NamedSparse, Utf8Column } from '../common/types.js';
import type { Task } from '../platform/pool.js';
import { MetadataColumns } from './metadata-columns.js';
import { multiBytes } from './multi-field.js';
import { SEGMENT_BYTES_MAX } from './segment.js';
import type { NamedColumn, SegmentData, VectorColumn } from './segment-data.js';
import { elementBytes } from './sparse-field.js';

interface CompactionInput {
  /** In order of arrival; all of one dimension. */
  readonly inputs: readonly SegmentData[];
  /** Rows deleted at or before this sequence are dropped. */
  readonly horizonSequence: number;
  /** The identity of the new segment. */
  readonly key: string;
  readonly number: number;
  /** The remaining rows must fit this limit and SEGMENT_BYTES_MAX. */
  readonly rowsMax: number;
  readonly columnsMax?: number;
}

export interface Compaction {
  /** A sealed segment; null when no row remains. */
  readonly data: SegmentData | null;
  /** Per input, the new row number of each of its rows, or -1. */
  readonly mappings: readonly Int32Array[];
}

function compactSegments(input: CompactionInput): Compaction {
  const { inputs, horizonSequence, rowsMax } = input;
  const kept = inputs.map((segment) => keptRows(segment, horizonSequence));
  const mappings: Int32Array[] = [];
  let rowCount = 0;
  for (const [i, rows] of kept.entries()) {
    const mapping = sharedInt32(inputs[i]!.rowCount).fill(-1);
    for (const row of rows) mapping[row] = rowCount++;
    mappings.push(mapping);
  }
  if (rowCount === 0) return { data: null, mappings };
  assert(rowCount <= rowsMax, `${rowCount} rows in a segment of ${rowsMax}`);
  const { dimension } = inputs[0]!;
  const ids = copyText(inputs, kept, 'ids');
  const json = copyText(inputs, kept, 'json');
  const named = everyColumn(inputs, ({ named: columns }) => columns).map((column) =>
    copyNamed(inputs, kept, rowCount, column),
  );
  const sparse = everyColumn(inputs, ({ sparse: columns }) => columns).map((column) =>
    copySparse(inputs, kept, rowCount, column),
  );
  const valueCount = named.reduce((sum, vector) => sum + vector.dimension, dimension) * rowCount;
  const multi = everyColumn(inputs, ({ multi: columns }) => columns).map((column) =>
    copyMulti(inputs, kept, rowCount, column),
  );
  const sparseBytes = sparse.reduce((sum, column) => sum + elementBytes(column, 0, rowCount), 0);
  const byteCount = multi.reduce(
    (sum, column) => sum + multiBytes(column, 0, rowCount),
    sparseBytes + valueCount * 4 + ids.bytes.byteLength + json.bytes.byteLength,
  );
  assert(byteCount <= SEGMENT_BYTES_MAX, `${byteCount} bytes in a segment`);
  const data: SegmentData = {
    key: input.key,
    number: input.number,
    dimension,
    rowCount,
    values: copyValues(inputs, kept, { rowCount, dimension }, (segment) => segment),
    named,
    multi,
    sparse,
    ids,
    json,
    // Panels of codes have other rows now, so the caller encodes them again.
    codes: null,
    ...copySequences(inputs, kept, rowCount),
    ...copyColumns(inputs, kept, input.columnsMax ?? DEFAULT_LIMITS.metadataColumnsMax),
  };
  return { data, mappings };
}

/** Compacts on a worker. */
export const compactSegmentsTask: Task<CompactionInput, Compaction> = {
  name: 'segment.compact',
  run: compactSegments,
};

function keptRows({ rowCount, deletedSequences }: SegmentData, horizonSequence: number) {
  const rows = new Uint32Array(rowCount);
  let count = 0;
  for (let row = 0; row < rowCount; row++) {
    if (deletedSequences === null || deletedSequences[row]! > horizonSequence) rows[count++] = row;
  }
  return rows.subarray(0, count);
}

/** Calls `copy` for each run of neighbouring rows; `target` is the new row number of the first. */
function forEachRun(
  inputs: readonly SegmentData[],
  kept: readonly Uint32Array[],
  copy: (segment: SegmentData, from: number, to: number, target: number) => void,
): void {
  let target = 0;
  for (const [i, rows] of kept.entries()) {
    for (let at = 0; at < rows.length; ) {
      const first = at;
      do at++;
      while (at < rows.length && rows[at] === rows[at - 1]! + 1);
      copy(inputs[i]!, rows[first]!, rows[at - 1]! + 1, target);
      target += at - first;
    }
  }
}

/** The columns that any of the segments has, each once. */
function everyColumn<Column extends { readonly name: string }>(
  inputs: readonly SegmentData[],
  columnsOf: (segment: SegmentData) => readonly Column[],
): readonly Column[] {
  return [...new Map(inputs.flatMap(columnsOf).map((column) => [column.name, column])).values()];
}

function columnNamed<Column extends { readonly name: string }>(
  columns: readonly Column[],
  wanted: string,
): Column | undefined {
  return columns.find(({ name }) => name === wanted);
}

/** Rows of segments without the column have zeros. */
function copyValues(
  inputs: readonly SegmentData[],
  kept: readonly Uint32Array[],
  { rowCount, dimension }: Pick<SegmentData, 'rowCount' | 'dimension'>,
  columnOf: (segment: SegmentData) => VectorColumn | undefined,
): Float32Array {
  const values = sharedFloat32(rowCount * dimension);
  forEachRun(inputs, kept, (segment, from, to, target) => {
    const source = columnOf(segment)?.values;
    if (source === undefined) return;
    values.set(source.subarray(from * dimension, to * dimension), target * dimension);
  });
  return values;
}

function copyNamed(
  inputs: readonly SegmentData[],
  kept: readonly Uint32Array[],
  rowCount: number,
  { name, dimension }: Pick<NamedColumn, 'name' | 'dimension'>,
): NamedColumn {
  const presence = createBitmap(rowCount);
  forEachRun(inputs, kept, (segment, from, to, target) => {
    const source = columnNamed(segment.named, name)?.presence;
    for (let row = from; source !== undefined && row < to; row++) {
      if (hasBit(source, row)) setBit(presence, target + row - from);
    }
  });
  const values = copyValues(inputs, kept, { rowCount, dimension }, ({ named }) =>
    columnNamed(named, name),
  );
  return { name, dimension, values, codes: null, presence };
}

function copyMulti(
  inputs: readonly SegmentData[],
  kept: readonly Uint32Array[],
  rowCount: number,
  { name, dimension }: Pick<NamedMulti, 'name' | 'dimension'>,
): NamedMulti {
  const columnOf = ({ multi }: SegmentData) => columnNamed(multi, name);
  const starts = copyStarts(inputs, kept, rowCount, columnOf);
  const values = sharedFloat32(starts[rowCount]! * dimension);
  forEachRun(inputs, kept, (segment, from, to, target) => {
    const source = columnOf(segment);
    if (source === undefined) return;
    values.set(valuesOfRows(source, from, to), starts[target]! * dimension);
  });
  return { name, dimension, starts, values };
}

function copySparse(
  inputs: readonly SegmentData[],
  kept: readonly Uint32Array[],
  rowCount: number,
  { name }: Pick<NamedSparse, 'name'>,
): NamedSparse {
  const columnOf = ({ sparse }: SegmentData) => columnNamed(sparse, name);
  const starts = copyStarts(inputs, kept, rowCount, columnOf);
  const indices = sharedUint32(starts[rowCount]!);
  const values = sharedFloat32(starts[rowCount]!);
  forEachRun(inputs, kept, (segment, from, to, target) => {
    const source = columnOf(segment);
    if (source === undefined) return;
    const [first, end] = [source.starts[from]!, source.starts[to]!];
    indices.set(source.indices.subarray(first, end), starts[target]!);
    values.set(source.values.subarray(first, end), starts[target]!);
  });
  return { name, starts, indices, values };
}

/** Where the elements of each row start that its row of a source has; rows of segments without the column have none. */
function copyStarts(
  inputs: readonly SegmentData[],
  kept: readonly Uint32Array[],
  rowCount: number,
  columnOf: (segment: SegmentData) => { readonly starts: Int32Array } | undefined,
): Int32Array {
  const starts = sharedInt32(rowCount + 1);
  forEachRun(inputs, kept, (segment, from, to, target) => {
    const source = columnOf(segment)?.starts;
    if (source === undefined) {
      starts.fill(starts[target]!, target + 1, target + to - from + 1);
      return;
    }
    const shift = starts[target]! - source[from]!;
    for (let row = from; row < to; row++) {
      starts[target + row - from + 1] = source[row + 1]! + shift;
    }
  });
  return starts;
}

function copyText(
  inputs: readonly SegmentData[],
  kept: readonly Uint32Array[],
  name: 'ids' | 'json',
): Utf8Column {
  let count = 0;
  let byteLength = 0;
  forEachRun(inputs, kept, (segment, from, to) => {
    const { offsets } = segment[name];
    count += to - from;
    byteLength += offsets[to]! - offsets[from]!;
  });
  assert(byteLength <= SEGMENT_BYTES_MAX, `${byteLength} bytes of text in a segment`);
  const offsets = sharedInt32(count + 1);
  const bytes = sharedBytes(byteLength);
  forEachRun(inputs, kept, (segment, from, to, target) => {
    const source = segment[name];
    const start = source.offsets[from]!;
    const shift = offsets[target]! - start;
    bytes.set(source.bytes.subarray(start, source.offsets[to]!), start + shift);
    for (let row = from; row < to; row++) {
      offsets[target + row - from + 1] = source.offsets[row + 1]! + shift;
    }
  });
  return { offsets, bytes };
}

function copySequences(
  inputs: readonly SegmentData[],
  kept: readonly Uint32Array[],
  rowCount: number,
): Pick<SegmentData, 'insertedSequences' | 'deletedSequences'> {
  const insertedSequences = sharedFloat64(rowCount);
  const deletedSequences = sharedFloat64(rowCount).fill(Number.POSITIVE_INFINITY);
  forEachRun(inputs, kept, (segment, from, to, target) => {
    insertedSequences.set(segment.insertedSequences.subarray(from, to), target);
    if (segment.deletedSequences !== null) {
      deletedSequences.set(segment.deletedSequences.subarray(from, to), target);
    }
  });
  const hasDeletions = deletedSequences.some((sequence) => sequence !== Number.POSITIVE_INFINITY);
  return { insertedSequences, deletedSequences: hasDeletions ? deletedSequences : null };
}

function copyColumns(
  inputs: readonly SegmentData[],
  kept: readonly Uint32Array[],
  columnsMax: number,
): Pick<SegmentData, 'columns' | 'isComplete'> {
  const metadata = new MetadataColumns(columnsMax);
  let target = 0;
  for (const [i, rows] of kept.entries()) {
    const segment = inputs[i]!;
    if (segment.isComplete) {
      metadata.copyRows(segment.columns, rows, target);
    } else {
      // Some paths are in the JSON only and may get columns now.
      rows.forEach((row, at) => {
        metadata.append(target + at, segment.json, row);
      });
    }
    target += rows.length;
  }
  return { columns: metadata.seal(), isComplete: metadata.isComplete };
}
