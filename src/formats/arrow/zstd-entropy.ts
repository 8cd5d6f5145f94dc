// The entropy codes of Zstandard (RFC 8878): tables of FSE and of Huffman, and bits read backwards.
// What reads a table never leaves it, whatever the bits are.

/** Tables are at most 2^9 states (sequences) and 2^11 codes (literals). */
export const FSE_LOG_MAX = 9;
const HUFFMAN_LOG_MAX = 11;
const WEIGHTS_LOG_MAX = 6;
const WEIGHTS_MAX = 255;

/** By state: the symbol, and where the next state starts and how many bits are added to it. */
export interface FseTable {
  readonly log: number;
  readonly symbols: Uint8Array;
  readonly bitCounts: Uint8Array;
  readonly bases: Uint16Array;
}

/** By the next `log` bits: the symbol and how many of them it takes. */
export interface HuffmanTable {
  readonly log: number;
  readonly symbols: Uint8Array;
  readonly bitCounts: Uint8Array;
}

/** Up to 25 bits from bit `at` on; the bytes go on for four beyond those bits. */
export function bitsAt(bytes: Uint8Array, at: number, count: number): number {
  const byte = at >> 3;
  const word =
    bytes[byte]! | (bytes[byte + 1]! << 8) | (bytes[byte + 2]! << 16) | (bytes[byte + 3]! << 24);
  return (word >>> (at & 7)) & ((1 << count) - 1);
}

/** Where a stream that is read backwards starts: below the highest bit set in its last byte. */
export function lastBit(bytes: Uint8Array, start: number, end: number): number {
  if (end <= start || bytes[end - 1] === 0) throw new Error('no start of bits');
  return (end - 1) * 8 + highestBit(bytes[end - 1]!);
}

function highestBit(value: number): number {
  return 31 - Math.clz32(value);
}

/** A table as it is described at `start`, and where the description ends. */
export function readFseTable(
  bytes: Uint8Array,
  start: number,
  end: number,
  { logMax, symbolMax }: { logMax: number; symbolMax: number },
): { table: FseTable; end: number } {
  let at = start * 8;
  const log = bitsAt(bytes, at, 4) + 5;
  at += 4;
  if (log > logMax) throw new Error(`a table of 2^${log}`);
  const counts: number[] = [];
  let remaining = 1 << log;
  while (remaining > 0) {
    if (counts.length > symbolMax || at > end * 8) throw new Error('a table of too many symbols');
    const bitCount = highestBit(remaining + 1) + 1;
    let value = bitsAt(bytes, at, bitCount);
    const mask = (1 << (bitCount - 1)) - 1;
    const threshold = (1 << bitCount) - 1 - (remaining + 1);
    at += bitCount;
    if ((value & mask) < threshold) {
      // The smaller values take one bit less.
      value &= mask;
      at--;
    } else if (value > mask) {
      value -= threshold;
    }
    const count = value - 1;
    remaining -= Math.abs(count);
    counts.push(count);
    if (count !== 0) continue;
    let repeated = 3;
    while (repeated === 3) {
      repeated = bitsAt(bytes, at, 2);
      at += 2;
      for (let i = 0; i < repeated; i++) counts.push(0);
      if (counts.length > symbolMax + 3) throw new Error('a table of too many symbols');
    }
  }
  const bytesEnd = (at + 7) >> 3;
  if (remaining !== 0 || counts.length > symbolMax + 1 || bytesEnd > end) {
    throw new Error('a table whose shares do not add up');
  }
  return { table: buildFseTable(counts, log), end: bytesEnd };
}

