// A pool of large reusable buffers. The system need not map memory again that is reused, and there is less garbage to
// collect.

/** Smaller buffers are not pooled. */
const BYTES_MIN = 256 * 1024;
/** Extra capacity of a new buffer, so that slightly longer requests fit later. */
const SPARE_SHARE = 1 / 16;

export class BufferPool {
  readonly #allocate: (byteCount: number) => ArrayBufferLike;
  readonly #countMax: number;
  readonly #bytesMax: number;
  readonly #free: ArrayBufferLike[] = [];

  /** @param options `bytesMax` bounds the total size of the buffers that are kept. */
  constructor(
    allocate: (byteCount: number) => ArrayBufferLike,
    { countMax, bytesMax = Number.POSITIVE_INFINITY }: { countMax: number; bytesMax?: number },
  ) {
    this.#allocate = allocate;
    this.#countMax = countMax;
    this.#bytesMax = bytesMax;
  }

  /** Returns bytes at the start of a buffer, which may be longer. The contents are undefined. */
  acquire(byteCount: number): Uint8Array {
    if (byteCount < BYTES_MIN) return new Uint8Array(this.#allocate(byteCount), 0, byteCount);
    const fitting = this.#findShortest(byteCount);
    const [buffer] =
      fitting === -1
        ? [this.#allocate(Math.ceil(byteCount * (1 + SPARE_SHARE)))]
        : this.#free.splice(fitting, 1);
    return new Uint8Array(buffer!, 0, byteCount);
  }

  /**
   * Returns the index of the shortest buffer that is long enough, which leaves longer ones for longer requests; -1 for
   * none.
   */
  #findShortest(byteCount: number): number {
    const free = this.#free;
    let shortest = -1;
    for (let i = 0; i < free.length; i++) {
      const { byteLength } = free[i]!;
      if (byteLength < byteCount) continue;
      if (shortest === -1 || byteLength < free[shortest]!.byteLength) shortest = i;
    }
    return shortest;
  }

  /**
   * Returns bytes to the pool; they must not be used afterwards. Returns the total size of the buffers that the pool
   * drops in exchange.
   */
  release({ buffer }: Uint8Array): number {
    if (buffer.byteLength < BYTES_MIN) return 0;
    this.#free.unshift(buffer);
    const dropped = this.#free.splice(this.#keptCount());
    return dropped.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Drops the buffers that are currently unused. */
  drop(): void {
    this.#free.length = 0;
  }

  /** The oldest buffers are dropped first, since they may be too short for current requests. */
  #keptCount(): number {
    let byteCount = 0;
    const end = this.#free.findIndex((buffer, i) => {
      byteCount += buffer.byteLength;
      return i === this.#countMax || byteCount > this.#bytesMax;
    });
    return end === -1 ? this.#free.length : end;
  }
}
