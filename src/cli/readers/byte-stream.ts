// Reads a stream of byte chunks by lines or by byte counts, independent of the chunk boundaries.

import { CliError } from '../failure.js';

/** A line is kept in memory: 16 MB hold 16 384 numbers of a thousand characters each. */
const LINE_BYTES_MAX = 16_000_000;
const NEWLINE = 0x0a;

/** The lines as bytes, without their line feeds. Throws CliError for a line that is too long. */
export async function* linesOf(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let partBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, end));
      yield parts.length === 1 ? parts[0]! : Buffer.concat(parts);
      parts = [];
      partBytes = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    partBytes += chunk.length - start;
    if (partBytes > LINE_BYTES_MAX) {
      throw new CliError(`${name}: found a line of more than ${LINE_BYTES_MAX} bytes`);
    }
  }
  if (parts.length > 0) yield Buffer.concat(parts);
}

/** A decoder that throws CliError with the position for bytes that are not UTF-8. */
export function createLineDecoder(): (location: string, bytes: Uint8Array) => string {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  return (location, bytes) => {
    try {
      return decoder.decode(bytes);
    } catch (cause) {
      throw new CliError(`${location}: invalid UTF-8`, { cause });
    }
  };
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
    const whole = Buffer.concat(this.#chunks);
    this.#chunks = [whole];
    return whole;
  }
}
