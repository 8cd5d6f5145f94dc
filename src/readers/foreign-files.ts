// Recognizes files that no reader supports by their first bytes: compressed files, other formats, text in other
// encodings, and the result of a failed download. Otherwise their content would be reported as invalid rows.

import { latin1Bytes as latin1, startsWith } from '../common/bytes.js';
import type { InputSource } from './input-source.js';
import { ReadError } from './read-error.js';

type NamedHead = Pick<InputSource, 'name' | 'head'>;

interface ForeignFile {
  readonly magic: Uint8Array;
  readonly found: string;
  readonly advice: string;
}

const decompress = (program: string): string => `decompress the file first, with ${program}`;
const RESAVE = 'write the rows as Parquet, Arrow, CSV or NDJSON';

const pickle = (start: string): ForeignFile => ({
  magic: latin1(start),
  found: 'a Python pickle',
  advice: `${RESAVE}, or an array with numpy.save`,
});

const FOREIGN_FILES: readonly ForeignFile[] = [
  { magic: latin1('\x28\xb5\x2f\xfd'), found: 'zstd', advice: decompress('zstd -d') },
  { magic: latin1('\xfd7zXZ\x00'), found: 'xz', advice: decompress('xz -d') },
  ...Array.from({ length: 9 }, (_, at) => ({
    magic: latin1(`BZh${at + 1}1AY&SY`),
    found: 'bzip2',
    advice: decompress('bzip2 -d'),
  })),
  { magic: latin1('\x04\x22\x4d\x18'), found: 'lz4', advice: decompress('lz4 -d') },
  { magic: latin1('7z\xbc\xaf\x27\x1c'), found: 'a 7z archive', advice: decompress('7z x') },
  { magic: latin1('Obj\x01'), found: 'Avro', advice: RESAVE },
  { magic: latin1('SQLite format 3\x00'), found: 'a SQLite database', advice: RESAVE },
  // Two bytes are not enough: a file of vectors may begin with the dimension 640, which is 80 02 00 00.
  ...['\x80\x02', '\x80\x03'].flatMap((protocol) =>
    ['cp', 'cn', ']q', '}q'].map((start) => pickle(protocol + start)),
  ),
  ...['\x80\x04\x95', '\x80\x05\x95'].map((start) => pickle(start)),
  {
    magic: latin1('\xba\x16\x4f\x2f'),
    found: 'a fastText model',
    advice: 'use the .vec file beside it',
  },
  {
    magic: latin1('version https://git-lfs.github.com/spec/'),
    found: 'a Git LFS pointer instead of the file',
    advice: 'fetch it with git lfs pull',
  },
  ...['<!DOCTYPE html', '<!doctype html', '<html'].map((text) => ({
    magic: latin1(text),
    found: 'an HTML page',
    advice: 'check how the file was downloaded',
  })),
];

/** Throws ReadError for a file in a known format that no reader supports. */
export function refuseForeign({ name, head }: NamedHead): void {
  const foreign = FOREIGN_FILES.find(({ magic }) => startsWith(head, magic));
  if (foreign === undefined) return;
  const { found, advice } = foreign;
  throw new ReadError(
    `${name}: found ${found}, judging by its first bytes, which is not supported; ${advice}`,
  );
}

/** Characters of the head that are examined to detect UTF-16. */
const CHARACTERS_CHECKED = 16;

/**
 * Throws ReadError for text in UTF-16, with or without a byte order mark. Without one, its bytes may also be valid
 * UTF-8.
 */
export function refuseUtf16({ name, head }: NamedHead): void {
  const encoding = utf16Of(head);
  if (encoding === undefined) return;
  throw new ReadError(
    `${name}: found text in ${encoding}, expected UTF-8; convert the file with iconv -f ${encoding} -t UTF-8`,
  );
}

function utf16Of(head: Uint8Array): string | undefined {
  if (head[0] === 0xff && head[1] === 0xfe) return 'UTF-16';
  if (head[0] === 0xfe && head[1] === 0xff) return 'UTF-16';
  const bytes = head.subarray(0, 2 * CHARACTERS_CHECKED);
  if (bytes.length < 4 || bytes.length % 2 === 1) return undefined;
  // Characters such as braces, letters and digits have one zero byte of two.
  const isZero = (parity: number) => bytes.every((byte, at) => at % 2 !== parity || byte === 0);
  const hasZero = (parity: number) => bytes.some((byte, at) => at % 2 === parity && byte === 0);
  if (isZero(1) && !hasZero(0)) return 'UTF-16LE';
  if (isZero(0) && !hasZero(1)) return 'UTF-16BE';
  return undefined;
}
