// Reads words with their vectors: the text formats of GloVe, word2vec and fastText, and the binary format of word2vec.
// The word is the id; when a word repeats, the last vector wins, as for every repeated id. Lines are parsed from their
// end, since words may contain spaces.

import { decodeUtf8, joinBytes } from '../common/bytes.js';
import { ByteReader, isBlankLine, linesOf } from './byte-stream.js';
import type { InputSource } from './input-source.js';
import { ReadError, RowError, show } from './read-error.js';
import type { ReaderOptions } from './reader-options.js';
import { DIMENSION_MAX, toFloats } from './record-files.js';
import {
  collectBatches,
  type FoundRow,
  type ParsedRow,
  type RowReader,
  sampleOfVectors,
} from './row-batch.js';
import { createLineDecoder, textChunks } from './utf8.js';
import { type Header, headerOf, isText, NUMBER } from './word-head.js';

const SPACE = 0x20;
const NEWLINE = 0x0a;
/** Far longer than any word: a file without a space in this many bytes has a different format. */
const WORD_BYTES_MAX = 10_000;
/** Bytes of the binary format that are read at a time. */
const PART_BYTES = 1 << 20;

/** Files of word2vec and fastText require a header. Throws ReadError when a required header is missing. */
export async function openWords(
  source: InputSource,
  options: ReaderOptions,
  isHeaderRequired: boolean,
): Promise<RowReader> {
  const header = headerOf(source.head);
  if (header === undefined && isHeaderRequired) {
    throw new ReadError(
      `${source.name}:1: expected the number of words and the dimension; without that line, use --format glove`,
    );
  }
  if (header !== undefined && (header.dimension < 1 || header.dimension > DIMENSION_MAX)) {
    throw new ReadError(
      `${source.name}:1: found dimension ${header.dimension}, expected 1 to ${DIMENSION_MAX}`,
    );
  }
  const isBinary = header !== undefined && !isText(source.head, header);
  const { name } = source;
  const location = (number: number): string =>
    isBinary ? `${name}, row ${number}` : `${name}:${number}`;
  const batches = (startRow: number) => {
    const rows = isBinary ? binaryRows(source, header) : textRows(source, header);
    return collectBatches({ rows, startRow, location }, options);
  };
  return {
    rowCount: header?.rowCount,
    batches,
    sample: (rowCount) => sampleOfVectors({ batches }, rowCount),
  };
}

async function* textRows(
  source: InputSource,
  header: Header | undefined,
): AsyncGenerator<FoundRow> {
  const { name } = source;
  const decode = createLineDecoder();
  let dimension = header?.dimension;
  let rowCount = 0;
  for await (const { bytes, line } of linesOf(name, textChunks(source))) {
    if ((line === 1 && header !== undefined) || isBlankLine(bytes)) continue;
    rowCount++;
    const location = `${name}:${line}`;
    const tokensOf = () =>
      decode(location, bytes)
        .replace(/[ \t\r]+$/, '')
        .split(/[ \t]/);
    dimension ??= dimensionOf(location, tokensOf());
    const expected = dimension;
    yield { number: line, parse: () => rowOf(location, tokensOf(), expected) };
  }
  if (header !== undefined && rowCount !== header.rowCount) {
    throw wrongCount(name, rowCount, header);
  }
}

/** Counts the numbers after the word on the first line. Throws RowError when there is none. */
function dimensionOf(location: string, tokens: readonly string[]): number {
  let dimension = 0;
  while (dimension < tokens.length - 1 && NUMBER.test(tokens.at(-1 - dimension)!)) dimension++;
  if (dimension > 0) return dimension;
  throw new RowError(location, `found ${show(tokens.join(' '))}, expected a word and its vector`);
}

function rowOf(location: string, tokens: readonly string[], dimension: number): ParsedRow {
  const first = tokens.length - dimension;
  const words = tokens.slice(0, Math.max(0, first));
  // A word may contain spaces, but it does not end in a fraction: that is one value too many.
  const isLonger = words.length > 1 && /[.]\d/.test(words.at(-1)!) && NUMBER.test(words.at(-1)!);
  if (first < 1 || isLonger) {
    const found = tokens.length - 1;
    throw new RowError(location, `found ${found} values, expected ${dimension} after the word`);
  }
  const id = words.join(' ');
  if (id === '') throw new RowError(location, 'the word is empty');
  const values = new Float32Array(dimension);
  for (let at = 0; at < dimension; at++) {
    const text = tokens[first + at]!;
    values[at] = NUMBER.test(text) ? Number(text) : Number.NaN;
    if (Number.isFinite(values[at])) continue;
    throw new RowError(location, `value ${at + 1} is ${show(text)}, expected a float32 number`);
  }
  return { id, values, metadata: '{}' };
}

