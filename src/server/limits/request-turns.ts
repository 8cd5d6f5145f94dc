// Decides when the work on a request begins. A bounded number of requests begins in one iteration of the event loop;
// the others wait, and the clients that wait take turns, so that hundreds of requests of one client delay the only
// request of another by little. Requests are refused only if too many wait: a slow machine alone refuses nobody.

import { overloadedError } from '../../common/errors.js';

/**
 * Enough requests for the engine to search in one batch, which together occupy the event loop for about 20 ms. With
 * no more requests in progress than this, every one begins at once.
 */
const STARTS_MAX = 64;

/** The share of the queue that one client may fill, so that there is room for others. */
const CLIENT_SHARE = 1 / 2;

interface RequestTurnsOptions {
  /** The number of requests that may wait. */
  readonly waitingMax: number;
  /** The number of requests that begin in one iteration. */
  readonly startsMax?: number;
  /** Calls back in the next iteration of the event loop; by default `setImmediate`. */
  readonly nextIteration?: (callback: () => void) => void;
}

export class RequestTurns {
  readonly #waitingMax: number;
  readonly #clientWaitingMax: number;
  readonly #startsMax: number;
  readonly #nextIteration: (callback: () => void) => void;
  /** What begins the waiting requests of each client; clients in the order of their turns. */
  readonly #waiting = new Map<string, Set<() => void>>();
  #waitingCount = 0;
  /** Requests that have begun in this iteration; not counted while few are in progress. */
  #startedCount = 0;
  #isScheduled = false;

  constructor({
    waitingMax,
    startsMax = STARTS_MAX,
    nextIteration = (callback) => setImmediate(callback),
  }: RequestTurnsOptions) {
    this.#waitingMax = waitingMax;
    this.#clientWaitingMax = Math.ceil(waitingMax * CLIENT_SHARE);
    this.#startsMax = startsMax;
    this.#nextIteration = nextIteration;
  }

  /** For metrics. */
  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** Throws `overloaded` if a request of the client could not wait, so that its body need not be received. */
  check(clientOf: () => string): void {
    if (this.#waitingCount >= this.#waitingMax) {
      throw overloadedError(`Too many requests are waiting (limit ${this.#waitingMax}).`);
    }
    if (this.#waitingCount < this.#clientWaitingMax) return;
    if ((this.#waiting.get(clientOf())?.size ?? 0) >= this.#clientWaitingMax) {
      throw overloadedError(
        `Too many requests of this client are waiting (limit ${this.#clientWaitingMax}, half of the total).`,
      );
    }
  }

  /** Whether a request may begin at once; if not, it has to `wait`. `inProgressCount` includes the request. */
  mayBegin(inProgressCount: number): boolean {
    if (this.#waitingCount > 0) return false;
    if (inProgressCount <= this.#startsMax) return true;
    if (this.#startedCount >= this.#startsMax) return false;
    this.#startedCount++;
    this.#schedule();
    return true;
  }

  /** Resolves when it is the turn of the request. Rejects with `overloaded` like `check`. */
  async wait(client: string): Promise<void> {
    this.check(() => client);
    await new Promise<void>((begin) => {
      const requests = this.#waiting.get(client);
      if (requests === undefined) this.#waiting.set(client, new Set([begin]));
      else requests.add(begin);
      this.#waitingCount++;
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#nextIteration(() => {
      this.#isScheduled = false;
      this.#startedCount = 0;
      while (this.#waitingCount > 0 && this.#startedCount < this.#startsMax) this.#beginNext();
      if (this.#startedCount > 0) this.#schedule();
    });
  }

  /** Begins the first request of the next client, which is then the last to have a turn again. */
  #beginNext(): void {
    const [[client, requests]] = this.#waiting as unknown as [[string, Set<() => void>]];
    const [begin] = requests as unknown as [() => void];
    requests.delete(begin);
    this.#waiting.delete(client);
    if (requests.size > 0) this.#waiting.set(client, requests);
    this.#waitingCount--;
    this.#startedCount++;
    begin();
  }
}
