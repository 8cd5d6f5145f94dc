// Reads an Arrow IPC file of strangers batch by batch, in the order of its footer, from whatever can be
// read at any place. The footer is trusted as little as the rest.

import { decompressed, encodedPart } from './compression.js';
import { Dictionaries } from './dictionaries.js';
import type { EncodedBatch } from './encoded-batch.js';
import { FlatTable } from './flat-table.js';
import { atPlace, invalidArrow, located } from './invalid-arrow.js';
import { type ArrowMessage, readMessageHead } from './message.js';
import { type ArrowSchema, readSchema } from './schema.js';
import { METADATA_BYTES_MAX } from './stream-reader.js';

export interface RandomAccess {
  readonly byteLength: number;
  /** Fills `target` with the bytes from `offset` on; rejects when there are not as many. */
  readInto(target: Uint8Array, offset: number): Promise<void>;
}

interface Block {
  readonly offset: number;
  readonly metadataBytes: number;
  readonly bodyBytes: number;
}

const MAGIC = new TextEncoder().encode('ARROW1');
/** The magic, padded. */
const HEAD_BYTES = 8;
/** The length of the footer and the magic. */
const TAIL_BYTES = 4 + MAGIC.length;
const BLOCK_BYTES = 24;

export class ArrowFileReader {
  readonly schema: ArrowSchema;
  readonly #source: RandomAccess;
  readonly #batchBytesMax: number;
  readonly #dictionaryBlocks: readonly Block[];
  readonly #batchBlocks: readonly Block[];

  private constructor(source: RandomAccess, footer: FlatTable, end: number, batchBytesMax: number) {
    const schema = footer.table(1);
    if (schema === null) throw invalidArrow('a footer without a schema');
    this.schema = readSchema(schema);
    this.#source = source;
    this.#batchBytesMax = batchBytesMax;
    this.#dictionaryBlocks = readBlocks(footer, 2, end);
    this.#batchBlocks = readBlocks(footer, 3, end);
  }

  /** Throws `invalid_arrow`. @param batchBytesMax of one batch, and of all dictionaries. */
  static async open(source: RandomAccess, batchBytesMax: number): Promise<ArrowFileReader> {
    const { byteLength } = source;
    if (byteLength < HEAD_BYTES + TAIL_BYTES) {
      throw invalidArrow(`${byteLength} bytes, expected an Arrow file`);
    }
    const head = await readAt(source, 0, HEAD_BYTES);
    const tail = await readAt(source, byteLength - TAIL_BYTES, TAIL_BYTES);
    if (!hasMagic(head, 0) || !hasMagic(tail, 4)) {
      throw invalidArrow('no Arrow file, which begins and ends in ARROW1');
    }
    const footerBytes = new DataView(tail.buffer).getInt32(0, true);
    const end = byteLength - TAIL_BYTES - footerBytes;
    if (footerBytes <= 0 || end < HEAD_BYTES || footerBytes > METADATA_BYTES_MAX) {
      throw invalidArrow(`a footer of ${footerBytes} bytes in a file of ${byteLength}`);
    }
    const footer = await readAt(source, end, footerBytes);
    return located('footer', () => {
      return new ArrowFileReader(source, FlatTable.root(footer), end, batchBytesMax);
    });
  }

  get batchCount(): number {
    return this.#batchBlocks.length;
  }

  /** Batches without rows are left out. Throws `invalid_arrow`. */
  async *batches(): AsyncGenerator<EncodedBatch, void, undefined> {
    const { fields } = this.schema;
    const dictionaries = new Dictionaries(this.#batchBytesMax);
    dictionaries.setFields(fields);
    for (const [index, block] of this.#dictionaryBlocks.entries()) {
      const { message, body } = await this.#readMessage(block, `dictionary batch ${index}`);
      if (message.kind !== 'dictionary') throw invalidArrow(`a ${message.kind} as a dictionary`);
      const part = await encodedPart(message.shape, body);
      located(`dictionary batch ${index}`, () => {
        dictionaries.expect(message.id);
        // In shared memory, as those of streams are.
        dictionaries.add(message.id, decompressed(part, this.#batchBytesMax), message.isDelta);
      });
    }
    let firstRow = 0;
    for (const [index, block] of this.#batchBlocks.entries()) {
      const { message, body } = await this.#readMessage(block, `record batch ${index}`);
      if (message.kind !== 'batch') throw invalidArrow(`a ${message.kind} as a record batch`);
      const { shape } = message;
      const { rowCount } = shape;
      const part = await encodedPart(shape, body);
      if (rowCount > 0) {
        yield { index, firstRow, rowCount, fields, part, dictionaries: dictionaries.snapshot() };
      }
      firstRow += rowCount;
    }
  }

  async #readMessage(
    { offset, metadataBytes, bodyBytes }: Block,
    place: string,
  ): Promise<{ message: ArrowMessage; body: Uint8Array }> {
    try {
      if (bodyBytes > this.#batchBytesMax) {
        throw invalidArrow(`a body of ${bodyBytes} bytes, expected at most ${this.#batchBytesMax}`);
      }
      const prefixed = await readAt(this.#source, offset, metadataBytes);
      // A continuation mark and a length, or before Arrow 0.15 a length alone.
      const isMarked = new DataView(prefixed.buffer).getInt32(0, true) === -1;
      const head = readMessageHead(prefixed.subarray(isMarked ? 8 : 4));
      if (head.bodyLength !== bodyBytes) {
        throw invalidArrow(
          `a body of ${head.bodyLength} bytes, which the footer says has ${bodyBytes}`,
        );
      }
      const message = head.read();
      return { message, body: await readAt(this.#source, offset + metadataBytes, bodyBytes) };
    } catch (error) {
      throw atPlace(place, error);
    }
  }
}

function readBlocks(footer: FlatTable, index: number, end: number): Block[] {
  const { count, at } = footer.structs(index, BLOCK_BYTES);
  return Array.from({ length: count }, (_, i) => {
    const start = at + i * BLOCK_BYTES;
    const block = {
      offset: footer.int64At(start),
      metadataBytes: footer.int32At(start + 8),
      bodyBytes: footer.int64At(start + 16),
    };
    const { offset, metadataBytes, bodyBytes } = block;
    const isInside =
      offset >= HEAD_BYTES && bodyBytes >= 0 && offset + metadataBytes + bodyBytes <= end;
    if (!isInside || metadataBytes < 8 || metadataBytes > METADATA_BYTES_MAX) {
      throw invalidArrow(
        `block ${i} of ${metadataBytes} and ${bodyBytes} bytes at byte ${offset}, expected within ${end}`,
      );
    }
    return block;
  });
}

async function readAt(
  source: RandomAccess,
  offset: number,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(length);
  await source.readInto(bytes, offset);
  return bytes;
}

function hasMagic(bytes: Uint8Array, at: number): boolean {
  return MAGIC.every((byte, i) => bytes[at + i] === byte);
}
