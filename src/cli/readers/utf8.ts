// The text of input files: UTF-8, with or without a byte order mark. Other encodings are an error with the
// line of the first byte that is not UTF-8, instead of replacement characters in ids and metadata.

import { isUtf8 } from 'node:buffer';
import { CliError } from '../failure.js';
import { refuseForeign, refuseUtf16 } from './foreign-files.js';
import { type InputSource, startsWith } from './source.js';

const BYTE_ORDER_MARK = Buffer.from('\ufeff');
const NEWLINE = 0x0a;

/** The head without its byte order mark. Throws CliError if it is of no text, or of UTF-16. */
export function textHead(source: Pick<InputSource, 'name' | 'head'>): Uint8Array {
  refuseForeign(source);
  refuseUtf16(source);
  const { head } = source;
  return startsWith(head, BYTE_ORDER_MARK) ? head.subarray(BYTE_ORDER_MARK.length) : head;
}

/** The content without its byte order mark, not checked. */
export function textChunks(
  source: Pick<InputSource, 'name' | 'head' | 'chunks'>,
): AsyncIterable<Uint8Array> {
  return source.chunks(source.head.length - textHead(source).length);
}

/** The same chunks, cut between characters. Throws CliError for bytes that are not UTF-8. */
export async function* checkUtf8(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array(0);
  let line = 1;
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = endOfCharacters(bytes);
    const whole = bytes.subarray(0, end);
    if (!isUtf8(whole)) throw notUtf8(name, whole, line);
    line += countNewlines(whole);
    rest = bytes.subarray(end);
    yield whole;
  }
  if (rest.length > 0) throw notUtf8(name, rest, line);
}

/** A decoder that throws CliError with the position for bytes that are not UTF-8. */
export function createLineDecoder(): (location: string, bytes: Uint8Array) => string {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  return (location, bytes) => {
    try {
      return decoder.decode(bytes);
    } catch (cause) {
      throw encodingError(location, cause);
    }
  };
}

/** Where the last character that may go on in the next chunk begins. */
function endOfCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** `line` is that of the first byte. */
function notUtf8(name: string, bytes: Uint8Array, line: number): CliError {
  let start = 0;
  let at = line;
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    if (!isUtf8(bytes.subarray(start, end))) break;
    start = end + 1;
    at++;
  }
  return encodingError(`${name}:${at}`);
}

function countNewlines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

function encodingError(location: string, cause?: unknown): CliError {
  return new CliError(
    `${location}: invalid UTF-8; convert the file with iconv -t UTF-8, which -f tells its encoding (WINDOWS-1252, UTF-16, …)`,
    { cause },
  );
}
