// The literals of a block of Zstandard (RFC 8878): stored, repeated, or in Huffman codes, in one stream
// or in four.

import { bitsAt, type HuffmanTable, lastBit, readHuffmanTable } from './zstd-entropy.js';

export const BLOCK_BYTES_MAX = 131_072;
/** Bits are read four bytes at a time, and before the start of what they are read from. */
export const PADDING = 8;

/** Reused: a block, with room around it; and the literals of a block. */
export const input = new Uint8Array(PADDING + BLOCK_BYTES_MAX + PADDING);
export const literalBytes = new Uint8Array(BLOCK_BYTES_MAX);

/**
 * Fills `literalBytes` from the section at input[start]; returns their count and where it ends. The
 * table of one block may be that of the next.
 */
export function readLiterals(
  start: number,
  end: number,
  state: { huffman: HuffmanTable | null },
): { at: number; count: number } {
  const first = input[start]!;
  const type = first & 3;
  const format = (first >> 2) & 3;
  if (type < 2) {
    const headerBytes = format === 1 ? 2 : format === 3 ? 3 : 1;
    const count = bitsAt(
      input,
      start * 8 + (headerBytes === 1 ? 3 : 4),
      [0, 5, 12, 20][headerBytes]!,
    );
    const at = start + headerBytes;
    const stored = type === 0 ? count : 1;
    if (at + stored > end || count > BLOCK_BYTES_MAX) throw new Error('literals beyond the block');
    if (type === 0) literalBytes.set(input.subarray(at, at + count));
    else literalBytes.fill(input[at]!, 0, count);
    return { at: at + stored, count };
  }
  const sizeBits = format < 2 ? 10 : format === 2 ? 14 : 18;
  const count = bitsAt(input, start * 8 + 4, sizeBits);
  const compressed = bitsAt(input, start * 8 + 4 + sizeBits, sizeBits);
  let at = start + ((4 + sizeBits * 2) >> 3);
  const sectionEnd = at + compressed;
  if (sectionEnd > end || count > BLOCK_BYTES_MAX) throw new Error('literals beyond the block');
  if (type === 2) ({ table: state.huffman, end: at } = readHuffmanTable(input, at, sectionEnd));
  if (state.huffman === null) throw new Error('no table of literals');
  if (format === 0) {
    readHuffmanStream(state.huffman, at, sectionEnd, 0, count);
    return { at: sectionEnd, count };
  }
  // Four streams side by side: the lengths of three, then all of them.
  const quarter = (count + 3) >> 2;
  let streamStart = at + 6;
  for (let i = 0; i < 4; i++) {
    const length = input[at + i * 2]! | (input[at + i * 2 + 1]! << 8);
    const streamEnd = i === 3 ? sectionEnd : streamStart + length;
    if (streamEnd > sectionEnd || quarter * 3 > count)
      throw new Error('streams beyond the literals');
    readHuffmanStream(
      state.huffman,
      streamStart,
      streamEnd,
      quarter * i,
      i === 3 ? count : quarter * (i + 1),
    );
    streamStart = streamEnd;
  }
  return { at: sectionEnd, count };
}

function readHuffmanStream(
  { log, symbols, bitCounts }: HuffmanTable,
  start: number,
  end: number,
  from: number,
  to: number,
): void {
  let at = lastBit(input, start, end);
  const bitsStart = start * 8;
  const mask = (1 << log) - 1;
  for (let i = from; i < to; i++) {
    // What lies before the stream is read along with its last codes, which do not depend on it.
    const bit = at - log;
    const byte = bit >> 3;
    const word = input[byte]! | (input[byte + 1]! << 8) | (input[byte + 2]! << 16);
    const code = (word >>> (bit & 7)) & mask;
    literalBytes[i] = symbols[code]!;
    at -= bitCounts[code]!;
    if (at < bitsStart) throw new Error('literals without bits');
  }
  if (at !== bitsStart) throw new Error('bits after the literals');
}
