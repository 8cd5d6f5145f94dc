// Compaction merges neighbouring segments into one and drops the rows that no snapshot can see. Order, sequences
// and values stay; metadata columns are copied, not parsed again. The caller uses the mapping of rows to carry
// over deletions that happen in the meantime.

import { assert } from '../common/errors.js';
import { DEFAULT_LIMITS } from '../common/limits.js';
import { sharedFloat64, sharedInt32 } from '../common/shared-array.js';
import type { Utf8Column } from '../common/types.js';
import { gatherText } from '../common/utf8-column.js';
import { bytesOfRows, gatherRows, SHARED_MEMORY } from '../common/vectors.js';
import type { Task } from '../platform/pool.js';
import { MetadataColumns } from './metadata-columns.js';
import { SEGMENT_BYTES_MAX } from './segment.js';
import type { SegmentData } from './segment-data.js';
import type { StoredVectors } from './vector-field.js';

interface CompactionInput {
  /** In order of arrival. */
  readonly inputs: readonly SegmentData[];
  /** Rows deleted at or before this sequence are dropped. */
  readonly horizonSequence: number;
  /** The rows of the first input before this one are dropped as well; 0 by default. */
  readonly firstRow?: number;
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
  /** For each input, the new row number of each of its rows, or -1. */
  readonly mappings: readonly Int32Array[];
}

function compactSegments(input: CompactionInput): Compaction {
  const { inputs, horizonSequence, firstRow = 0, rowsMax } = input;
  const kept = inputs.map((segment, i) =>
    keptRows(segment, horizonSequence, i === 0 ? firstRow : 0),
  );
  const mappings: Int32Array[] = [];
  let rowCount = 0;
  for (const [i, rows] of kept.entries()) {
    const mapping = sharedInt32(inputs[i]!.rowCount).fill(-1);
    for (const row of rows) mapping[row] = rowCount++;
    mappings.push(mapping);
  }
  if (rowCount === 0) return { data: null, mappings };
  assert(rowCount <= rowsMax, `${rowCount} rows in a segment of ${rowsMax}`);
  const runs = runsOf(inputs, kept);
  const ids = copyText(runs, 'ids');
  const json = copyText(runs, 'json');
  const vectors = copyVectors(inputs, runs);
  const byteCount = vectors.reduce(
    (sum, column) => sum + bytesOfRows(column, 0, rowCount),
    ids.bytes.byteLength + json.bytes.byteLength,
  );
  assert(byteCount <= SEGMENT_BYTES_MAX, `${byteCount} bytes in a segment`);
  const data: SegmentData = {
    key: input.key,
    number: input.number,
    rowCount,
    vectors,
    ids,
    json,
    ...copySequences(runs, rowCount),
    ...copyColumns(inputs, kept, input.columnsMax ?? DEFAULT_LIMITS.metadataColumnsMax),
  };
  return { data, mappings };
}

export const compactSegmentsTask: Task<CompactionInput, Compaction> = {
  name: 'segment.compact',
  run: compactSegments,
};

function keptRows(
  { rowCount, deletedSequences }: SegmentData,
  horizonSequence: number,
  firstRow: number,
) {
  const rows = new Uint32Array(rowCount);
  let count = 0;
  for (let row = firstRow; row < rowCount; row++) {
    if (deletedSequences === null || deletedSequences[row]! > horizonSequence) rows[count++] = row;
  }
  return rows.subarray(0, count);
}

/** Neighbouring rows from..to of a segment, all of which are kept. */
interface Run {
  readonly segment: SegmentData;
  readonly from: number;
  readonly to: number;
}

function runsOf(inputs: readonly SegmentData[], kept: readonly Uint32Array[]): Run[] {
  return kept.flatMap((rows, i) => {
    const runs: Run[] = [];
    for (let at = 0; at < rows.length; ) {
      const from = rows[at]!;
      do at++;
      while (at < rows.length && rows[at] === rows[at - 1]! + 1);
      runs.push({ segment: inputs[i]!, from, to: rows[at - 1]! + 1 });
    }
    return runs;
  });
}

/** Copies every vector that at least one of the segments stores. */
function copyVectors(inputs: readonly SegmentData[], runs: readonly Run[]): StoredVectors[] {
  const byName = new Map(inputs.flatMap(({ vectors }) => vectors).map((one) => [one.name, one]));
  return Array.from(byName.values(), (spec) => {
    const columns = new Map(
      inputs.map((segment) => [segment, segment.vectors.find(({ name }) => name === spec.name)]),
    );
    const parts = runs.map(({ segment, from, to }) => ({ column: columns.get(segment), from, to }));
    // Codes are laid out in panels of rows, which have changed, so the caller encodes the rows again.
    return { name: spec.name, ...gatherRows(spec, parts, SHARED_MEMORY), codes: null };
  });
}

function copyText(runs: readonly Run[], name: 'ids' | 'json'): Utf8Column {
  const parts = runs.map(({ segment, from, to }) => ({ column: segment[name], from, to }));
  return gatherText(parts, SHARED_MEMORY);
}

function copySequences(
  runs: readonly Run[],
  rowCount: number,
): Pick<SegmentData, 'insertedSequences' | 'deletedSequences'> {
  const insertedSequences = sharedFloat64(rowCount);
  const deletedSequences = sharedFloat64(rowCount).fill(Number.POSITIVE_INFINITY);
  let target = 0;
  for (const { segment, from, to } of runs) {
    insertedSequences.set(segment.insertedSequences.subarray(from, to), target);
    if (segment.deletedSequences !== null) {
      deletedSequences.set(segment.deletedSequences.subarray(from, to), target);
    }
    target += to - from;
  }
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
      // Paths that are only in the JSON may get columns now.
      rows.forEach((row, at) => {
        metadata.append(target + at, segment.json, row);
      });
    }
    target += rows.length;
  }
  return { columns: metadata.seal(), isComplete: metadata.isComplete };
}
