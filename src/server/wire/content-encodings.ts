// The encodings of bodies and replies: gzip, and zstd where this version of Node has it. Bodies are decoded while
// they arrive, so that the limits apply to what they become; replies of text are compressed for clients that ask.

import { type Readable, Transform, type TransformCallback } from 'node:stream';
import * as zlib from 'node:zlib';
import { SagittaError } from '../../common/errors.js';
import { ZstdBounds } from './zstd-bounds.js';

export type Encoding = 'zstd' | 'gzip';

/** Since Node 22.15, which the types do not know. */
const { createZstdCompress, createZstdDecompress } = zlib as typeof zlib & {
  createZstdCompress?: () => Transform & { flush(onFlushed: () => void): void };
  createZstdDecompress?: () => Transform & { readonly bytesWritten: number };
};
const HAS_ZSTD = createZstdCompress !== undefined && createZstdDecompress !== undefined;

/** In the order of preference. */
export const ENCODINGS: readonly Encoding[] = HAS_ZSTD ? ['zstd', 'gzip'] : ['gzip'];

/** Shorter replies are about what TCP sends before the first acknowledgement: compressed they save no round trip. */
export const COMPRESSED_BYTES_MIN = 16_384;

/** The fastest: it makes a third of JSON, and slower ones little less. */
const GZIP_LEVEL = 1;

const TEXT_TYPES = /^(?:text\/|application\/(?:[\w.-]+\+)?json\b|application\/(?:x-ndjson|yaml)\b)/;

/** Whether replies of this type become much shorter. Arrow and Parquet have encodings of their own. */
export function isCompressible(contentType: string | undefined): boolean {
  return contentType !== undefined && TEXT_TYPES.test(contentType);
}

/**
 * The encoding of a body; null for one that is sent as it is. Throws `unsupported_media_type` for another one,
 * or several.
 */
export function encodingOf(contentEncoding: string | undefined): Encoding | null {
  const name = (contentEncoding ?? '')
    .trim()
    .toLowerCase()
    .replace(/^x-gzip$/, 'gzip');
  if (name === '' || name === 'identity') return null;
  const found = ENCODINGS.find((encoding) => encoding === name);
  if (found !== undefined) return found;
  throw new SagittaError(
    'unsupported_media_type',
    `The body is encoded as ${contentEncoding}; expected ${ENCODINGS.join(' or ')}, or no Content-Encoding.`,
  );
}

/** For the header Accept-Encoding of a reply with 415, which may have it for this reason only. */
export function isEncodingRefused(contentEncoding: string | undefined): boolean {
  try {
    encodingOf(contentEncoding);
    return false;
  } catch {
    return true;
  }
}

/**
 * The decoded body. It fails with what `invalidEncoding` recognizes; its end is that of the body. Destroying it
 * leaves the request as it is.
 */
export function decode(raw: Readable, encoding: Encoding): Transform {
  const decoder = encoding === 'gzip' ? zlib.createGunzip() : new ZstdFrames();
  // A pipe does not pass on that its source has ended early.
  const onBroken = (cause?: unknown) => {
    if (raw.readableEnded) return;
    decoder.destroy(cause instanceof SagittaError ? cause : new Error('The body was cut off.'));
  };
  if (raw.destroyed) onBroken(raw.errored);
  raw.once('close', onBroken).once('error', onBroken);
  decoder.once('close', () => {
    raw.off('close', onBroken).off('error', onBroken).unpipe(decoder);
  });
  raw.pipe(decoder);
  return decoder;
}

/** More frames than these must have so many bytes on average: to begin one takes as long as to parse them. */
const FRAMES_MAX = 1_000;
const FRAME_BYTES_MIN = 16_384;

/** Decodes one frame of zstd after another, as `cat` and `pzstd` make them: Node's decoder forgets what follows the first. */
class ZstdFrames extends Transform {
  #frame = this.#begin();
  /** Node's decoder takes a frame that was cut off for one that ends. */
  readonly #bounds = new ZstdBounds();
  #frameCount = 1;
  #byteCount = 0;

