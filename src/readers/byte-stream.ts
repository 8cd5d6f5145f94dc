// Cuts a stream of byte chunks into lines, elements of a JSON array, or pieces of a given size, wherever chunks end.

import { joinBytes } from '../common/bytes.js';
import { cutLines, linesIn } from '../formats/text/line-cutter.js';
import { ReadError } from './read-error.js';

/** A row of text is held in memory; 16 MB are enough for 16 384 numbers of a thousand characters each. */
export const ROW_BYTES_MAX = 16_000_000;
const NEWLINE = 0x0a;
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** A row of text and the number of its first line. */
export interface TextRow {
  readonly bytes: Uint8Array;
  readonly line: number;
}

/** The lines without their line feeds, blank ones included. Throws ReadError for a line that is too long. */
export async function* linesOf(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<TextRow> {
  const tooLong = () => new ReadError(`${name}: found a line of more than ${ROW_BYTES_MAX} bytes`);
  const options = { lineBytesMax: ROW_BYTES_MAX, tooLong, isPrompt: true };
  for await (const batch of cutLines(chunks, options)) yield* linesIn(batch);
}

export function isBlankLine(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte <= 0x20);
}

/**
 * The elements of a JSON array as bytes. Only strings, brackets and commas are parsed, so an element may be invalid
 * JSON. Throws ReadError when the array does not end or is followed by something else.
 */
export async function* elementsOf(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<TextRow> {
  const cutter = new ElementCutter(name);
  for await (const chunk of chunks) yield* cutter.add(chunk);
  cutter.end();
}

class ElementCutter {
  readonly #name: string;
  #line = 1;
  /** Nesting depth: 0 outside the array, 1 at the level of its elements. */
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #state: 'before' | 'within' | 'after' = 'before';
  /** The parts of the current element in earlier chunks, their size, and the line of its first character. */
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #elementLine: number | null = null;
  /** Whether a comma precedes the current element, which must then not be missing. */
  #hasComma = false;

  constructor(name: string) {
    this.#name = name;
  }

  /** The elements that end in this chunk. */
  *add(chunk: Uint8Array): Generator<TextRow> {
    let start = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (byte === NEWLINE) this.#line++;
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isInString = false;
        continue;
      }
      if (byte <= 0x20) continue;
      if (this.#state !== 'within') {
        this.#begin(byte);
        start = at + 1;
        continue;
      }
      const isEnd = this.#depth === 1 && (byte === COMMA || byte === CLOSE_BRACKET);
      if (isEnd) {
        const isLast = byte === CLOSE_BRACKET;
        const isMissing = this.#elementLine === null;
        // An empty array has no element; elsewhere a missing element is reported as an invalid one.
        if (!isMissing || !isLast || this.#hasComma) yield this.#take(chunk.subarray(start, at));
        this.#parts = [];
        this.#hasComma = true;
        if (isLast) this.#state = 'after';
        start = at + 1;
        continue;
      }
      this.#elementLine ??= this.#line;
      if (byte === QUOTE) this.#isInString = true;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++;
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#depth--;
    }
    this.#hold(chunk.subarray(start));
  }

  end(): void {
    if (this.#state !== 'after') {
      throw new ReadError(`${this.#name}:${this.#line}: the file ends within the JSON array`);
    }
  }

  #begin(byte: number): void {
    if (this.#state === 'before' && byte === OPEN_BRACKET) {
      this.#state = 'within';
      this.#depth = 1;
      return;
    }
    const expected = this.#state === 'before' ? 'a JSON array' : 'nothing after the JSON array';
    const found = JSON.stringify(String.fromCharCode(byte));
    throw new ReadError(`${this.#name}:${this.#line}: found ${found}, expected ${expected}`);
  }

  #hold(part: Uint8Array): void {
    if (this.#state !== 'within') return;
    this.#parts.push(part);
    this.#partBytes += part.length;
    if (this.#partBytes <= ROW_BYTES_MAX) return;
    throw new ReadError(
      `${this.#name}:${this.#line}: found an element of more than ${ROW_BYTES_MAX} bytes`,
    );
  }

  #take(last: Uint8Array): TextRow {
    const bytes = joinBytes([...this.#parts, last]);
    const row = { bytes, line: this.#elementLine ?? this.#line };
    this.#elementLine = null;
    this.#partBytes = 0;
    return row;
  }
}

/** Takes bytes from a stream by count. A range within one chunk is not copied. */
export class ByteReader {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #chunks: Uint8Array[] = [];
  #byteCount = 0;
  #isDone = false;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#iterator = chunks[Symbol.asyncIterator]();
  }

  /** `count` bytes, or fewer at the end. The caller must not write into them. */
  async take(count: number): Promise<Uint8Array> {
    while (this.#byteCount < count && !this.#isDone) {
      const next = await this.#iterator.next();
      if (next.done) this.#isDone = true;
      else if (next.value.length > 0) {
        this.#chunks.push(next.value);
        this.#byteCount += next.value.length;
      }
    }
    const first = this.#chunks[0];
    if (first === undefined) return new Uint8Array(0);
    const contiguous = first.length >= count || this.#chunks.length === 1 ? first : this.#join();
    const taken = contiguous.subarray(0, count);
    this.#byteCount -= taken.length;
    if (taken.length === contiguous.length) this.#chunks.shift();
    else this.#chunks[0] = contiguous.subarray(taken.length);
    return taken;
  }

  async close(): Promise<void> {
    await this.#iterator.return?.();
  }

  #join(): Uint8Array {
    const whole = joinBytes(this.#chunks);
    this.#chunks = [whole];
    return whole;
  }
}
