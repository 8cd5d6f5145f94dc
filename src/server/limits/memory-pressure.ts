// Watches the memory of the process. Near its limit, the budgets admit only one large body or reply at a time, and
// unused memory is released. Unlike the budgets, which count reservations, this includes garbage and stored data.

/** The rest is for requests in progress and for garbage between two collections. */
const PRESSED_SHARE = 0.7;
/** How long a measurement, which takes about 50 µs, is valid. */
const MEASURED_MS = 100;
/** The minimum interval of garbage collections, which take tens of milliseconds. */
const RELEASED_MS = 2_000;

interface MemoryPressureOptions {
  /** The memory that the process may use, in bytes. */
  readonly memoryBytes: number;
  /** Bytes in use that the system cannot take back. */
  readonly measure: () => number;
  /** Releases unused memory. */
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
