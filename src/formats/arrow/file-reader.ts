// Reads Arrow IPC files batch by batch, in the order of their footer, from any source that can be read at an offset.
// The footer is checked like everything else. stored-arrow.ts uses the functions that find and read the footer and
// the messages of blocks.

import { atPlace, invalidArrow, located } from './arrow-errors.js';
import { decompressed, encodedBody } from './compression.js';
import type { EncodedBatch } from './encoded-batch.js';
import { Dictionaries } from './encoded-batch.js';
import { FlatTable } from './flat-table.js';
import { FILE_MAGIC } from './framing.js';
import { type ArrowMessage, readMessageHead } from './message.js';
import { type ArrowSchema, parseSchema } from './schema.js';
import { METADATA_BYTES_MAX } from './stream-reader.js';

export interface RandomAccess {
  readonly byteLength: number;
  /** Fills `target` with the bytes from `offset` on. Rejects if there are too few. */
  readInto(target: Uint8Array, offset: number): Promise<void>;
}

/** The location of a message in a file. */
export interface Block {
  readonly offset: number;
  readonly metadataBytes: number;
  readonly bodyBytes: number;
}

/** A file starts with the magic, padded. */
export const FILE_HEAD_BYTES = 8;
/** A file ends with the length of the footer and the magic. */
export const FILE_TAIL_BYTES = 4 + FILE_MAGIC.length;
const BLOCK_BYTES = 24;

export class ArrowFileReader {
  readonly #source: RandomAccess;
  readonly #batchBytesMax: number;
  readonly #footer: Footer;

  private constructor(source: RandomAccess, footer: Footer, batchBytesMax: number) {
    this.#source = source;
    this.#footer = footer;
    this.#batchBytesMax = batchBytesMax;
  }

  /**
   * Throws `invalid_arrow`.
   * @param batchBytesMax limit for one batch, and for all dictionaries together.
   */
  static async open(source: RandomAccess, batchBytesMax: number): Promise<ArrowFileReader> {
    const { byteLength } = source;
    if (byteLength < FILE_HEAD_BYTES + FILE_TAIL_BYTES) {
      throw invalidArrow(`${byteLength} bytes`, { expected: 'an Arrow file' });
    }
    const head = await readAt(source, 0, FILE_HEAD_BYTES);
    const tail = await readAt(source, byteLength - FILE_TAIL_BYTES, FILE_TAIL_BYTES);
    const start = footerStart(head, tail, byteLength);
    const footer = await readAt(source, start, byteLength - FILE_TAIL_BYTES - start);
    return new ArrowFileReader(source, readFooter(footer, start), batchBytesMax);
  }

  get schema(): ArrowSchema {
    return this.#footer.schema;
  }

  get batchCount(): number {
    return this.#footer.batches.length;
  }

