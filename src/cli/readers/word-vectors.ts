// Words with their vectors: the text of GloVe, word2vec and fastText, and the binary form of word2vec. The word
// is the id; of words that repeat the last one wins, like every id that repeats. Text is read from the end of
// the line, since words may contain spaces.

import { CliError } from '../failure.js';
import { pluralize } from '../units.js';
import { ByteReader, linesOf } from './byte-stream.js';
import { DIMENSION_MAX, toFloats } from './record-files.js';
import {
  BatchBuilder,
  type ReadOptions,
  type RowBatch,
  type RowReader,
  rowError,
  show,
} from './row-batch.js';
import { CHUNK_BYTES, type InputSource } from './source.js';
import { createLineDecoder, textChunks, textHead } from './utf8.js';
import { type Header, headerOf, isText, NUMBER } from './word-head.js';

const SPACE = 0x20;
const NEWLINE = 0x0a;
/** Far more than a word has: what goes on without a space is another format. */
const WORD_BYTES_MAX = 10_000;
/** `isHeaderRequired`: the file is of word2vec or fastText. Throws CliError when it has none. */
export async function openWords(
  source: InputSource,
  options: ReadOptions,
  isHeaderRequired: boolean,
): Promise<RowReader> {
  const header = headerOf(source.head);
  if (header === undefined && isHeaderRequired) {
    throw new CliError(
      `${source.name}:1: expected the number of words and the dimension; without that line, use --format glove`,
    );
  }
  if (header !== undefined && (header.dimension < 1 || header.dimension > DIMENSION_MAX)) {
    throw new CliError(
      `${source.name}:1: found dimension ${header.dimension}, expected 1 to ${DIMENSION_MAX}`,
    );
  }
  const rowCount = header?.rowCount;
  if (header !== undefined && !isText(source.head, header)) {
    return { rowCount, batches: (startRow) => readBinary(source, options, header, startRow) };
  }
  return { rowCount, batches: (startRow) => readText(source, options, header, startRow) };
}

async function* readText(
  source: InputSource,
  options: ReadOptions,
  header: Header | undefined,
  startRow: number,
): AsyncGenerator<RowBatch> {
  const { name } = source;
  textHead(source);
  const location = (number: number): string => `${name}:${number}`;
  const builder = new BatchBuilder(options.rowsPerBatch, location);
  const decode = createLineDecoder();
  let dimension = header?.dimension;
  let row = 0;
  let line = 0;
  for await (const bytes of linesOf(name, textChunks(source))) {
    line++;
    if ((line === 1 && header !== undefined) || bytes.every((byte) => byte <= SPACE)) continue;
    const isSkipped = row++ < startRow;
    if (isSkipped && dimension !== undefined) continue;
    const tokens = decode(location(line), bytes)
      .replace(/[ \t\r]+$/, '')
      .split(/[ \t]/);
    dimension ??= dimensionOf(location(line), tokens);
    if (isSkipped) continue;
    const { id, values } = rowOf(location(line), tokens, dimension);
    const batch = builder.add({ number: line, id, values, metadata: '{}' });
    if (batch !== undefined) yield batch;
  }
  const rest = builder.take();
  if (rest !== undefined) yield rest;
  if (header !== undefined && row !== header.rowCount) throw wrongCount(name, row, header);
}

/** The number of numbers at the end of the first line, before which there is a word. */
function dimensionOf(location: string, tokens: readonly string[]): number {
  let dimension = 0;
  while (dimension < tokens.length - 1 && NUMBER.test(tokens.at(-1 - dimension)!)) dimension++;
  if (dimension > 0) return dimension;
  throw rowError(location, `found ${show(tokens.join(' '))}, expected a word and its vector`);
}

