// Conditions on a single string in UTF-8. Documents and dictionaries of columns use the same tests.

import { isAscii } from 'node:buffer';
import type { Operands } from './filter-node.js';
import { compareInstants, readInstant } from './instant.js';
import { compilePattern } from './pattern.js';

/** Whether the string `bytes[start..end)` satisfies the condition. */
export type StringTest = (bytes: Buffer, start: number, end: number) => boolean;

type StringOperator = '$prefix' | '$suffix' | '$like' | '$regex' | '$date';

export const STRING_TESTS: {
  readonly [name in StringOperator]: (operand: Operands[name]) => StringTest;
} = {
  $prefix: testPrefix,
  $suffix: testSuffix,
  $like: testLike,
  $regex: testPattern,
  $date: testDate,
};

function testPrefix(prefix: string): StringTest {
  const wanted = Buffer.from(prefix);
  return (bytes, start, end) => hasBytesAt(bytes, start, end, wanted);
}

function testSuffix(suffix: string): StringTest {
  const wanted = Buffer.from(suffix);
  return (bytes, start, end) => {
    const from = end - wanted.length;
    return from >= start && hasBytesAt(bytes, from, end, wanted);
  };
}

function hasBytesAt(bytes: Uint8Array, start: number, end: number, wanted: Uint8Array): boolean {
  if (end - start < wanted.length) return false;
  let i = 0;
  while (i < wanted.length && bytes[start + i] === wanted[i]) i++;
  return i === wanted.length;
}

/** Symbols of a `$like` pattern other than bytes. */
const ANY_CHARACTER = 256;
const ANY_TEXT = 257;

/** Matches as in SQL: "%" is any text, "_" one character, and "\" makes the next character literal. */
function testLike(pattern: string): StringTest {
  const symbols = parseLike(pattern);
  return (bytes, start, end) => {
    let next = start;
    let symbol = 0;
    // The last "%" and where its text ends. After a mismatch only this one has to match more text.
    let anyText = -1;
    let anyTextEnd = start;
    while (next < end) {
      const wanted = symbols[symbol];
      if (wanted === bytes[next]) {
        symbol++;
        next++;
      } else if (wanted === ANY_TEXT) {
        anyText = symbol++;
        if (symbol === symbols.length) return true;
        anyTextEnd = next;
      } else if (wanted === ANY_CHARACTER) {
        symbol++;
        next = nextCharacter(bytes, next, end);
      } else if (anyText >= 0) {
        anyTextEnd = nextCharacter(bytes, anyTextEnd, end);
        next = anyTextEnd;
        symbol = anyText + 1;
      } else {
        return false;
      }
    }
    while (symbols[symbol] === ANY_TEXT) symbol++;
    return symbol === symbols.length;
  };
}

function parseLike(pattern: string): Int16Array {
  const symbols: number[] = [];
  let isLiteral = false;
  for (const character of pattern) {
    if (!isLiteral && character === '\\') {
      isLiteral = true;
      continue;
    }
    if (!isLiteral && character === '_') symbols.push(ANY_CHARACTER);
    else if (!isLiteral && character === '%') symbols.push(ANY_TEXT);
    else symbols.push(...Buffer.from(character));
    isLiteral = false;
  }
  return Int16Array.from(symbols);
}

/** Returns the start of the character after the one at `at`. */
function nextCharacter(bytes: Uint8Array, at: number, end: number): number {
  let next = at + 1;
  while (next < end && (bytes[next] & 0xc0) === 0x80) next++;
  return next;
}

function testPattern(source: string): StringTest {
  const pattern = compilePattern(source);
  const decode = createDecoder();
  return (bytes, start, end) => pattern.test(decode(bytes, start, end));
}

/**
 * Decodes strings that mostly follow each other, as in a dictionary. ASCII is decoded in large chunks, because
 * decoding a short string takes as long as matching it.
 */
function createDecoder(): (bytes: Buffer, start: number, end: number) => string {
  let chunk: Chunk = { bytes: Buffer.alloc(0), start: 0, end: 0, text: null };
  return (bytes, start, end) => {
    if (bytes !== chunk.bytes || start < chunk.start || end > chunk.end) {
      const chunkEnd = Math.max(end, Math.min(bytes.length, start + CHUNK_BYTES));
      const isText = isAscii(bytes.subarray(start, chunkEnd));
      const text = isText ? bytes.toString('latin1', start, chunkEnd) : null;
      chunk = { bytes, start, end: chunkEnd, text };
    }
    return chunk.text === null
      ? bytes.toString('utf8', start, end)
      : chunk.text.slice(start - chunk.start, end - chunk.start);
  };
}

interface Chunk {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /** Null if the chunk is not ASCII. */
  readonly text: string | null;
}

const CHUNK_BYTES = 16_384;

function testDate({ from, until }: Operands['$date']): StringTest {
  return (bytes, start, end) => {
    const instant = readInstant(bytes, start, end);
    if (instant === null || (from !== null && compareInstants(instant, from) < 0)) return false;
    return until === null || compareInstants(instant, until) < 0;
  };
}
