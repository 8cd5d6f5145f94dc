// Checks that input files are UTF-8, with or without a byte order mark. Other encodings are an error that names the
// line of the first invalid byte; replacement characters would corrupt ids and metadata.

import { encodeUtf8, isUtf8, startsWith } from '../common/bytes.js';
import { refuseForeign, refuseUtf16 } from './foreign-files.js';
import type { InputSource } from './input-source.js';
import { RowError } from './read-error.js';

const BYTE_ORDER_MARK = encodeUtf8('\ufeff');
const NEWLINE = 0x0a;

/** The head without its byte order mark. Throws ReadError for UTF-16 and for files that are not text. */
export function textHead(source: Pick<InputSource, 'name' | 'head'>): Uint8Array {
  refuseForeign(source);
  refuseUtf16(source);
  const { head } = source;
  return startsWith(head, BYTE_ORDER_MARK) ? head.subarray(BYTE_ORDER_MARK.length) : head;
}

/** The content without its byte order mark. It is not checked to be UTF-8. */
export function textChunks(
  source: Pick<InputSource, 'name' | 'head' | 'chunks'>,
): AsyncIterable<Uint8Array> {
  return source.chunks(source.head.length - textHead(source).length);
}

/** Throws ReadError for bytes that are not UTF-8. `line` is the line number of the first byte. */
export function requireUtf8(name: string, bytes: Uint8Array, line: number): void {
  if (isUtf8(bytes)) return;
  let start = 0;
  let at = line;
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    if (!isUtf8(bytes.subarray(start, end))) break;
    start = end + 1;
    at++;
  }
  throw encodingError(`${name}:${at}`);
}

export function countNewlines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

/** A decoder that throws RowError with the location of bytes that are not UTF-8. */
export function createLineDecoder(): (location: string, bytes: Uint8Array) => string {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  return (location, bytes) => {
    try {
      return decoder.decode(bytes);
    } catch {
      throw encodingError(location);
    }
  };
}

const ADVICE =
  '; convert the file with iconv -t UTF-8, naming its encoding with -f (WINDOWS-1252, UTF-16, …)';

function encodingError(location: string): RowError {
  return new RowError(location, `invalid UTF-8${ADVICE}`);
}
