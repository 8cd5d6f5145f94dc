// Receives request bodies: JSON bodies as a whole, streams if the route takes them. Rejects other types. Enforces
// the limits on each body and on all bodies together, whether Content-Length is correct, wrong or absent.

import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { field, SagittaError, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { INLINE_BYTES_MAX } from '../../platform/pool.js';
import type { BodyReservation } from '../limits/body-admission.js';
import { BodyStream } from '../transport/body-stream.js';
import { sendContinue } from '../transport/connections.js';
import { decode, encodingOf, invalidEncoding } from '../wire/content-encodings.js';
import { JSON_TYPE, STREAM_TYPES } from '../wire/media-types.js';

/** Handlers get the bytes of a body, or a `BodyStream`, and parse them. */
export function addBodyParsers(app: FastifyInstance, limits: Limits): void {
  app.removeAllContentTypeParsers();
  for (const type of STREAM_TYPES) {
    app.addContentTypeParser(type, async (request: FastifyRequest) => {
      const { streamTypes = [] } = request.routeOptions.config;
      const problem = streamTypes.includes(type)
        ? checkContent(request, type)
        : `This route takes ${JSON_TYPE}; found ${type}.`;
      if (problem !== null) throw new SagittaError('unsupported_media_type', problem);
      return new BodyStream(request, limits);
    });
  }
  for (const type of [JSON_TYPE, 'application/merge-patch+json']) {
    app.addContentTypeParser(type, async (request: FastifyRequest) => {
      const problem = checkContent(request, type);
      if (problem !== null) throw new SagittaError('unsupported_media_type', problem);
      return readBody(request, limits);
    });
  }
}

/** The problem with the declared form of the body; null for none. Throws `unsupported_media_type`. */
function checkContent(request: FastifyRequest, type: string): string | null {
  const { 'content-type': contentType = '', 'content-encoding': encoding } = request.headers;
  encodingOf(encoding);
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    return `The body is in ${charset}; send it in UTF-8.`;
  }
  if (type === 'application/merge-patch+json' && request.method !== 'PATCH') {
    return `${type} is for PATCH; send application/json.`;
  }
  return null;
}

/** Rejects with `payload_too_large`, `overloaded` and `invalid_request`; the caller discards the rest of the body. */
function readBody(request: FastifyRequest, limits: Limits): Promise<Uint8Array> {
  const { raw, bodyReservation, forwarded } = request;
  const sent: Readable = forwarded?.bodyStream ?? raw;
  const { bodyBytesMax } = limits;
  const sentBytes = declaredBytesOf(request);
  if (sentBytes !== null && sentBytes > bodyBytesMax) {
    return Promise.reject(tooLarge(bodyBytesMax, sentBytes));
  }
  const encoding = encodingOf(request.headers['content-encoding']);
  // The length of a decoded body is known only at its end.
  const declared = encoding === null ? sentBytes : null;
  sendContinue(raw);
  const source = encoding === null ? sent : decode(sent, encoding);
  return new Promise((resolve, reject) => {
    const memory = createBodyMemory(declared, bodyReservation);
    let byteCount = 0;
    const stop = () => {
      source.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken);
      if (source === raw) return;
      source.on('error', () => {}).destroy();
    };
    const fail = (error: unknown) => {
      stop();
      // The client may continue sending for a long time.
      bodyReservation?.end();
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      byteCount += chunk.length;
      try {
        if (byteCount > bodyBytesMax) throw tooLarge(bodyBytesMax, null);
        bodyReservation?.reserveAtLeast(byteCount);
        memory.add(chunk);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = () => {
      if (declared === null || declared === byteCount) {
        stop();
        resolve(memory.take());
      } else {
        fail(
          new SagittaError(
            'invalid_request',
            `The body has ${byteCount} bytes; Content-Length says ${declared}.`,
          ),
        );
      }
    };
    // The client has disconnected, or a forwarded body failed verification.
    const onBroken = (cause?: unknown) => {
      const detail = 'The connection ended before the body was complete.';
      fail(
        (cause && encoding && invalidEncoding(cause, encoding)) ||
          (cause instanceof SagittaError
            ? cause
            : new SagittaError('invalid_request', detail, { cause })),
      );
    };
    // The source may have failed before it had listeners.
    if (source.destroyed) onBroken(source.errored);
    else source.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
  });
}

/** Assembles the chunks of one body. */
interface BodyMemory {
  add(chunk: Uint8Array): void;
  take(): Uint8Array;
}

function createBodyMemory(
  declared: number | null,
  reservation: BodyReservation | null,
): BodyMemory {
  const isLarge = declared !== null && declared > INLINE_BYTES_MAX && reservation !== null;
  return isLarge ? new SharedBody(reservation.allocate(declared)) : new ChunkedBody();
}

/** For large bodies of known length: chunks are copied as they arrive, and workers read the bytes in place. */
class SharedBody implements BodyMemory {
  readonly #bytes: Uint8Array;
  #end = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Bytes beyond the declared length, which are an error, are only counted. */
  add(chunk: Uint8Array): void {
    if (this.#end + chunk.length <= this.#bytes.length) this.#bytes.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  take(): Uint8Array {
    return this.#bytes;
  }
}

/** Chunks that are joined into a block: a chunk of one byte takes hundreds of bytes as an object. */
const CHUNKS_KEPT_MAX = 1_024;

class ChunkedBody implements BodyMemory {
  readonly #blocks: Uint8Array[] = [];
  #chunks: Uint8Array[] = [];

  add(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    if (this.#chunks.length < CHUNKS_KEPT_MAX) return;
    this.#blocks.push(Buffer.concat(this.#chunks));
    this.#chunks = [];
  }

  /** Copies a single chunk only if it is part of a larger buffer of the connection. */
  take(): Uint8Array {
    const [first, second] = this.#chunks;
    if (this.#blocks.length === 0 && first !== undefined && second === undefined) {
      if (first.length === first.buffer.byteLength) return first;
    }
    return Buffer.concat([...this.#blocks, ...this.#chunks]);
  }
}

/** Null if the client does not declare the length. */
export function declaredBytesOf({ headers, forwarded }: FastifyRequest): number | null {
  // The signatures of a forwarded body make it longer than Content-Length says.
  if (forwarded !== null) return forwarded.body?.byteCount ?? null;
  const text = headers['content-length'];
  return text === undefined ? null : Number(text);
}

function tooLarge(bound: number, declared: number | null): SagittaError {
  // Without Content-Length, the length of the whole body is unknown.
  const found = declared ?? `more than ${bound}`;
  const detail = `A body has at most ${bound} bytes; found ${found}.`;
  return validationError([
    { location: field(), code: 'payload_too_large', detail, expected: bound, actual: found },
  ]);
}
