// Decodes Zstandard frames (RFC 8878) into a buffer of known length. Every length is checked before
// bytes move, so that a frame can neither write elsewhere nor take longer than its bytes and the
// target's. Checksums are not compared: what is decoded is checked as Arrow.

import {
  bitsAt,
  buildFseTable,
  FSE_LOG_MAX,
  type FseTable,
  type HuffmanTable,
  lastBit,
  readFseTable,
  singleSymbolTable,
} from './zstd-entropy.js';
import { BLOCK_BYTES_MAX, input, literalBytes, PADDING, readLiterals } from './zstd-literals.js';

const MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a5;
const DICTIONARY_ID_BYTES = [0, 1, 2, 4];
/** Below this a loop is faster than a call. */
const LOOP_BYTES_MAX = 24;

/** What a code of lengths starts at, and how many bits are added to it. */
interface Codes {
  readonly bases: Uint32Array;
  readonly bitCounts: Uint8Array;
}

const LITERAL_LENGTHS = codesOf(
  0,
  16,
  [1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
);
const MATCH_LENGTHS = codesOf(
  3,
  32,
  [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
);
const OFFSET_CODE_MAX = 31;

/** The distributions that hold where a block brings none. */
const DEFAULT_LITERAL_LENGTHS = buildFseTable(
  [
    4,
    3,
    2,
    2,
    2,
    2,
    2,
    2,
    2,
    2,
    2,
    2,
    2,
    1,
    1,
    1,
    ...Array(9).fill(2),
    3,
    2,
    1,
    1,
    1,
    1,
    1,
    -1,
    -1,
    -1,
    -1,
  ],
  6,
);
const DEFAULT_MATCH_LENGTHS = buildFseTable(
  [1, 4, 3, 2, 2, 2, 2, 2, 2, ...Array(37).fill(1), ...Array(7).fill(-1)],
  6,
);
const DEFAULT_OFFSETS = buildFseTable(
  [1, 1, 1, 1, 1, 1, 2, 2, 2, ...Array(15).fill(1), -1, -1, -1, -1, -1],
  5,
);

/** The first `plain` codes stand for themselves plus `first`; each after has as many bits as given. */
function codesOf(first: number, plain: number, moreBits: readonly number[]): Codes {
  const bitCounts = Uint8Array.from([...Array<number>(plain).fill(0), ...moreBits]);
  const bases = new Uint32Array(bitCounts.length);
  let base = first;
  bitCounts.forEach((bitCount, code) => {
    bases[code] = base;
    base += 1 << bitCount;
  });
  return { bases, bitCounts };
}

/** What blocks of a frame hand on to the next. */
interface FrameState {
  /** Where in the target the frame began: matches do not reach further back. */
  readonly start: number;
  huffman: HuffmanTable | null;
  tables: [FseTable, FseTable, FseTable] | null;
  readonly offsets: [number, number, number];
}

/** Returns how many bytes of `target` were written; throws an Error where a frame is damaged. */
export function decodeZstdFrames(source: Uint8Array, target: Uint8Array): number {
  const view = new DataView(source.buffer, source.byteOffset, source.byteLength);
  let at = 0;
  let end = 0;
  while (at < source.length) {
    if (at + 8 > source.length) throw new Error('no Zstandard frame');
    const magic = view.getUint32(at, true);
    if (magic >>> 4 === SKIPPABLE_MAGIC) {
      at += 8 + view.getUint32(at + 4, true);
      if (at > source.length) throw new Error('a frame beyond the bytes');
      continue;
    }
    if (magic !== MAGIC) throw new Error('no Zstandard frame');
    const descriptor = source[at + 4]!;
    const isSingle = (descriptor & 0x20) !== 0;
    const dictionaryBytes = DICTIONARY_ID_BYTES[descriptor & 3]!;
    if ((descriptor & 8) !== 0) throw new Error('a reserved bit');
    let headerEnd = at + 5 + (isSingle ? 0 : 1);
    for (let i = 0; i < dictionaryBytes; i++) {
      if (source[headerEnd + i] !== 0) throw new Error('a dictionary');
    }
    // The size of the content, which the target's length says, too.
    const sizeFlag = descriptor >> 6;
    headerEnd += dictionaryBytes + (sizeFlag === 0 ? (isSingle ? 1 : 0) : 1 << sizeFlag);
    const state: FrameState = { start: end, huffman: null, tables: null, offsets: [1, 4, 8] };
    [at, end] = decodeBlocks(source, headerEnd, target, state);
    at += (descriptor & 4) !== 0 ? 4 : 0;
    if (at > source.length) throw new Error('a checksum beyond the bytes');
  }
  return end;
}

/** Returns where the blocks end in the source and what they gave in the target. */
function decodeBlocks(
  source: Uint8Array,
  start: number,
  target: Uint8Array,
  state: FrameState,
): [number, number] {
  let at = start;
  let end = state.start;
  let isLast = false;
  while (!isLast) {
    if (at + 3 > source.length) throw new Error('a block beyond the bytes');
    const header = source[at]! | (source[at + 1]! << 8) | (source[at + 2]! << 16);
    at += 3;
    isLast = (header & 1) === 1;
    const type = (header >> 1) & 3;
    const size = header >> 3;
    const stored = type === 1 ? 1 : size;
    if (at + stored > source.length) throw new Error('a block beyond the bytes');
    if (type === 2) {
      if (size > BLOCK_BYTES_MAX) throw new Error('a block that is too long');
      input.set(source.subarray(at, at + size), PADDING);
      end = decodeBlock(PADDING, PADDING + size, target, end, state);
    } else {
      if (type === 3) throw new Error('a reserved type of block');
      if (end + size > target.length) throw new Error('more bytes than announced');
      if (type === 0) target.set(source.subarray(at, at + size), end);
      else target.fill(source[at]!, end, end + size);
      end += size;
    }
    at += stored;
  }
  return [at, end];
}

/** The block at input[start..end); returns where the target ends then. */
function decodeBlock(
  start: number,
  blockEnd: number,
  target: Uint8Array,
  targetEnd: number,
  state: FrameState,
): number {
  const { at: literalsEnd, count } = readLiterals(start, blockEnd, state);
  if (targetEnd + count > target.length) throw new Error('more bytes than announced');
  let at = literalsEnd;
  if (at >= blockEnd) throw new Error('a block without sequences');
  let sequenceCount = input[at++]!;
  if (sequenceCount === 255) {
    sequenceCount = input[at]! + (input[at + 1]! << 8) + 0x7f00;
    at += 2;
  } else if (sequenceCount >= 128) {
    sequenceCount = ((sequenceCount - 128) << 8) + input[at++]!;
  }
  if (sequenceCount === 0) {
    if (at !== blockEnd) throw new Error('bytes after the literals');
    target.set(literalBytes.subarray(0, count), targetEnd);
    return targetEnd + count;
  }
  const modes = input[at++]!;
  if ((modes & 3) !== 0 || at > blockEnd) throw new Error('modes of sequences');
  const before = state.tables;
  const read = (
    mode: number,
    which: 0 | 1 | 2,
    fallback: FseTable,
    logMax: number,
    symbolMax: number,
  ) => {
    if (mode === 0) return fallback;
    if (mode === 3) {
      if (before === null) throw new Error('no table to repeat');
      return before[which];
    }
    if (mode === 1) {
      const symbol = input[at++]!;
      if (symbol > symbolMax) throw new Error(`a code of ${symbol}`);
      return singleSymbolTable(symbol);
    }
    const found = readFseTable(input, at, blockEnd, { logMax, symbolMax });
    at = found.end;
    return found.table;
  };
  const { length: literalCodes } = LITERAL_LENGTHS.bases;
  const { length: matchCodes } = MATCH_LENGTHS.bases;
  state.tables = [
    read(modes >> 6, 0, DEFAULT_LITERAL_LENGTHS, FSE_LOG_MAX, literalCodes - 1),
    read((modes >> 4) & 3, 1, DEFAULT_OFFSETS, FSE_LOG_MAX - 1, OFFSET_CODE_MAX),
    read((modes >> 2) & 3, 2, DEFAULT_MATCH_LENGTHS, FSE_LOG_MAX, matchCodes - 1),
  ];
  if (at >= blockEnd) throw new Error('sequences without bits');
  return runSequences(sequenceCount, at, blockEnd, count, target, targetEnd, state);
}

function runSequences(
  sequenceCount: number,
  start: number,
  end: number,
  literalCount: number,
  target: Uint8Array,
  targetStart: number,
  state: FrameState,
): number {
  const [literalTable, offsetTable, matchTable] = state.tables!;
  const { offsets } = state;
  const bitsStart = start * 8;
  let at = lastBit(input, start, end);
  const take = (bitCount: number): number => {
    at -= bitCount;
    if (at < bitsStart) throw new Error('sequences without bits');
    return bitsAt(input, at, bitCount);
  };
  let literalState = take(literalTable.log);
  let offsetState = take(offsetTable.log);
  let matchState = take(matchTable.log);
  let literal = 0;
  let to = targetStart;
  for (let i = 0; i < sequenceCount; i++) {
    const offsetCode = offsetTable.symbols[offsetState]!;
    // As many bits are more than are read at once.
    const high = offsetCode > 24 ? take(offsetCode - 24) * 2 ** 24 : 0;
    const offsetValue = 2 ** offsetCode + high + take(Math.min(offsetCode, 24));
    const matchCode = matchTable.symbols[matchState]!;
    const matchLength = MATCH_LENGTHS.bases[matchCode]! + take(MATCH_LENGTHS.bitCounts[matchCode]!);
    const literalCode = literalTable.symbols[literalState]!;
    const literals =
      LITERAL_LENGTHS.bases[literalCode]! + take(LITERAL_LENGTHS.bitCounts[literalCode]!);
    if (i + 1 < sequenceCount) {
      literalState =
        literalTable.bases[literalState]! + take(literalTable.bitCounts[literalState]!);
      matchState = matchTable.bases[matchState]! + take(matchTable.bitCounts[matchState]!);
      offsetState = offsetTable.bases[offsetState]! + take(offsetTable.bitCounts[offsetState]!);
    }
    const distance = nextDistance(offsetValue, literals, offsets);
    if (literal + literals > literalCount) throw new Error('more literals than there are');
    if (to + literals + matchLength > target.length) throw new Error('more bytes than announced');
    copy(literalBytes, literal, target, to, literals);
    literal += literals;
    to += literals;
    const from = to - distance;
    if (distance === 0 || from < state.start) throw new Error('a match before the frame');
    if (distance >= matchLength) copy(target, from, target, to, matchLength);
    else for (let j = 0; j < matchLength; j++) target[to + j] = target[from + j]!;
    to += matchLength;
  }
  if (at !== bitsStart) throw new Error('bits after the sequences');
  const rest = literalCount - literal;
  if (to + rest > target.length) throw new Error('more bytes than announced');
  copy(literalBytes, literal, target, to, rest);
  return to + rest;
}

/** Values up to 3 name one of the last three distances, which are kept in the order of their use. */
function nextDistance(value: number, literals: number, offsets: FrameState['offsets']): number {
  if (value > 3) {
    offsets[2] = offsets[1];
    offsets[1] = offsets[0];
    offsets[0] = value - 3;
    return offsets[0];
  }
  const index = value - 1 + (literals === 0 ? 1 : 0);
  if (index === 0) return offsets[0];
  const distance = index === 3 ? offsets[0] - 1 : offsets[index]!;
  if (index > 1) offsets[2] = offsets[1];
  offsets[1] = offsets[0];
  offsets[0] = distance;
  return distance;
}

function copy(
  source: Uint8Array,
  from: number,
  target: Uint8Array,
  to: number,
  count: number,
): void {
  if (count > LOOP_BYTES_MAX) target.set(source.subarray(from, from + count), to);
  else for (let i = 0; i < count; i++) target[to + i] = source[from + i]!;
}