/** @param counts states of each symbol; -1 stands for one state at the end, less than one in all. */
export function buildFseTable(counts: readonly number[], log: number): FseTable {
  const size = 1 << log;
  const symbols = new Uint8Array(size);
  const next = new Uint16Array(counts.length);
  let high = size;
  counts.forEach((count, symbol) => {
    if (count !== -1) return;
    symbols[--high] = symbol;
    next[symbol] = 1;
  });
  const step = (size >> 1) + (size >> 3) + 3;
  let at = 0;
  counts.forEach((count, symbol) => {
    if (count <= 0) return;
    next[symbol] = count;
    for (let i = 0; i < count; i++) {
      symbols[at] = symbol;
      do at = (at + step) & (size - 1);
      while (at >= high);
    }
  });
  const bitCounts = new Uint8Array(size);
  const bases = new Uint16Array(size);
  for (let state = 0; state < size; state++) {
    const value = next[symbols[state]!]!++;
    bitCounts[state] = log - highestBit(value);
    bases[state] = (value << bitCounts[state]!) - size;
  }
  return { log, symbols, bitCounts, bases };
}

/** One state that gives one symbol and takes no bits. */
export function singleSymbolTable(symbol: number): FseTable {
  const [symbols, bitCounts] = [Uint8Array.of(symbol), new Uint8Array(1)];
  return { log: 0, symbols, bitCounts, bases: new Uint16Array(1) };
}

/** The table of literals as it is described at `start`, and where the description ends. */
export function readHuffmanTable(
  bytes: Uint8Array,
  start: number,
  end: number,
): { table: HuffmanTable; end: number } {
  const header = bytes[start]!;
  const isDirect = header >= 128;
  const weightsEnd = start + 1 + (isDirect ? (header - 126) >> 1 : header);
  if (weightsEnd > end) throw new Error('weights beyond the block');
  const weights = isDirect
    ? Array.from({ length: header - 127 }, (_, i) => {
        const pair = bytes[start + 1 + (i >> 1)]!;
        return i % 2 === 0 ? pair >> 4 : pair & 15;
      })
    : readWeights(bytes, start + 1, weightsEnd);
  return { table: buildHuffmanTable(weights), end: weightsEnd };
}

/** Two states take turns until the bits are used up. */
function readWeights(bytes: Uint8Array, start: number, end: number): number[] {
  const bounds = { logMax: WEIGHTS_LOG_MAX, symbolMax: 255 };
  const { table, end: first } = readFseTable(bytes, start, end, bounds);
  const { log, symbols, bitCounts, bases } = table;
  const bitsStart = first * 8;
  let at = lastBit(bytes, first, end);
  if (at - bitsStart < 2 * log) throw new Error('weights without bits');
  const states = [bitsAt(bytes, at - log, log), bitsAt(bytes, at - 2 * log, log)] as const;
  let [current, other]: readonly [number, number] = states;
  at -= 2 * log;
  const weights: number[] = [];
  while (true) {
    if (weights.length > WEIGHTS_MAX) throw new Error('more than 255 weights');
    weights.push(symbols[current]!);
    const bitCount = bitCounts[current]!;
    if (at - bitCount < bitsStart) {
      weights.push(symbols[other]!);
      return weights;
    }
    at -= bitCount;
    [current, other] = [other, bases[current]! + bitsAt(bytes, at, bitCount)];
  }
}

/** A symbol of weight w has 2^(w-1) of the codes; the last symbol has what is left. */
function buildHuffmanTable(given: readonly number[]): HuffmanTable {
  let total = 0;
  for (const weight of given) {
    if (weight > HUFFMAN_LOG_MAX) throw new Error(`a weight of ${weight}`);
    if (weight > 0) total += 1 << (weight - 1);
  }
  const log = total === 0 ? 0 : highestBit(total) + 1;
  const rest = (1 << log) - total;
  if (
    log === 0 ||
    log > HUFFMAN_LOG_MAX ||
    given.length > WEIGHTS_MAX ||
    (rest & (rest - 1)) !== 0
  ) {
    throw new Error('weights that do not add up');
  }
  const weights = [...given, highestBit(rest) + 1];
  const symbols = new Uint8Array(1 << log);
  const bitCounts = new Uint8Array(1 << log);
  let at = 0;
  for (let weight = 1; weight <= log; weight++) {
    weights.forEach((found, symbol) => {
      if (found !== weight) return;
      const end = at + (1 << (weight - 1));
      symbols.fill(symbol, at, end);
      bitCounts.fill(log + 1 - weight, at, end);
      at = end;
    });
  }
  return { log, symbols, bitCounts };
}
