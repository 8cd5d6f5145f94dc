// Streams on their way in: the body of a reply, read as it is asked for. Guarantees that a reply
// that was cut short ends in an error, and that a reader that leaves early ends the request.

import type { IdleTimer } from './idle-timer.js';

export interface ReplyBodyOptions {
  readonly timer: IdleTimer;
  /** The error of a connection that broke, or of a wait that was too long. */
  readonly failureOf: (cause: unknown, byteCount: number) => unknown;
  /** Called once, whatever the end was. */
  readonly onEnd: () => void;
}

/**
 * The bytes of a reply. To be read once and to the end; leaving a `for await`, or `cancel`, ends the
 * request before.
 */
export class ReplyBody implements AsyncIterable<Uint8Array> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #options: ReplyBodyOptions;
  #byteCount = 0;
  #isEnded = false;

  constructor(body: ReadableStream<Uint8Array> | null, options: ReplyBodyOptions) {
    this.#reader = body?.getReader();
    this.#options = options;
    // Until somebody asks for the first chunk, nobody waits for the service.
    options.timer.hold();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: () => this.#next(),
      return: async () => {
        await this.cancel();
        return { done: true, value: undefined };
      },
    };
  }

  /** Ends the request when there is no interest in the rest. */
  async cancel(): Promise<void> {
    if (this.#isEnded) return;
    this.#end();
    // The connection may have broken meanwhile, which is an end, too.
    await this.#reader?.cancel().catch(() => {});
  }

  async #next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#isEnded || this.#reader === undefined) {
      this.#end();
      return { done: true, value: undefined };
    }
    const { timer, failureOf } = this.#options;
    timer.release();
    try {
      const next = await this.#reader.read();
      timer.hold();
      if (!next.done) {
        this.#byteCount += next.value.byteLength;
        return { done: false, value: next.value };
      }
    } catch (cause) {
      this.#end();
      throw failureOf(cause, this.#byteCount);
    }
    this.#end();
    return { done: true, value: undefined };
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#options.timer.close();
    this.#options.onEnd();
  }
}
