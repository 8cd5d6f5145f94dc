// Reads an Arrow IPC stream from chunks as they arrive, message by message, in the current framing and in that of
// versions before Arrow 0.15. It holds one record batch and the dictionaries, both limited in bytes. For any bytes,
// reading ends with the stream or with `invalid_arrow`.

import { sharedBytes } from '../../common/shared-array.js';
import { atPlace, invalidArrow } from './arrow-errors.js';
import { decompressed, encodedBody } from './compression.js';
import type { EncodedBatch, EncodedBody } from './encoded-batch.js';
import { Dictionaries } from './encoded-batch.js';
import { CONTINUATION } from './framing.js';
import { type ArrowMessage, readMessageHead } from './message.js';
import type { ArrowSchema } from './schema.js';

export interface StreamReaderOptions {
  /** Limit for the body of a record batch, both compressed and decompressed, and for all dictionaries together. */
  readonly batchBytesMax: number;
  /** Called with the bytes held for the next batch and for dictionaries. Yielded batches no longer count. */
  readonly onBuffered?: (byteCount: number) => void;
  /** Allocates the body of a batch, at byte 0 of a buffer; by default a new ArrayBuffer. */
  readonly allocate?: (byteCount: number) => Uint8Array;
  /** Decompresses a dictionary; by default on this thread. */
  readonly decompress?: (body: EncodedBody, bytesMax: number) => Promise<EncodedBody>;
}

/** A batch of 10,000 fields has 1 MB of metadata. */
export const METADATA_BYTES_MAX = 16_000_000;

/** "ARRO", the first bytes of a file. */
const FILE_START = 0x4f525241;

export class ArrowStreamReader {
  readonly #source: ByteSource;
  readonly #options: StreamReaderOptions;
  readonly #dictionaries: Dictionaries;
  #sourceBytes = 0;
  #schema: ArrowSchema | null = null;

  constructor(source: AsyncIterable<Uint8Array>, options: StreamReaderOptions) {
    this.#options = options;
    this.#source = new ByteSource(source, (byteCount) => {
      this.#sourceBytes = byteCount;
      this.#report();
    });
    this.#dictionaries = new Dictionaries(options.batchBytesMax);
  }

  /** Throws `invalid_arrow`. */
  async readSchema(): Promise<ArrowSchema> {
    if (this.#schema !== null) return this.#schema;
    try {
      const next = await this.#nextMessage();
      if (next === null)
        throw invalidArrow('nothing', { expected: 'an Arrow stream with a schema' });
      if (next.message.kind !== 'schema') {
        throw invalidArrow(`a ${next.message.kind} message first`, { expected: 'a schema' });
      }
      this.#schema = next.message.schema;
      this.#dictionaries.setFields(this.#schema.fields);
      return this.#schema;
    } catch (error) {
      throw atPlace('schema', error);
    }
  }

  /** Yields batches with rows; batches without rows still count in `index`. Throws `invalid_arrow`. */
  async *batches(): AsyncGenerator<EncodedBatch, void, undefined> {
    let index = 0;
    let firstRow = 0;
    try {
      const { fields } = await this.readSchema();
      while (true) {
        const body = await this.#nextBatch(index).catch((error: unknown) => {
          throw atPlace(`record batch ${index}`, error);
        });
        if (body === null) return;
        const { rowCount } = body.shape;
        const dictionaries = this.#dictionaries.snapshot();
        if (rowCount > 0) {
          yield { index, firstRow, rowCount, fields, body, dictionaries };
        }
        index++;
        firstRow += rowCount;
      }
    } finally {
      this.#dictionaries.clear();
      await this.#source.close();
    }
  }

  async #nextBatch(index: number): Promise<EncodedBody | null> {
    while (true) {
      const next = await this.#nextMessage();
      if (next === null) return null;
      const { message, body } = next;
      if (message.kind === 'schema') throw invalidArrow(`a second schema before batch ${index}`);
      if (message.kind === 'batch') {
        this.#source.release(body.length);
        return await encodedBody(message.shape, body);
      }
      await this.#addDictionary(message, body);
    }
  }

  async #addDictionary(
    message: Extract<ArrowMessage, { kind: 'dictionary' }>,
    body: Uint8Array,
  ): Promise<void> {
    const { batchBytesMax, decompress = async (...args) => decompressed(...args) } = this.#options;
    this.#dictionaries.expect(message.id);
    let dictionary = await encodedBody(message.shape, body);
    if (dictionary.shape.codec !== null) dictionary = await decompress(dictionary, batchBytesMax);
    this.#dictionaries.add(message.id, dictionary, message.isDelta);
    this.#source.release(body.length);
    this.#report();
  }

  /** Returns null at the end. */
  async #nextMessage(): Promise<{ message: ArrowMessage; body: Uint8Array } | null> {
    const metadataBytes = await this.#metadataLength();
    if (metadataBytes === 0) return null;
    const metadata = new Uint8Array(metadataBytes);
    await this.#fill(metadata, 'metadata');
    const head = readMessageHead(metadata);
    const { batchBytesMax } = this.#options;
    if (head.bodyLength > batchBytesMax) {
      throw invalidArrow(`a body of ${head.bodyLength} bytes`, {
        expected: `at most ${batchBytesMax} bytes`,
        advice: 'Send smaller batches.',
      });
    }
    const message = head.read();
    this.#source.release(metadataBytes);
    // Untouched memory costs nothing, so a false length does no harm until its bytes arrive.
    const { allocate = (byteCount) => new Uint8Array(byteCount) } = this.#options;
    const body =
      message.kind === 'dictionary' ? sharedBytes(head.bodyLength) : allocate(head.bodyLength);
    await this.#fill(body, 'a body');
    return { message, body };
  }

  /** Returns 0 at the end of the stream, with or without an end-of-stream mark. */
  async #metadataLength(): Promise<number> {
    const first = await this.#uint32(true);
    if (first === null) return 0;
    const length = first === CONTINUATION ? await this.#uint32(false) : first;
    if (length === 0) {
      const byteCount = await this.#source.readInto(new Uint8Array(1));
      if (byteCount > 0) throw invalidArrow('bytes after the end-of-stream mark');
      return 0;
    }
    if (first === FILE_START) throw invalidArrow('an Arrow file', { expected: 'an Arrow stream' });
    if (length! > METADATA_BYTES_MAX) {
      throw invalidArrow(`metadata of ${length} bytes`, {
        expected: `at most ${METADATA_BYTES_MAX} bytes`,
        advice: 'This is probably not an Arrow stream.',
      });
    }
    return length!;
  }

  async #uint32(mayEnd: boolean): Promise<number | null> {
    const bytes = new Uint8Array(4);
    const byteCount = await this.#source.readInto(bytes);
    if (byteCount === 0 && mayEnd) return null;
    if (byteCount < 4) throw cutOff('a length', byteCount, 4);
    this.#source.release(4);
    return new DataView(bytes.buffer).getUint32(0, true);
  }

  async #fill(target: Uint8Array, what: string): Promise<void> {
    const byteCount = await this.#source.readInto(target);
    if (byteCount < target.length) throw cutOff(what, byteCount, target.length);
  }

  #report(): void {
    this.#options.onBuffered?.(this.#sourceBytes + this.#dictionaries.byteCount);
  }
}