  /** Skips batches without rows. Throws `invalid_arrow`. */
  async *batches(): AsyncGenerator<EncodedBatch, void, undefined> {
    const { fields } = this.schema;
    const dictionaries = new Dictionaries(this.#batchBytesMax);
    dictionaries.setFields(fields);
    for (const [index, block] of this.#footer.dictionaries.entries()) {
      const { message, body } = await this.#readMessage(block, `dictionary batch ${index}`);
      if (message.kind !== 'dictionary')
        throw invalidArrow(`a ${message.kind}`, { expected: 'a dictionary' });
      const dictionary = await encodedBody(message.shape, body);
      located(`dictionary batch ${index}`, () => {
        dictionaries.expect(message.id);
        // This also moves a dictionary that was not compressed into shared memory.
        dictionaries.add(
          message.id,
          decompressed(dictionary, this.#batchBytesMax),
          message.isDelta,
        );
      });
    }
    let firstRow = 0;
    for (const [index, block] of this.#footer.batches.entries()) {
      const { message, body: bytes } = await this.#readMessage(block, `record batch ${index}`);
      if (message.kind !== 'batch')
        throw invalidArrow(`a ${message.kind}`, { expected: 'a record batch' });
      const { shape } = message;
      const { rowCount } = shape;
      const body = await encodedBody(shape, bytes);
      if (rowCount > 0) {
        yield {
          index,
          firstRow,
          rowCount,
          fields,
          body,
          dictionaries: dictionaries.snapshot(),
        };
      }
      firstRow += rowCount;
    }
  }

  async #readMessage(
    block: Block,
    place: string,
  ): Promise<{ message: ArrowMessage; body: Uint8Array }> {
    const { offset, metadataBytes, bodyBytes } = block;
    try {
      if (bodyBytes > this.#batchBytesMax) {
        throw invalidArrow(`a body of ${bodyBytes} bytes`, {
          expected: `at most ${this.#batchBytesMax} bytes`,
        });
      }
      const message = readBlock(block, await readAt(this.#source, offset, metadataBytes));
      return { message, body: await readAt(this.#source, offset + metadataBytes, bodyBytes) };
    } catch (error) {
      throw atPlace(place, error);
    }
  }
}

export interface Footer {
  readonly schema: ArrowSchema;
  readonly dictionaries: readonly Block[];
  readonly batches: readonly Block[];
}

/**
 * Returns the offset of the footer. Throws `invalid_arrow`.
 * @param head the first FILE_HEAD_BYTES of the file.
 * @param tail the last FILE_TAIL_BYTES of the file.
 */
export function footerStart(head: Uint8Array, tail: Uint8Array, fileBytes: number): number {
  if (!hasMagic(head, 0) || !hasMagic(tail, 4)) {
    throw invalidArrow('another format', {
      expected: 'an Arrow file, which begins and ends with ARROW1',
    });
  }
  const footerBytes = new DataView(tail.buffer, tail.byteOffset).getInt32(0, true);
  const start = fileBytes - FILE_TAIL_BYTES - footerBytes;
  if (footerBytes <= 0 || start < FILE_HEAD_BYTES || footerBytes > METADATA_BYTES_MAX) {
    throw invalidArrow(`a footer of ${footerBytes} bytes in a file of ${fileBytes}`);
  }
  return start;
}

/**
 * Throws `invalid_arrow`.
 * @param start the offset of the footer, before which all blocks must end.
 */
export function readFooter(bytes: Uint8Array, start: number): Footer {
  return located('footer', () => {
    const footer = FlatTable.root(bytes);
    const schema = footer.table(1);
    if (schema === null) throw invalidArrow('a footer without a schema');
    return {
      schema: parseSchema(schema),
      dictionaries: readBlocks(footer, 2, start),
      batches: readBlocks(footer, 3, start),
    };
  });
}

/**
 * Reads the message of a block. Throws `invalid_arrow`.
 * @param prefixed the prefix and the metadata.
 */
export function readBlock({ bodyBytes }: Block, prefixed: Uint8Array): ArrowMessage {
  // The prefix is a continuation mark and a length; before Arrow 0.15 it was only the length.
  const isMarked = new DataView(prefixed.buffer, prefixed.byteOffset).getInt32(0, true) === -1;
  const head = readMessageHead(prefixed.subarray(isMarked ? 8 : 4));
  if (head.bodyLength !== bodyBytes) {
    throw invalidArrow(`a body of ${head.bodyLength} bytes`, {
      expected: `${bodyBytes}, as in the footer`,
    });
  }
  return head.read();
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
      offset >= FILE_HEAD_BYTES && bodyBytes >= 0 && offset + metadataBytes + bodyBytes <= end;
    if (!isInside || metadataBytes < 8 || metadataBytes > METADATA_BYTES_MAX) {
      throw invalidArrow(
        `block ${i} at byte ${offset} with ${metadataBytes} bytes of metadata and ${bodyBytes} of body`,
        { expected: `a block that ends before byte ${end}` },
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
  return FILE_MAGIC.every((byte, i) => bytes[at + i] === byte);
}
