// Encodings of bodies and replies: gzip, and zstd if this version of Node supports it. Bodies are decoded while they
// arrive, so that limits apply to the decoded bytes. Text is compressed for clients that accept it.

import { type Readable, Transform, type TransformCallback } from 'node:stream';
import * as zlib from 'node:zlib';
import { SagittaError } from '../../common/errors.js';
import { ZstdBounds } from './zstd-bounds.js';

export type Encoding = 'zstd' | 'gzip';

/** Available since Node 22.15; the type declarations are older. */
const { createZstdCompress, createZstdDecompress } = zlib as typeof zlib & {
  createZstdCompress?: () => Transform & { flush(onFlushed: () => void): void };
  createZstdDecompress?: () => Transform & { readonly bytesWritten: number };
};
const HAS_ZSTD = createZstdCompress !== undefined && createZstdDecompress !== undefined;

/** The most preferred comes first. */
export const ENCODINGS: readonly Encoding[] = HAS_ZSTD ? ['zstd', 'gzip'] : ['gzip'];

/** About what TCP sends before the first acknowledgement: compressing shorter replies saves no round trip. */
export const COMPRESSED_BYTES_MIN = 16_384;

/** The fastest level. It reduces JSON to a third; slower levels gain little. */
const GZIP_LEVEL = 1;

const TEXT_TYPES = /^(?:text\/|application\/(?:[\w.-]+\+)?json\b|application\/(?:x-ndjson|yaml)\b)/;

/** Whether compression pays off for this type. Arrow and Parquet have their own encodings. */
export function isCompressible(contentType: string | undefined): boolean {
  return contentType !== undefined && TEXT_TYPES.test(contentType);
}

/** The encoding of a body; null for none. Throws `unsupported_media_type` for unknown or multiple encodings. */
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

/** Whether Content-Encoding is unsupported. Only then may a reply with 415 contain Accept-Encoding. */
export function isEncodingRefused(contentEncoding: string | undefined): boolean {
  try {
    encodingOf(contentEncoding);
    return false;
  } catch {
    return true;
  }
}

/**
 * The decoded body, which ends with the request. Its errors are recognized by `invalidEncoding`. Destroying it does not
 * affect the request.
 */
export function decode(raw: Readable, encoding: Encoding): Transform {
  const decoder = encoding === 'gzip' ? zlib.createGunzip() : new ZstdFrames();
  // A pipe does not propagate a premature end of its source.
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

/** A body with more frames needs `FRAME_BYTES_MIN` bytes per frame: starting a frame costs as much as parsing them. */
const FRAMES_MAX = 1_000;
const FRAME_BYTES_MIN = 16_384;

/** Decodes concatenated zstd frames, as `cat` and `pzstd` produce them: Node's decoder ignores all but the first. */
class ZstdFrames extends Transform {
  #frame = this.#begin();
  /** Node's decoder does not report a truncated frame. */
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

/** The same message as that of the gzip decoder. */
function cutOff(): Error {
  return Object.assign(new Error('unexpected end of file'), { code: 'ZSTD_cut_off' });
}

function tooManyFrames(): SagittaError {
  return new SagittaError(
    'invalid_request',
    `The body has more than ${FRAMES_MAX} zstd frames with an average of less than ${FRAME_BYTES_MIN} bytes; compress it as a whole.`,
  );
}

/** Converts an error of the decoder to `invalid_request`; undefined for other errors. */
export function invalidEncoding(error: unknown, encoding: Encoding): SagittaError | undefined {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!/^(?:Z_|ZSTD_|ERR_ZSTD)/.test(String(code))) return undefined;
  return new SagittaError(
    'invalid_request',
    `The body is not valid ${encoding}, as Content-Encoding declares: ${message}.`,
    { cause: error },
  );
}

type Compressor = Transform & { flush(onFlushed: () => void): void };

/** Compresses the chunks of one reply and flushes after each, so that the client can read it at once. */
export class ChunkCompressor {
  readonly #stream: Compressor;
  #parts: Uint8Array[] = [];
  /** Rejects the pending operation. */
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

  /** Releases the compressor, also if the reply ends early. */
  close(): void {
    this.#stream.destroy();
  }

  #take(): Uint8Array {
    const bytes = Buffer.concat(this.#parts);
    this.#parts = [];
    return bytes;
  }
}

/** Compressed forms of static bodies, which many requests share. */
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

/** The entity tag of the compressed representation; `tagOfPlain` is the inverse. */
export function tagOfEncoded(etag: string, encoding: Encoding): string {
  return etag.replace(/"$/, `-${encoding}"`);
}

/** The entity tag of the uncompressed representation, which has the same contents. */
export function tagOfPlain(etag: string): string {
  return etag.replace(/-(?:zstd|gzip)"$/, '"');
}
