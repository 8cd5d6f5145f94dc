// The streamed body of a reply, read on demand. A truncated reply ends in an error, and a consumer that
// stops early aborts the request.

import type { IdleTimer } from './idle-timer.js';

export interface ReplyBodyOptions {
  readonly timer: IdleTimer;
  /** The error to throw when the connection breaks or the timer expires. */
  readonly toError: (cause: unknown, byteCount: number) => unknown;
  /** Called once, when the body ends for any reason. */
  readonly onEnd: () => void;
}

/** The bytes of a reply, which can be read once. Leaving a `for await` loop, or `cancel`, aborts the request. */
export class ReplyBody implements AsyncIterable<Uint8Array> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #options: ReplyBodyOptions;
  #byteCount = 0;
  #isEnded = false;

  constructor(body: ReadableStream<Uint8Array> | null, options: ReplyBodyOptions) {
    this.#reader = body?.getReader();
    this.#options = options;
    // The timer runs only while the consumer waits for a chunk.
    options.timer.pause();
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

  /** Aborts the request when the rest of the body is not needed. */
  async cancel(): Promise<void> {
    if (this.#isEnded) return;
    this.#end();
    // The connection may have broken meanwhile, which ends the request as well.
    await this.#reader?.cancel().catch(() => {});
  }

  async #next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#isEnded || this.#reader === undefined) {
      this.#end();
      return { done: true, value: undefined };
    }
    const { timer, toError } = this.#options;
    timer.resume();
    try {
      const next = await this.#reader.read();
      timer.pause();
      if (!next.done) {
        this.#byteCount += next.value.byteLength;
        return { done: false, value: next.value };
      }
    } catch (cause) {
      this.#end();
      throw toError(cause, this.#byteCount);
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
