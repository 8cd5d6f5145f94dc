// The body of a request between nodes, as chunks that are signed one by one, so that the receiver can process a stream
// while it arrives and still use only authentic bytes. A chunk is its length (uint32, little-endian), its bytes and an
// HMAC. Each HMAC covers the one before it, and the first that of the request, so that chunks can be neither reordered
// nor omitted. An empty chunk ends the body.

import { Transform, type TransformCallback } from 'node:stream';
import { SagittaError } from '../../common/errors.js';
import { type NodeKeys, TAG_BYTES } from '../../platform/node-keys.js';

const LENGTH_BYTES = 4;
/** The most that a receiver buffers before it can verify a chunk. */
const CHUNK_BYTES_MAX = 64 * 1024;
const NO_BYTES = Buffer.alloc(0);

class ChunkTags {
  readonly #keys: NodeKeys;
  #last: Uint8Array;

  constructor(keys: NodeKeys, requestTag: Uint8Array) {
    this.#keys = keys;
    this.#last = requestTag;
  }

  /** `chunk` includes its length. */
  sign(chunk: Uint8Array): Buffer {
    const tag = this.#keys.sign('requests', 'chunk\n', this.#last, chunk);
    this.#last = tag;
    return tag;
  }

  verify(chunk: Uint8Array, tag: Uint8Array): boolean {
    const isValid = this.#keys.verify('requests', tag, 'chunk\n', this.#last, chunk);
    this.#last = Buffer.from(tag);
    return isValid;
  }
}

/** Turns a body into signed chunks. */
export class BodySigner extends Transform {
  readonly #tags: ChunkTags;

  constructor(keys: NodeKeys, requestTag: Uint8Array) {
    super();
    this.#tags = new ChunkTags(keys, requestTag);
  }

  override _transform(bytes: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES_MAX) {
      this.#add(bytes.subarray(at, at + CHUNK_BYTES_MAX));
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    this.#add(NO_BYTES);
    done();
  }

  #add(bytes: Uint8Array): void {
    const chunk = Buffer.allocUnsafe(LENGTH_BYTES + bytes.length);
    chunk.writeUInt32LE(bytes.length);
    chunk.set(bytes, LENGTH_BYTES);
    this.push(chunk);
    this.push(this.#tags.sign(chunk));
  }
}

/** Turns signed chunks into the body. Fails with `credentials_invalid`, or `invalid_request` if the body ends early. */
export class BodyVerifier extends Transform {
  readonly #tags: ChunkTags;
  #pending: Buffer = NO_BYTES;
  #isEnded = false;

  constructor(keys: NodeKeys, requestTag: Uint8Array) {
    super();
    this.#tags = new ChunkTags(keys, requestTag);
  }

  override _transform(bytes: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    while (this.#pending.length >= LENGTH_BYTES) {
      const length = this.#pending.readUInt32LE();
      const end = LENGTH_BYTES + length;
      if (this.#isEnded || length > CHUNK_BYTES_MAX) {
        done(alteredError());
        return;
      }
      if (this.#pending.length < end + TAG_BYTES) break;
      const chunk = this.#pending.subarray(0, end);
      if (!this.#tags.verify(chunk, this.#pending.subarray(end, end + TAG_BYTES))) {
        done(alteredError());
        return;
      }
      this.#pending = this.#pending.subarray(end + TAG_BYTES);
      if (length === 0) this.#isEnded = true;
      else this.push(chunk.subarray(LENGTH_BYTES));
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    const isWhole = this.#isEnded && this.#pending.length === 0;
    done(isWhole ? null : new SagittaError('invalid_request', 'The body was cut off.'));
  }
}

function alteredError(): SagittaError {
  return new SagittaError(
    'credentials_invalid',
    'A chunk of the body does not carry the signature of a node of this cluster; the chunks before it do.',
  );
}
