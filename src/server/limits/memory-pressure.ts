// Watches the memory of the process. Near its limit the budgets of bodies and replies shrink to one large
// one at a time, and memory that is no longer used is given back. The budgets count only what is reserved
// beforehand; garbage, and what the stored data takes, are seen here.

/** Near the limit: what is left is for requests in progress, and for garbage between two collections. */
const PRESSED_SHARE = 0.7;
/** How long a measurement is used. It takes some 50 µs. */
const MEASURED_MS = 100;
/** Collecting garbage takes tens of milliseconds: not more often than this. */
const RELEASED_MS = 2_000;

interface MemoryPressureOptions {
  /** The memory that the process may use, in bytes. */
  readonly memoryBytes: number;
  /** Bytes in use that the system cannot take back. */
  readonly measure: () => number;
  /** Gives back what is no longer used. */
  readonly release: () => void;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

export class MemoryPressure {
  readonly #options: MemoryPressureOptions;
  readonly #pressedBytes: number;
  #isPressed = false;
  #measuredAtMs = Number.NEGATIVE_INFINITY;
  #releasedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: MemoryPressureOptions) {
    this.#options = options;
    this.#pressedBytes = options.memoryBytes * PRESSED_SHARE;
  }

  /** Whether the process is near the limit of its memory. Cheap. */
  get isPressed(): boolean {
    const { measure, nowMs } = this.#options;
    const now = nowMs();
    if (now - this.#measuredAtMs < MEASURED_MS) return this.#isPressed;
    this.#measuredAtMs = now;
    this.#isPressed = measure() >= this.#pressedBytes;
    if (this.#isPressed) this.#releaseAt(now);
    return this.#isPressed;
  }

  #releaseAt(now: number): void {
    if (now - this.#releasedAtMs < RELEASED_MS) return;
    this.#releasedAtMs = now;
    this.#options.release();
  }
}