  #begin() {
    const frame = createZstdDecompress!();
    frame.on('data', (part: Uint8Array) => {
      if (!this.push(part)) frame.pause();
    });
    frame.on('error', (error) => this.destroy(error));
    return frame;
  }

  override _read(byteCount: number): void {
    this.#frame.resume();
    super._read(byteCount);
  }

  override _transform(bytes: Uint8Array, encoding: BufferEncoding, done: TransformCallback): void {
    const frame = this.#frame;
    const usedBefore = frame.bytesWritten;
    frame.write(bytes, () => {
      const usedBytes = frame.bytesWritten - usedBefore;
      this.#byteCount += usedBytes;
      this.#bounds.add(bytes.subarray(0, usedBytes));
      if (frame.destroyed || usedBytes === bytes.length) {
        done();
        return;
      }
      this.#frameCount++;
      if (this.#frameCount > Math.max(FRAMES_MAX, this.#byteCount / FRAME_BYTES_MIN)) {
        done(tooManyFrames());
        return;
      }
      const next = () => {
        frame.destroy();
        this.#frame = this.#begin();
        this._transform(bytes.subarray(usedBytes), encoding, done);
      };
      if (frame.readableEnded) next();
      else frame.once('end', next);
    });
  }

  override _flush(done: TransformCallback): void {
    const end = () => done(this.#bounds.isComplete ? null : cutOff());
    this.#frame.once('end', end).end();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#frame.destroy();
    done(error);
  }
}

/** As the decoder of gzip reports it. */
function cutOff(): Error {
  return Object.assign(new Error('unexpected end of file'), { code: 'ZSTD_cut_off' });
}

function tooManyFrames(): SagittaError {
  return new SagittaError(
    'invalid_request',
    `The body has more than ${FRAMES_MAX} frames of zstd, of less than ${FRAME_BYTES_MIN} bytes on average; compress it as a whole.`,
  );
}

/** `invalid_request` for an error of the decoder; undefined for others. */
export function invalidEncoding(error: unknown, encoding: Encoding): SagittaError | undefined {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!/^(?:Z_|ZSTD_|ERR_ZSTD)/.test(String(code))) return undefined;
  return new SagittaError(
    'invalid_request',
    `The body is not valid ${encoding}, which Content-Encoding says: ${message}.`,
    { cause: error },
  );
}

type Compressor = Transform & { flush(onFlushed: () => void): void };

/** Compresses the chunks of one reply, each so that the client can read all of it when it arrives. */
export class ChunkCompressor {
  readonly #stream: Compressor;
  #parts: Uint8Array[] = [];
  /** Rejects what is under way. */
  #fail: (error: unknown) => void = () => {};

  constructor(encoding: Encoding) {
    this.#stream =
      encoding === 'gzip' ? zlib.createGzip({ level: GZIP_LEVEL }) : createZstdCompress!();
    this.#stream
      .on('data', (part: Uint8Array) => this.#parts.push(part))
      .on('error', (error) => this.#fail(error));
  }

  async add(chunk: Uint8Array): Promise<Uint8Array> {
    await new Promise<void>((resolve, reject) => {
      this.#fail = reject;
      this.#stream.write(chunk, () => this.#stream.flush(resolve));
    });
    return this.#take();
  }

  async end(): Promise<Uint8Array> {
    await new Promise<void>((resolve, reject) => {
      this.#fail = reject;
      this.#stream.once('end', resolve).end();
    });
    return this.#take();
  }

  /** For a reply that ends early. */
  close(): void {
    this.#stream.destroy();
  }

  #take(): Uint8Array {
    const bytes = Buffer.concat(this.#parts);
    this.#parts = [];
    return bytes;
  }
}

/** Of bytes that many requests share. */
const compressedShared = new WeakMap<Buffer, Map<Encoding, Promise<Uint8Array>>>();

export function compress(body: string | Buffer, encoding: Encoding): Promise<Uint8Array> {
  if (typeof body === 'string') return compressWhole(Buffer.from(body), encoding);
  let known = compressedShared.get(body);
  if (known === undefined) {
    known = new Map();
    compressedShared.set(body, known);
  }
  let made = known.get(encoding);
  if (made === undefined) {
    made = compressWhole(body, encoding);
    known.set(encoding, made);
  }
  return made;
}

async function compressWhole(body: Buffer, encoding: Encoding): Promise<Uint8Array> {
  const compressor = new ChunkCompressor(encoding);
  return Buffer.concat([await compressor.add(body), await compressor.end()]);
}

/** The entity tag of the compressed form; `tagOfPlain` undoes it. */
export function tagOfEncoded(etag: string, encoding: Encoding): string {
  return etag.replace(/"$/, `-${encoding}"`);
}

/** The tag of the form that is not compressed: the two have the same contents. */
export function tagOfPlain(etag: string): string {
  return etag.replace(/-(?:zstd|gzip)"$/, '"');
}
