// Cuts a stream of lines into units of whole lines, without making strings. Where it cuts depends on
// the bytes alone, not on how they arrive: a stream that is sent again has the same units.

import { rowField, validationError } from '../../common/errors.js';

/** A commit of so many rows costs little beside them, and is soon there for its readers. */
export const UNIT_LINES_MAX = 1_000;
/** What a thread parses in some ten milliseconds. A unit ends with the line that comes so far. */
export const UNIT_BYTES_MAX = 4_000_000;
/**
 * A row of 16 384 numbers with 25 characters each, and the longest metadata there may be, have half a
 * megabyte; the rest is for blanks. Nothing else bounds what is kept of a line without an end.
 */
export const LINE_BYTES_MAX = 4_000_000;

const NEWLINE = 0x0a;
const RETURN = 0x0d;

export interface LinesUnit {
  readonly firstRow: number;
  readonly rowCount: number;
  /** From 1, as editors count. */
  readonly firstLine: number;
  /** Lines, the last one perhaps without its newline, in a buffer of its own. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Whether a line without its newline is empty: it is no row then. */
export function isBlank(firstByte: number | undefined, byteCount: number): boolean {
  return byteCount === 0 || (byteCount === 1 && firstByte === RETURN);
}

/**
 * Throws `limit_exceeded` for a line that is too long.
 * @param onBuffered is told how many bytes are kept for the unit to come.
 */
export async function* cutLines(
  chunks: AsyncIterable<Uint8Array>,
  onBuffered: (byteCount: number) => void,
): AsyncGenerator<LinesUnit, void, undefined> {
  const cutter = new LineCutter();
  for await (const chunk of chunks) {
    for (const unit of cutter.cut(chunk)) {
      onBuffered(cutter.byteCount);
      yield unit;
    }
    onBuffered(cutter.byteCount);
  }
  const last = cutter.end();
  onBuffered(0);
  if (last !== null) yield last;
}

class LineCutter {
  #parts: Uint8Array[] = [];
  byteCount = 0;
  #lineCount = 0;
  #rowCount = 0;
  /** Of the line that has begun. */
  #lineBytes = 0;
  #firstByte: number | undefined;
  #firstLine = 1;
  #firstRow = 0;

  *cut(chunk: Uint8Array): Generator<LinesUnit> {
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
      const unitBytes = this.byteCount + at - taken;
      if (this.#lineCount < UNIT_LINES_MAX && unitBytes < UNIT_BYTES_MAX) continue;
      this.#keep(chunk.subarray(taken, at));
      taken = at;
      const unit = this.#takeUnit();
      if (unit !== null) yield unit;
    }
    this.#keep(chunk.subarray(taken));
  }

  end(): LinesUnit | null {
    if (this.#lineBytes > 0) this.#endLine();
    return this.#takeUnit();
  }

  #keep(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#parts.push(bytes);
    this.byteCount += bytes.length;
  }

  #endLine(): void {
    this.#lineCount++;
    if (!isBlank(this.#firstByte, this.#lineBytes)) this.#rowCount++;
    this.#lineBytes = 0;
  }

  /** Null when it has no rows. */
  #takeUnit(): LinesUnit | null {
    const rowCount = this.#rowCount;
    const firstRow = this.#firstRow;
    const firstLine = this.#firstLine;
    const bytes = rowCount === 0 ? null : joined(this.#parts, this.byteCount);
    this.#firstRow += rowCount;
    this.#firstLine += this.#lineCount;
    this.#parts = [];
    this.byteCount = 0;
    this.#lineCount = 0;
    this.#rowCount = 0;
    return bytes === null ? null : { firstRow, rowCount, firstLine, bytes };
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

function joined(parts: readonly Uint8Array[], byteCount: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(byteCount);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
