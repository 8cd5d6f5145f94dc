// Reads the bytes of request bodies: JSON bodies whole, streams where a route takes them; rejects other
// types. Enforces the limits on one body and on all bodies together, whether Content-Length is
// correct, wrong or absent.

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

/** Gives handlers the bytes of bodies, whole or as they arrive; the handlers parse them. */
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

/** What is wrong with the declared form of the body; null for nothing. Throws `unsupported_media_type`. */
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

/**
 * Rejects with `payload_too_large`, `overloaded` and `invalid_request`; the caller discards what
 * arrives after that.
 */
function readBody(request: FastifyRequest, limits: Limits): Promise<Uint8Array> {
  const { raw, bodyReservation, forwarded } = request;
  const sent: Readable = forwarded?.bodyStream ?? raw;
  const { bodyBytesMax } = limits;
  const sentBytes = declaredBytesOf(request);
  if (sentBytes !== null && sentBytes > bodyBytesMax) {
    return Promise.reject(tooLarge(bodyBytesMax, sentBytes));
  }
  const encoding = encodingOf(request.headers['content-encoding']);
  // How long an encoded body becomes is known at its end.
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
      // The client may go on sending for a long time; nothing of it is kept.
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
    // The client is gone, and nobody reads the reply; or what another node has sent was changed on the way.
    const onBroken = (cause?: unknown) => {
      const detail = 'The connection ended before the body was complete.';
      fail(
        (cause && encoding && invalidEncoding(cause, encoding)) ||
          (cause instanceof SagittaError
            ? cause
            : new SagittaError('invalid_request', detail, { cause })),
      );
    };
    // Nobody may have listened before.
    if (source.destroyed) onBroken(source.errored);
    else source.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
  });
}

/** Where the chunks of one body are put together. */
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

/** A large body of known length: no chunk waits for the others, and workers read the bytes in place. */
class SharedBody implements BodyMemory {
  readonly #bytes: Uint8Array;
  #end = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** What exceeds the declared length is counted, not kept: it is an error. */
  add(chunk: Uint8Array): void {
    if (this.#end + chunk.length <= this.#bytes.length) this.#bytes.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  take(): Uint8Array {
    return this.#bytes;
  }
}

/** A chunk of one byte takes hundreds as an object; this many chunks are joined into one block. */
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

  /** A copy even of one chunk, which may be part of a larger buffer of the connection. */
  take(): Uint8Array {
    return Buffer.concat([...this.#blocks, ...this.#chunks]);
  }
}

/** Null where the client does not say. */
export function declaredBytesOf({ headers, forwarded }: FastifyRequest): number | null {
  // The other node signs its chunks, so that what it sends is longer.
  if (forwarded !== null) return forwarded.body?.byteCount ?? null;
  const text = headers['content-length'];
  return text === undefined ? null : Number(text);
}

function tooLarge(bound: number, declared: number | null): SagittaError {
  // Without Content-Length the length of the whole body is unknown.
  const found = declared ?? `more than ${bound}`;
  const detail = `A body has at most ${bound} bytes; found ${found}.`;
  return validationError([
    { location: field(), code: 'payload_too_large', detail, expected: bound, actual: found },
  ]);
}
