// Cuts text into batches of whole lines, without making strings: bodies of requests, and files to import. Where a
// body is cut depends on its bytes alone, not on the chunks they arrive in: a stream that is sent again has the same
// batches.

import { joinBytes } from '../../common/bytes.js';

/** A commit of this many rows adds little to their cost, and they are visible soon. */
export const BATCH_LINES_MAX = 1_000;
/** A thread parses this much in about ten milliseconds. A batch ends with the line that reaches it. */
export const BATCH_BYTES_MAX = 4_000_000;
const NEWLINE = 0x0a;
const RETURN = 0x0d;

export interface LineBatch {
  readonly firstRow: number;
  readonly rowCount: number;
  /** Counted from 1, as editors do. */
  readonly firstLine: number;
  /** Lines, the last one perhaps without its newline, in memory from `allocate`. */
  readonly bytes: Uint8Array;
}

/** Whether a line, without its newline, is empty and so not a row. */
export function isBlank(firstByte: number | undefined, byteCount: number): boolean {
  return byteCount === 0 || (byteCount === 1 && firstByte === RETURN);
}

/** A line without its newline. */
export interface Line {
  readonly bytes: Uint8Array;
  /** Where it begins in the bytes of its batch. */
  readonly start: number;
  /** Counted from 1. */
  readonly line: number;
}

/** All lines of a batch, blank ones included. */
export function* linesIn({
  bytes,
  firstLine,
}: Pick<LineBatch, 'bytes' | 'firstLine'>): Generator<Line> {
  for (let start = 0, line = firstLine; start < bytes.length; line++) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline === -1 ? bytes.length : newline;
    yield { bytes: bytes.subarray(start, end), start, line };
    start = end + 1;
  }
}

export interface CutOptions {
  /** Nothing else bounds what is kept of a line that does not end. */
  readonly lineBytesMax: number;
  /** The error for a longer line. */
  readonly tooLong: (where: { readonly row: number; readonly line: number }) => Error;
  /** Gives memory of this length. Without it the bytes may be those of a chunk. */
  readonly allocate?: (byteCount: number) => Uint8Array;
  /** Called with the number of bytes held for the next batch. */
  readonly onBuffered?: (byteCount: number) => void;
  /** Whether batches also end with a chunk, so that a slow pipe keeps no lines waiting, and may have no rows. */
  readonly isPrompt?: boolean;
}

export async function* cutLines(
  chunks: AsyncIterable<Uint8Array>,
  options: CutOptions,
): AsyncGenerator<LineBatch, void, undefined> {
  const { onBuffered = () => {} } = options;
  const cutter = new LineCutter(options);
  for await (const chunk of chunks) {
    for (const batch of cutter.cut(chunk)) {
      onBuffered(cutter.byteCount);
      yield batch;
    }
    onBuffered(cutter.byteCount);
  }
  const last = cutter.end();
  onBuffered(0);
  if (last !== null) yield last;
}

class LineCutter {
  readonly #options: CutOptions;
  #chunks: Uint8Array[] = [];
  byteCount = 0;
  #lineCount = 0;
  #rowCount = 0;
  /** The bytes and the first byte of the line that has begun. */
  #lineBytes = 0;
  #firstByte: number | undefined;
  #firstLine = 1;
  #firstRow = 0;

  constructor(options: CutOptions) {
    this.#options = options;
  }

  *cut(chunk: Uint8Array): Generator<LineBatch> {
    let taken = 0;
    let at = 0;
    while (at < chunk.length) {
      const newline = chunk.indexOf(NEWLINE, at);
      const end = newline === -1 ? chunk.length : newline;
      if (this.#lineBytes === 0) this.#firstByte = chunk[at];
      this.#lineBytes += end - at;
      if (this.#lineBytes > this.#options.lineBytesMax) {
        const line = this.#firstLine + this.#lineCount;
        throw this.#options.tooLong({ row: this.#firstRow + this.#rowCount, line });
      }
      at = end + 1;
      if (newline === -1) break;
      this.#endLine();
      const batchBytes = this.byteCount + at - taken;
      const isFull = this.#lineCount >= BATCH_LINES_MAX || batchBytes >= BATCH_BYTES_MAX;
      const isLast = this.#options.isPrompt === true && chunk.indexOf(NEWLINE, at) === -1;
      if (!isFull && !isLast) continue;
      this.#keep(chunk.subarray(taken, at));
      taken = at;
      const batch = this.#takeBatch();
      if (batch !== null) yield batch;
    }
    this.#keep(chunk.subarray(taken));
  }

  end(): LineBatch | null {
    if (this.#lineBytes > 0) this.#endLine();
    return this.#takeBatch();
  }

  #keep(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#chunks.push(bytes);
    this.byteCount += bytes.length;
  }

  #endLine(): void {
    this.#lineCount++;
    if (!isBlank(this.#firstByte, this.#lineBytes)) this.#rowCount++;
    this.#lineBytes = 0;
  }

  /** Null when there are no rows. */
  #takeBatch(): LineBatch | null {
    const rowCount = this.#rowCount;
    const firstRow = this.#firstRow;
    const firstLine = this.#firstLine;
    const isSkipped = rowCount === 0 && (!this.#options.isPrompt || this.#lineCount === 0);
    const bytes = isSkipped ? null : this.#join();
    this.#firstRow += rowCount;
    this.#firstLine += this.#lineCount;
    this.#chunks = [];
    this.byteCount = 0;
    this.#lineCount = 0;
    this.#rowCount = 0;
    return bytes === null ? null : { firstRow, rowCount, firstLine, bytes };
  }

  #join(): Uint8Array {
    const { allocate } = this.#options;
    if (allocate === undefined) return joinBytes(this.#chunks);
    const bytes = allocate(this.byteCount);
    let at = 0;
    for (const chunk of this.#chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return bytes;
  }
}
