// Reads Arrow IPC files batch by batch, in the order of their footer, from anything that can be read
// at an offset. The footer is checked like the rest. Also has the parts that stored-arrow.ts needs to
// read a file in memory: where the footer lies, the footer, and the head of a message.

import { atPlace, invalidArrow, located } from './arrow-errors.js';
import { decompressed, encodedBody } from './compression.js';
import type { EncodedBatch } from './encoded-batch.js';
import { Dictionaries } from './encoded-batch.js';
import { FlatTable } from './flat-table.js';
import { type ArrowMessage, readMessageHead } from './message.js';
import { type ArrowSchema, readSchema } from './schema.js';
import { METADATA_BYTES_MAX } from './stream-reader.js';

export interface RandomAccess {
  readonly byteLength: number;
  /** Fills `target` with the bytes from `offset` on; rejects when there are too few. */
  readInto(target: Uint8Array, offset: number): Promise<void>;
}

/** Where a message lies in a file. */
export interface Block {
  readonly offset: number;
  readonly metadataBytes: number;
  readonly bodyBytes: number;
}

const MAGIC = new TextEncoder().encode('ARROW1');
/** At the start of a file: the magic, padded. */
export const HEAD_BYTES = 8;
/** At the end of a file: the length of the footer and the magic. */
export const TAIL_BYTES = 4 + MAGIC.length;
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

  /** Throws `invalid_arrow`. @param batchBytesMax bound on one batch, and on all dictionaries. */
  static async open(source: RandomAccess, batchBytesMax: number): Promise<ArrowFileReader> {
    const { byteLength } = source;
    if (byteLength < HEAD_BYTES + TAIL_BYTES) {
      throw invalidArrow(`${byteLength} bytes, expected an Arrow file`);
    }
    const head = await readAt(source, 0, HEAD_BYTES);
    const tail = await readAt(source, byteLength - TAIL_BYTES, TAIL_BYTES);
    const start = footerStart(head, tail, byteLength);
    const footer = await readAt(source, start, byteLength - TAIL_BYTES - start);
    return new ArrowFileReader(source, readFooter(footer, start), batchBytesMax);
  }

  get schema(): ArrowSchema {
    return this.#footer.schema;
  }

  get batchCount(): number {
    return this.#footer.batches.length;
  }

  /** Batches without rows are skipped. Throws `invalid_arrow`. */
  async *batches(): AsyncGenerator<EncodedBatch, void, undefined> {
    const { fields } = this.schema;
    const dictionaries = new Dictionaries(this.#batchBytesMax);
    dictionaries.setFields(fields);
    for (const [index, block] of this.#footer.dictionaries.entries()) {
      const { message, body } = await this.#readMessage(block, `dictionary batch ${index}`);
      if (message.kind !== 'dictionary') throw invalidArrow(`a ${message.kind} as a dictionary`);
      const dictionary = await encodedBody(message.shape, body);
      located(`dictionary batch ${index}`, () => {
        dictionaries.expect(message.id);
        // Decompression puts it into shared memory, even if it was not compressed.
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
      if (message.kind !== 'batch') throw invalidArrow(`a ${message.kind} as a record batch`);
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
        throw invalidArrow(`a body of ${bodyBytes} bytes, expected at most ${this.#batchBytesMax}`);
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
 * The offset of the footer. `head` and `tail`: the first HEAD_BYTES and the last TAIL_BYTES of the
 * file. Throws `invalid_arrow`.
 */
export function footerStart(head: Uint8Array, tail: Uint8Array, fileBytes: number): number {
  if (!hasMagic(head, 0) || !hasMagic(tail, 4)) {
    throw invalidArrow('no Arrow file: it would begin and end with ARROW1');
  }
  const footerBytes = new DataView(tail.buffer, tail.byteOffset).getInt32(0, true);
  const start = fileBytes - TAIL_BYTES - footerBytes;
  if (footerBytes <= 0 || start < HEAD_BYTES || footerBytes > METADATA_BYTES_MAX) {
    throw invalidArrow(`a footer of ${footerBytes} bytes in a file of ${fileBytes}`);
  }
  return start;
}

/** @param start its offset in the file, before which all blocks end. Throws `invalid_arrow`. */
export function readFooter(bytes: Uint8Array, start: number): Footer {
  return located('footer', () => {
    const footer = FlatTable.root(bytes);
    const schema = footer.table(1);
    if (schema === null) throw invalidArrow('a footer without a schema');
    return {
      schema: readSchema(schema),
      dictionaries: readBlocks(footer, 2, start),
      batches: readBlocks(footer, 3, start),
    };
  });
}

/** The message of a block. @param prefixed its prefix and metadata. Throws `invalid_arrow`. */
export function readBlock({ bodyBytes }: Block, prefixed: Uint8Array): ArrowMessage {
  // The prefix is a continuation mark and a length, or before Arrow 0.15 the length alone.
  const isMarked = new DataView(prefixed.buffer, prefixed.byteOffset).getInt32(0, true) === -1;
  const head = readMessageHead(prefixed.subarray(isMarked ? 8 : 4));
  if (head.bodyLength !== bodyBytes) {
    throw invalidArrow(`a body of ${head.bodyLength} bytes, where the footer says ${bodyBytes}`);
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
      offset >= HEAD_BYTES && bodyBytes >= 0 && offset + metadataBytes + bodyBytes <= end;
    if (!isInside || metadataBytes < 8 || metadataBytes > METADATA_BYTES_MAX) {
      throw invalidArrow(
        `block ${i} at byte ${offset} with ${metadataBytes} bytes of metadata and ${bodyBytes} of body, expected to end before byte ${end}`,
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
