// Cuts NDJSON into batches of whole lines, without making strings. Where it cuts depends on the bytes
// alone, not on the chunks they arrive in: a stream that is sent again has the same batches.

import { rowField, validationError } from '../../common/errors.js';

/** A commit of this many rows adds little to their cost, and they are visible soon. */
export const BATCH_LINES_MAX = 1_000;
/** A thread parses this much in about ten milliseconds. A batch ends with the line that reaches it. */
export const BATCH_BYTES_MAX = 4_000_000;
/**
 * A row of 16 384 numbers of 25 characters each and the longest metadata take half a megabyte; the
 * rest is for blanks. Nothing else bounds what is kept of a line that does not end.
 */
export const LINE_BYTES_MAX = 4_000_000;

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

/**
 * Throws `limit_exceeded` for a line that is too long.
 * @param onBuffered called with the number of bytes held for the next batch.
 */
export async function* cutLines(
  chunks: AsyncIterable<Uint8Array>,
  onBuffered: (byteCount: number) => void,
  allocate: Allocate,
): AsyncGenerator<LineBatch, void, undefined> {
  const cutter = new LineCutter(allocate);
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

/** Gives memory of this length. */
type Allocate = (byteCount: number) => Uint8Array;

class LineCutter {
  readonly #allocate: Allocate;
  #chunks: Uint8Array[] = [];
  byteCount = 0;
  #lineCount = 0;
  #rowCount = 0;
  /** The bytes and the first byte of the line that has begun. */
  #lineBytes = 0;
  #firstByte: number | undefined;
  #firstLine = 1;
  #firstRow = 0;

  constructor(allocate: Allocate) {
    this.#allocate = allocate;
  }

  *cut(chunk: Uint8Array): Generator<LineBatch> {
    let taken = 0;
    let at = 0;
    while (at < chunk.length) {
      const newline = chunk.indexOf(NEWLINE, at);
      const end = newline === -1 ? chunk.length : newline;
      if (this.#lineBytes === 0) this.#firstByte = chunk[at];
      this.#lineBytes += end - at;
      if (this.#lineBytes > LINE_BYTES_MAX) throw this.#tooLong();
      at = end + 1;
      if (newline === -1) break;
      this.#endLine();
      const batchBytes = this.byteCount + at - taken;
      if (this.#lineCount < BATCH_LINES_MAX && batchBytes < BATCH_BYTES_MAX) continue;
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
    const bytes = rowCount === 0 ? null : this.#join();
    this.#firstRow += rowCount;
    this.#firstLine += this.#lineCount;
    this.#chunks = [];
    this.byteCount = 0;
    this.#lineCount = 0;
    this.#rowCount = 0;
    return bytes === null ? null : { firstRow, rowCount, firstLine, bytes };
  }

  #join(): Uint8Array {
    const bytes = this.#allocate(this.byteCount);
    let at = 0;
    for (const chunk of this.#chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return bytes;
  }

  #tooLong(): Error {
    const line = this.#firstLine + this.#lineCount;
    return validationError([
      {
        location: rowField(this.#firstRow + this.#rowCount),
        code: 'limit_exceeded',
        detail: `Line ${line} has more than ${LINE_BYTES_MAX} bytes; a line is one vector.`,
        expected: LINE_BYTES_MAX,
      },
    ]);
  }
}
