// A pool of large buffers that are reused one after another. Memory that was touched before need not be
// mapped by the system again, and there is less garbage to collect.

/** Smaller buffers are not pooled. */
const BYTES_MIN = 256 * 1024;
/** The extra capacity of a new buffer, so that slightly longer requests fit later. */
const SPARE_SHARE = 1 / 16;

export class BufferPool {
  readonly #allocate: (byteCount: number) => ArrayBufferLike;
  readonly #countMax: number;
  readonly #bytesMax: number;
  readonly #free: ArrayBufferLike[] = [];

  /** `bytesMax`: of all buffers that are kept. */
  constructor(
    allocate: (byteCount: number) => ArrayBufferLike,
    { countMax, bytesMax = Number.POSITIVE_INFINITY }: { countMax: number; bytesMax?: number },
  ) {
    this.#allocate = allocate;
    this.#countMax = countMax;
    this.#bytesMax = bytesMax;
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

  /** Returns bytes to the pool. They must not be used afterwards. True if it dropped a large buffer. */
  release({ buffer }: Uint8Array): boolean {
    if (buffer.byteLength < BYTES_MIN) return false;
    const free = this.#free;
    free.unshift(buffer);
    const keptCount = this.#keptCount();
    const hasDropped = free.length > keptCount;
    free.length = keptCount;
    return hasDropped;
  }

  /** The oldest buffers are dropped: they may be too short for current requests. */
  #keptCount(): number {
    let byteCount = 0;
    const end = this.#free.findIndex((buffer, i) => {
      byteCount += buffer.byteLength;
      return i === this.#countMax || byteCount > this.#bytesMax;
    });
    return end === -1 ? this.#free.length : end;
  }
}
