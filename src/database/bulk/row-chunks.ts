// The visible rows of a snapshot as columns, some megabytes at a time, in order of arrival. Where
// all rows of a stretch are visible a piece is a view of the segment; where some are not, a copy of
// those that are. Views stay as they are whatever becomes of the segment meanwhile.

import { nextSetBit } from '../../common/bitmap.js';
import type { Utf8Column, VectorBlock } from '../../common/types.js';
import type { SegmentView } from '../collection/snapshot.js';

/** Rows as columns; null for what was not asked for. Nobody writes to them. */
export interface RowChunk {
  readonly count: number;
  readonly ids: Utf8Column;
  /** Row-major [count, dimension] float32. */
  readonly values: Float32Array | null;
  /** One JSON object a row, as sent. */
  readonly metadata: Utf8Column | null;
}

export interface ChunkOptions {
  readonly values: boolean;
  readonly metadata: boolean;
  /** Of all columns together; a row that is longer makes a piece of its own. */
  readonly bytesMax: number;
  readonly rowsMax: number;
}

/** Rows from..to of a block. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

export function* rowChunks(
  parts: readonly SegmentView[],
  options: ChunkOptions,
): Generator<RowChunk> {
  for (const part of parts) {
    for (const stretches of cutPart(part, options)) yield pieceOf(part, stretches, options);
  }
}

/** Which rows make up each piece, without those that are not visible. */
function* cutPart(part: SegmentView, options: ChunkOptions): Generator<Stretch[]> {
  const { bytesMax, rowsMax } = options;
  let stretches: Stretch[] = [];
  let rowsLeft = rowsMax;
  let bytesLeft = bytesMax;
  for (let { from, to } of visibleStretches(part)) {
    while (from < to) {
      const isEmpty = stretches.length === 0;
      const end = lastFitting(part, from, Math.min(to, from + rowsLeft), bytesLeft, options);
      const taken = end > from || !isEmpty ? end : from + 1;
      if (taken > from) {
        stretches.push({ from, to: taken });
        rowsLeft -= taken - from;
        bytesLeft -= bytesOf(part, from, taken, options);
        from = taken;
      }
      if (from < to || rowsLeft === 0) {
        yield stretches;
        stretches = [];
        rowsLeft = rowsMax;
        bytesLeft = bytesMax;
      }
    }
  }
  if (stretches.length > 0) yield stretches;
}

function* visibleStretches({ rows, rowCount }: SegmentView): Generator<Stretch> {
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

/** The end of the longest stretch from `from` on, at most to `to`, that takes no more than the bytes. */
function lastFitting(
  part: SegmentView,
  from: number,
  to: number,
  bytesMax: number,
  options: ChunkOptions,
): number {
  if (bytesOf(part, from, to, options) <= bytesMax) return to;
  let fitting = from;
  let tooFar = to;
  while (tooFar - fitting > 1) {
    const middle = (fitting + tooFar) >>> 1;
    if (bytesOf(part, from, middle, options) <= bytesMax) fitting = middle;
    else tooFar = middle;
  }
  return fitting;
}

function bytesOf(
  { block, metadata: { json } }: SegmentView,
  from: number,
  to: number,
  { values, metadata }: ChunkOptions,
): number {
  const idBytes = block.ids.offsets[to]! - block.ids.offsets[from]!;
  const valueBytes = values ? (to - from) * block.dimension * 4 : 0;
  return idBytes + valueBytes + (metadata ? json.offsets[to]! - json.offsets[from]! : 0);
}

function pieceOf(
  { block, metadata: { json } }: SegmentView,
  stretches: readonly Stretch[],
  { values, metadata }: ChunkOptions,
): RowChunk {
  let count = 0;
  for (const { from, to } of stretches) count += to - from;
  return {
    count,
    ids: textOf(block.ids, stretches, count),
    values: values ? valuesOf(block, stretches, count) : null,
    metadata: metadata ? textOf(json, stretches, count) : null,
  };
}

function valuesOf(
  { values, dimension }: VectorBlock,
  stretches: readonly Stretch[],
  count: number,
): Float32Array {
  const viewOf = ({ from, to }: Stretch) => values.subarray(from * dimension, to * dimension);
  if (stretches.length === 1) return viewOf(stretches[0]!);
  const gathered = new Float32Array(count * dimension);
  let at = 0;
  for (const stretch of stretches) {
    gathered.set(viewOf(stretch), at);
    at += (stretch.to - stretch.from) * dimension;
  }
  return gathered;
}

function textOf(
  { offsets, bytes }: Utf8Column,
  stretches: readonly Stretch[],
  count: number,
): Utf8Column {
  if (stretches.length === 1) {
    const { from, to } = stretches[0]!;
    return { offsets: offsets.subarray(from, to + 1), bytes };
  }
  let byteCount = 0;
  for (const { from, to } of stretches) byteCount += offsets[to]! - offsets[from]!;
  const gathered = { offsets: new Int32Array(count + 1), bytes: new Uint8Array(byteCount) };
  let row = 0;
  let at = 0;
  for (const { from, to } of stretches) {
    gathered.bytes.set(bytes.subarray(offsets[from]!, offsets[to]!), at);
    const shift = at - offsets[from]!;
    for (let i = from + 1; i <= to; i++) gathered.offsets[++row] = offsets[i]! + shift;
    at = gathered.offsets[row]!;
  }
  return gathered;
}
