// Large buffers that one piece of work after the other uses, where each would have had its own: what
// was touched before need not be given by the system again, and the collector has nothing to look for.

/** Smaller ones cost less than they take to keep. */
const BYTES_MIN = 256 * 1024;
/** A little more than what was asked for, so that the next one, which may be longer, fits as well. */
const SPARE_SHARE = 1 / 16;

export class ReusedBytes {
  readonly #allocate: (byteCount: number) => ArrayBufferLike;
  readonly #countMax: number;
  readonly #free: ArrayBufferLike[] = [];

  constructor(allocate: (byteCount: number) => ArrayBufferLike, options: { countMax: number }) {
    this.#allocate = allocate;
    this.#countMax = options.countMax;
  }

  /** At the start of its buffer, which may be longer. What is in it is undefined. */
  take(byteCount: number): Uint8Array {
    if (byteCount < BYTES_MIN) return new Uint8Array(this.#allocate(byteCount), 0, byteCount);
    const fits = this.#free.findIndex((buffer) => buffer.byteLength >= byteCount);
    const [buffer] =
      fits === -1
        ? [this.#allocate(Math.ceil(byteCount * (1 + SPARE_SHARE)))]
        : this.#free.splice(fits, 1);
    return new Uint8Array(buffer!, 0, byteCount);
  }

  /** Nobody may read or write it any more. */
  giveBack({ buffer }: Uint8Array): void {
    if (buffer.byteLength < BYTES_MIN) return;
    this.#free.unshift(buffer);
    // The oldest may be too short for what comes now.
    this.#free.length = Math.min(this.#free.length, this.#countMax);
  }
}