async function* binaryRows(
  source: InputSource,
  { rowCount, dimension, byteCount }: Header,
): AsyncGenerator<FoundRow> {
  const { name } = source;
  const words = new WordReader(source.chunks(byteCount), dimension * 4);
  try {
    for (let row = 0; row < rowCount; row++) {
      const location = `${name}, row ${row + 1}`;
      const found = await words.next(location);
      if (found === undefined) throw wrongCount(name, row, { rowCount });
      yield { number: row + 1, parse: () => rowOfWord(location, found) };
    }
    if (!(await words.isAtEnd())) throw new ReadError(`${name}: found more than ${rowCount} words`);
  } finally {
    await words.close();
  }
}

interface BinaryWord {
  readonly word: Uint8Array;
  /** The vector as float32. */
  readonly bytes: Uint8Array;
}

function rowOfWord(location: string, { word: bytes, bytes: vector }: BinaryWord): ParsedRow {
  const id = wordOf(location, bytes);
  const values = toFloats('float32', vector);
  const at = values.findIndex((value) => !Number.isFinite(value));
  if (at === -1) return { id, values, metadata: '{}' };
  const found = `value ${at + 1} of ${show(id)} is ${values[at]}`;
  throw new RowError(location, `${found}, expected a finite float32 number`);
}

function wordOf(location: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new RowError(location, `the word ${show(decodeUtf8(bytes))} is not UTF-8`);
  }
}

/** Reads the binary format: each word ends with a space, followed by its vector and perhaps a line feed. */
class WordReader {
  readonly #reader: ByteReader;
  readonly #vectorBytes: number;
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(chunks: AsyncIterable<Uint8Array>, vectorBytes: number) {
    this.#reader = new ByteReader(chunks);
    this.#vectorBytes = vectorBytes;
  }

  /** Undefined at the end. Throws ReadError. */
  async next(location: string): Promise<BinaryWord | undefined> {
    if (await this.isAtEnd()) return undefined;
    let end = this.#bytes.indexOf(SPACE);
    while (end === -1 && this.#bytes.length < WORD_BYTES_MAX && (await this.#more())) {
      end = this.#bytes.indexOf(SPACE);
    }
    if (end === -1 || end > WORD_BYTES_MAX) {
      throw new ReadError(
        `${location}: found no space after the word; the file is cut off or not word2vec`,
      );
    }
    const start = end + 1;
    while (this.#bytes.length < start + this.#vectorBytes) {
      if (await this.#more()) continue;
      const found = this.#bytes.length - start;
      throw new ReadError(
        `${location}: the file ends within this vector, after ${found} of ${this.#vectorBytes} bytes`,
      );
    }
    const word = this.#bytes.subarray(0, end);
    const bytes = this.#bytes.subarray(start, start + this.#vectorBytes);
    this.#bytes = this.#bytes.subarray(start + this.#vectorBytes);
    return { word, bytes };
  }

  /** Skips line feeds, which may follow a vector. */
  async isAtEnd(): Promise<boolean> {
    while (true) {
      if (this.#bytes.length === 0 && !(await this.#more())) return true;
      if (this.#bytes[0] !== NEWLINE) return false;
      this.#bytes = this.#bytes.subarray(1);
    }
  }

  close(): Promise<void> {
    return this.#reader.close();
  }

  async #more(): Promise<boolean> {
    const next = await this.#reader.take(PART_BYTES);
    if (next.length === 0) return false;
    this.#bytes = this.#bytes.length === 0 ? next : joinBytes([this.#bytes, next]);
    return true;
  }
}

function wrongCount(
  name: string,
  found: number,
  { rowCount }: Pick<Header, 'rowCount'>,
): ReadError {
  const words = found === 1 ? '1 word' : `${found} words`;
  return new ReadError(`${name}: found ${words}, expected the ${rowCount} of the first line`);
}