function cutOff(what: string, found: number, expected: number): Error {
  return invalidArrow(`the end of the stream after ${found} of ${expected} bytes of ${what}`);
}

/** Reads bytes from a source of chunks, only as needed. `onHeld` is called with the bytes read but not released. */
class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #onHeld: (byteCount: number) => void;
  #chunk: Uint8Array = new Uint8Array(0);
  #held = 0;
  #isOver = false;

  constructor(source: AsyncIterable<Uint8Array>, onHeld: (byteCount: number) => void) {
    this.#chunks = source[Symbol.asyncIterator]();
    this.#onHeld = onHeld;
  }

  /**
   * Fills `target` and returns the number of bytes, which is less than its length only at the end of the source. The
   * bytes count as held until they are released.
   */
  async readInto(target: Uint8Array): Promise<number> {
    let filled = 0;
    while (filled < target.length) {
      if (this.#chunk.length === 0 && !(await this.#next())) break;
      const part = this.#chunk.subarray(0, target.length - filled);
      target.set(part, filled);
      filled += part.length;
      this.#chunk = this.#chunk.subarray(part.length);
    }
    return filled;
  }

  /** Stops counting these bytes as held, because their new owner counts them. */
  release(byteCount: number): void {
    this.#hold(-byteCount);
  }

  /** Ends the source early. */
  async close(): Promise<void> {
    this.#isOver = true;
    this.#chunk = new Uint8Array(0);
    this.#hold(-this.#held);
    await this.#chunks.return?.();
  }

  async #next(): Promise<boolean> {
    while (!this.#isOver && this.#chunk.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done === true) {
        this.#isOver = true;
      } else {
        this.#chunk = value;
        this.#hold(value.length);
      }
    }
    return this.#chunk.length > 0;
  }

  #hold(change: number): void {
    if (change === 0) return;
    this.#held += change;
    this.#onHeld(this.#held);
  }
}
