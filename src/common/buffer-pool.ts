// A pool of large buffers that are reused one after another. Memory that was touched before need not be
// mapped by the system again, and there is less garbage to collect.

/** Smaller buffers are not pooled. */
const BYTES_MIN = 256 * 1024;
/** The extra capacity of a new buffer, so that slightly longer requests fit later. */
const SPARE_SHARE = 1 / 16;

export class BufferPool {
  readonly #allocate: (byteCount: number) => ArrayBufferLike;
  readonly #countMax: number;
  readonly #free: ArrayBufferLike[] = [];

  constructor(allocate: (byteCount: number) => ArrayBufferLike, options: { countMax: number }) {
    this.#allocate = allocate;
    this.#countMax = options.countMax;
  }

  /** Returns bytes at the start of a buffer, which may be longer. Their contents are undefined. */
  acquire(byteCount: number): Uint8Array {
    if (byteCount < BYTES_MIN) return new Uint8Array(this.#allocate(byteCount), 0, byteCount);
    const fits = this.#free.findIndex((buffer) => buffer.byteLength >= byteCount);
    const [buffer] =
      fits === -1
        ? [this.#allocate(Math.ceil(byteCount * (1 + SPARE_SHARE)))]
        : this.#free.splice(fits, 1);
    return new Uint8Array(buffer!, 0, byteCount);
  }

  /** Returns bytes to the pool. They must not be used afterwards. */
  release({ buffer }: Uint8Array): void {
    if (buffer.byteLength < BYTES_MIN) return;
    this.#free.unshift(buffer);
    // Drop the oldest buffers, which may be too short for current requests.
    this.#free.length = Math.min(this.#free.length, this.#countMax);
  }
}
