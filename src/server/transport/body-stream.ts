// A body as it arrives: read no faster than it is worked off, however long it is. What its reader
// keeps of it counts among the bodies in flight.

import type { FastifyRequest } from 'fastify';
import { SagittaError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { clearBodyTimeout, sendContinue } from './connections.js';

export class BodyStream implements AsyncIterable<Buffer> {
  readonly #request: FastifyRequest;
  readonly #idleMsMax: number;
  /** Null until somebody reads. */
  #chunks: AsyncIterator<Buffer> | null = null;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(request: FastifyRequest, limits: Pick<Limits, 'stalledMsMax'>) {
    this.#request = request;
    this.#idleMsMax = limits.stalledMsMax;
  }

  /** Whether all of it has arrived. */
  get isComplete(): boolean {
    return this.#request.raw.complete;
  }

  /** How many bytes of it are kept by now. Throws `overloaded` when there is no room for more. */
  reserve(byteCount: number): void {
    this.#request.bodyReservation?.reserve(byteCount);
  }

  /**
   * The chunks, once. Throws `invalid_request` when the body breaks off, and `deadline_exceeded` when
   * nothing of it arrives for long.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    const { raw } = this.#request;
    clearBodyTimeout(raw);
    sendContinue(raw);
    // Destroyed at its end, the request would take its reply with it.
    const chunks = raw.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>;
    this.#chunks = chunks;
    try {
      for (;;) {
        const next = await this.#inTime(chunks.next());
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      this.discard();
    }
  }

  /**
   * What is still to come is thrown away, not left where it is: its sender reads the reply only when
   * everything is sent. Any number of times; also for a reader who stopped and did not say so. Not
   * waited for, since the iterator may itself wait for a chunk.
   */
  discard(): void {
    clearTimeout(this.#idleTimer);
    const { raw } = this.#request;
    const goOn = () => {
      raw.resume();
    };
    // As long as its iterator is there, a body does not flow.
    if (this.#chunks?.return === undefined) goOn();
    else this.#chunks.return().then(goOn, goOn);
  }

  #inTime(reading: Promise<IteratorResult<Buffer>>): Promise<IteratorResult<Buffer>> {
    return new Promise((resolve, reject) => {
      this.#idleTimer = setTimeout(() => {
        const detail = `Nothing of the body arrived for ${this.#idleMsMax} ms.`;
        reject(new SagittaError('deadline_exceeded', detail));
      }, this.#idleMsMax);
      reading.then(
        (next) => {
          clearTimeout(this.#idleTimer);
          resolve(next);
        },
        (cause: unknown) => {
          clearTimeout(this.#idleTimer);
          reject(new SagittaError('invalid_request', 'The body broke off.', { cause }));
        },
      );
    });
  }
}
