// Aborts an attempt when its caller aborts, or when no data arrives for too long. Time spent waiting
// for the caller (for more input, or for the reply to be read) does not count.

import { whenAborted } from '../../../src/common/when-aborted.js';

export class IdleTimer {
  readonly #idleMsMax: number;
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pauseCount = 0;
  #isExpired = false;
  readonly #ignoreAbort: () => void;

  /** Starts the timer. `idleMsMax` may be Infinity. */
  constructor(idleMsMax: number, signal: AbortSignal | undefined) {
    this.#idleMsMax = idleMsMax;
    const abort = (): void => this.#controller.abort(signal?.reason);
    if (signal?.aborted) abort();
    this.#ignoreAbort = whenAborted(signal, abort);
    this.#start();
  }

  /** The signal for fetch. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isExpired(): boolean {
    return this.#isExpired;
  }

  /** Stops the timer until the matching `resume`; calls nest. */
  pause(): void {
    this.#pauseCount++;
    clearTimeout(this.#timer);
  }

  /** Restarts the timer. */
  resume(): void {
    this.#pauseCount--;
    this.#start();
  }

  /** Stops the timer for good and detaches from the caller's signal. */
  close(): void {
    clearTimeout(this.#timer);
    this.#pauseCount = Number.POSITIVE_INFINITY;
    this.#ignoreAbort();
  }

  /** Closes the timer and aborts the request, if it is still in flight. */
  abort(reason: unknown): void {
    this.close();
    this.#controller.abort(reason);
  }

  #start(): void {
    clearTimeout(this.#timer);
    if (this.#pauseCount > 0 || this.#idleMsMax === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => {
      this.#isExpired = true;
      this.#controller.abort(new Error(`no data arrived for ${this.#idleMsMax} ms`));
    }, this.#idleMsMax);
  }
}
