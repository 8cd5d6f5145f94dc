// A request body of any length that is processed while it arrives, with backpressure. The bytes that its reader
// keeps count as body bytes in flight.

import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { SagittaError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { decode, type Encoding, encodingOf, invalidEncoding } from '../wire/content-encodings.js';
import { clearBodyTimeout, discardBody, sendContinue } from './connections.js';

export class BodyStream implements AsyncIterable<Buffer> {
  readonly #request: FastifyRequest;
  readonly #idleMsMax: number;
  /** Null until reading begins. */
  #chunks: AsyncIterator<Buffer> | null = null;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(request: FastifyRequest, limits: Pick<Limits, 'stalledMsMax'>) {
    this.#request = request;
    this.#idleMsMax = limits.stalledMsMax;
  }

  /** Whether the whole body has been received. */
  get isComplete(): boolean {
    return this.#request.raw.complete;
  }

  /** Sets the number of bytes that the reader keeps in memory. Throws `overloaded`. */
  reserve(byteCount: number): void {
    this.#request.bodyReservation?.reserve(byteCount);
  }

  /**
   * The chunks of the body, which can be iterated once. Throws `invalid_request` if the body is truncated and
   * `deadline_exceeded` if no data arrives for too long.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    const { raw, forwarded } = this.#request;
    clearBodyTimeout(raw);
    sendContinue(raw);
    const sent: Readable = forwarded?.bodyStream ?? raw;
    const encoding = encodingOf(raw.headers['content-encoding']);
    const decoder = encoding === null ? null : decode(sent, encoding);
    // Destroying the request would destroy the reply too.
    const chunks = (decoder ?? sent).iterator({
      destroyOnReturn: false,
    }) as AsyncIterableIterator<Buffer>;
    this.#chunks = chunks;
    try {
      for (;;) {
        const next = await this.#withIdleTimeout(chunks.next(), encoding);
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      this.discard();
      decoder?.on('error', () => {}).destroy();
    }
  }

  /**
   * Discards the rest of the body, since many clients read the reply only after they have sent everything. May be
   * called repeatedly, also if a reader has stopped without closing the iterator. Does not wait, since the iterator
   * may be waiting for a chunk.
   */
  discard(): void {
    clearTimeout(this.#idleTimer);
    const resume = () => discardBody(this.#request);
    // A body does not flow while an iterator is attached.
    if (this.#chunks?.return === undefined) resume();
    else this.#chunks.return().then(resume, resume);
  }

  #withIdleTimeout(
    reading: Promise<IteratorResult<Buffer>>,
    encoding: Encoding | null,
  ): Promise<IteratorResult<Buffer>> {
    return new Promise((resolve, reject) => {
      this.#idleTimer = setTimeout(() => {
        const detail = `No data of the body arrived for ${this.#idleMsMax} ms.`;
        reject(new SagittaError('deadline_exceeded', detail));
      }, this.#idleMsMax);
      reading.then(
        (next) => {
          clearTimeout(this.#idleTimer);
          resolve(next);
        },
        (cause: unknown) => {
          clearTimeout(this.#idleTimer);
          const isInvalid = encoding !== null && invalidEncoding(cause, encoding);
          // A body that another node has forwarded may fail verification.
          const found = cause instanceof SagittaError ? cause : isInvalid;
          reject(found || new SagittaError('invalid_request', 'The body was cut off.', { cause }));
        },
      );
    });
  }
}
