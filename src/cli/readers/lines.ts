// Lines of a text, as bytes, wherever the chunks end.

import { CliError } from '../failure.js';

/** A line is held in memory; 16 MB are 16 384 numbers with a thousand characters each. */
export const LINE_BYTES_MAX = 16_000_000;
const NEWLINE = 0x0a;

/** Without their ends; the last one need not have one. */
export async function* linesOf(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let pieceBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      pieces.push(chunk.subarray(start, end));
      yield pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
      pieces = [];
      pieceBytes = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    pieces.push(chunk.subarray(start));
    pieceBytes += chunk.length - start;
    if (pieceBytes > LINE_BYTES_MAX) {
      throw new CliError(`${name}: expected lines, found one of more than ${LINE_BYTES_MAX} bytes`);
    }
  }
  if (pieces.length > 0) yield Buffer.concat(pieces);
}

/** Throws CliError for bytes that are no UTF-8. */
export function createLineDecoder(): (place: string, bytes: Uint8Array) => string {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  return (place, bytes) => {
    try {
      return decoder.decode(bytes);
    } catch (cause) {
      throw new CliError(`${place}: expected UTF-8, found other bytes`, { cause });
    }
  };
}