function rowOf(
  location: string,
  tokens: readonly string[],
  dimension: number,
): { id: string; values: Float32Array } {
  const first = tokens.length - dimension;
  const words = tokens.slice(0, Math.max(0, first));
  // A word may have spaces, but no fractions: another number is one too many.
  const isLonger = words.length > 1 && /[.]\d/.test(words.at(-1)!) && NUMBER.test(words.at(-1)!);
  if (first < 1 || isLonger) {
    const found = tokens.length - 1;
    throw rowError(location, `found ${found} values, expected ${dimension} after the word`);
  }
  const id = words.join(' ');
  if (id === '') throw rowError(location, 'the word is empty');
  const values = new Float32Array(dimension);
  for (let at = 0; at < dimension; at++) {
    const text = tokens[first + at]!;
    values[at] = NUMBER.test(text) ? Number(text) : Number.NaN;
    if (Number.isFinite(values[at])) continue;
    throw rowError(location, `value ${at + 1} is ${show(text)}, expected a float32 number`);
  }
  return { id, values };
}

async function* readBinary(
  source: InputSource,
  options: ReadOptions,
  { rowCount, dimension, byteCount }: Header,
  startRow: number,
): AsyncGenerator<RowBatch> {
  const { name } = source;
  const location = (number: number): string => `${name}, row ${number}`;
  const builder = new BatchBuilder(options.rowsPerBatch, location);
  const words = new WordReader(source.chunks(byteCount), dimension * 4);
  try {
    for (let row = 0; row < rowCount; row++) {
      const found = await words.next(location(row + 1));
      if (found === undefined) throw wrongCount(name, row, { rowCount });
      if (row < startRow) continue;
      const { word, bytes } = found;
      const values = toFloats('float32', bytes);
      const at = values.findIndex((value) => !Number.isFinite(value));
      if (at !== -1) {
        const message = `value ${at + 1} of ${show(word)} is ${values[at]}, expected a finite float32 number`;
        throw rowError(location(row + 1), message);
      }
      const batch = builder.add({ number: row + 1, id: word, values, metadata: '{}' });
      if (batch !== undefined) yield batch;
    }
    if (!(await words.isAtEnd())) throw new CliError(`${name}: found more than ${rowCount} words`);
  } finally {
    await words.close();
  }
  const rest = builder.take();
  if (rest !== undefined) yield rest;
}

/** Words of the binary form: each ends with a space, its vector follows, and perhaps a line feed. */
class WordReader {
  readonly #reader: ByteReader;
  readonly #vectorBytes: number;
  readonly #decode = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(chunks: AsyncIterable<Uint8Array>, vectorBytes: number) {
    this.#reader = new ByteReader(chunks);
    this.#vectorBytes = vectorBytes;
  }

  /** Undefined at the end. The bytes are valid until the next call. */
  async next(location: string): Promise<{ word: string; bytes: Uint8Array } | undefined> {
    if (await this.isAtEnd()) return undefined;
    let end = this.#bytes.indexOf(SPACE);
    while (end === -1 && this.#bytes.length < WORD_BYTES_MAX && (await this.#more())) {
      end = this.#bytes.indexOf(SPACE);
    }
    if (end === -1 || end > WORD_BYTES_MAX) {
      throw rowError(
        location,
        'found no space after the word; the file is cut off or not word2vec',
      );
    }
    const start = end + 1;
    while (this.#bytes.length < start + this.#vectorBytes) {
      if (await this.#more()) continue;
      const found = this.#bytes.length - start;
      throw rowError(
        location,
        `the file ends within this vector, after ${found} of ${this.#vectorBytes} bytes`,
      );
    }
    const word = this.#wordOf(location, this.#bytes.subarray(0, end));
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
    const next = await this.#reader.take(CHUNK_BYTES);
    if (next.length === 0) return false;
    this.#bytes = this.#bytes.length === 0 ? next : Buffer.concat([this.#bytes, next]);
    return true;
  }

  #wordOf(location: string, bytes: Uint8Array): string {
    try {
      return this.#decode.decode(bytes);
    } catch (cause) {
      const found = show(Buffer.from(bytes).toString());
      throw new CliError(`${location}: the word ${found} is not UTF-8`, { cause });
    }
  }
}

function wrongCount(name: string, found: number, { rowCount }: Pick<Header, 'rowCount'>): CliError {
  const words = pluralize(found, 'word');
  return new CliError(`${name}: found ${words}, expected the ${rowCount} of the first line`);
}
