// Ends one try when its caller gives up, or when nothing happens for too long. The time during
// which the caller is asked for more, or has not asked for more, is not the service's and does not
// count.

export class IdleTimer {
  readonly #idleMsMax: number;
  readonly #controller = new AbortController();
  readonly #callers: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #holdCount = 0;
  #isExpired = false;
  readonly #giveUp = (): void => this.#controller.abort(this.#callers?.reason);

  /** Runs from now on. `idleMsMax` may be Infinity. */
  constructor(idleMsMax: number, signal: AbortSignal | undefined) {
    this.#idleMsMax = idleMsMax;
    this.#callers = signal;
    if (signal?.aborted) this.#giveUp();
    else signal?.addEventListener('abort', this.#giveUp, { once: true });
    this.#start();
  }

  /** To be given to fetch. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isExpired(): boolean {
    return this.#isExpired;
  }

  /** It is the caller's turn, until `release`. Holds add up. */
  hold(): void {
    this.#holdCount++;
    clearTimeout(this.#timer);
  }

  /** Something happened, and it is the service's turn again. */
  release(): void {
    this.#holdCount--;
    this.#start();
  }

  /** Ends what is still under way, if anything is. */
  close(): void {
    clearTimeout(this.#timer);
    this.#holdCount = Number.POSITIVE_INFINITY;
    this.#callers?.removeEventListener('abort', this.#giveUp);
  }

  abort(reason: unknown): void {
    this.close();
    this.#controller.abort(reason);
  }

  #start(): void {
    clearTimeout(this.#timer);
    if (this.#holdCount > 0 || this.#idleMsMax === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => {
      this.#isExpired = true;
      this.#controller.abort(new Error(`nothing came for ${this.#idleMsMax} ms`));
    }, this.#idleMsMax);
  }
}
