// Reads the bytes of a body, within the bounds of one body and of all together, however the client
// says how long it is: not at all, rightly or wrongly.

import type { FastifyRequest } from 'fastify';
import { field, SagittaError, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { sendContinue } from '../transport/connections.js';

/** A chunk of one byte takes hundreds as an object; so many are put together into one block. */
const CHUNKS_KEPT_MAX = 1_024;

/**
 * Rejects with `payload_too_large`, `overloaded` and `invalid_request`; what arrives after that is
 * the caller's to throw away.
 */
export function readBody(request: FastifyRequest, limits: Limits): Promise<Buffer> {
  const { raw, bodyReservation: bodyPlace } = request;
  const { bodyBytesMax } = limits;
  const declared = declaredBytes(request);
  if (declared !== null && declared > bodyBytesMax) {
    return Promise.reject(tooLarge(bodyBytesMax, declared));
  }
  sendContinue(raw);
  return new Promise((resolve, reject) => {
    const blocks: Buffer[] = [];
    let chunks: Buffer[] = [];
    let byteCount = 0;
    const stop = () => {
      raw.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken);
    };
    const fail = (error: unknown) => {
      stop();
      // A client may go on sending for long what nobody keeps.
      bodyPlace?.release();
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      byteCount += chunk.length;
      try {
        if (byteCount > bodyBytesMax) throw tooLarge(bodyBytesMax, null);
        bodyPlace?.reserveAtLeast(byteCount);
        chunks.push(chunk);
        if (chunks.length === CHUNKS_KEPT_MAX) {
          blocks.push(Buffer.concat(chunks));
          chunks = [];
        }
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = () => {
      if (declared === null || declared === byteCount) {
        stop();
        // A copy even of one chunk, which may be a piece of a larger buffer of the connection.
        resolve(Buffer.concat([...blocks, ...chunks], byteCount));
      } else {
        fail(
          new SagittaError(
            'invalid_request',
            `The body has ${byteCount} bytes; Content-Length says ${declared}.`,
          ),
        );
      }
    };
    // Nobody reads the reply.
    const onBroken = (cause?: unknown) => {
      fail(new SagittaError('invalid_request', 'The body broke off.', { cause }));
    };
    raw.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
  });
}

/** Null where the head does not tell. */
function declaredBytes({ headers }: FastifyRequest): number | null {
  const text = headers['content-length'];
  return text === undefined ? null : Number(text);
}

function tooLarge(bound: number, declared: number | null): SagittaError {
  // A body that does not say how long it is is given up as soon as it passes the bound.
  const found = declared ?? `more than ${bound}`;
  const detail = `A body has at most ${bound} bytes; found ${found}.`;
  return validationError([
    { location: field(), code: 'payload_too_large', detail, expected: bound, actual: found },
  ]);
}
