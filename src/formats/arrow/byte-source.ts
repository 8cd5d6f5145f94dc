// Takes a given count of bytes after the other from a source of chunks, which is asked for no more
// than is needed. Says how many bytes it holds.

export class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #onHeld: (byteCount: number) => void;
  #chunk: Uint8Array = new Uint8Array(0);
  #held = 0;
  #isOver = false;

  constructor(source: AsyncIterable<Uint8Array>, onHeld: (byteCount: number) => void) {
    this.#chunks = source[Symbol.asyncIterator]();
    this.#onHeld = onHeld;
  }

  /**
   * Fills `target`, with the one copy there is, and returns how many bytes there were: fewer only at
   * the end. What was taken still counts as held, until it is released.
   */
  async readInto(target: Uint8Array): Promise<number> {
    let filled = 0;
    while (filled < target.length) {
      if (this.#chunk.length === 0 && !(await this.#next())) break;
      const part = this.#chunk.subarray(0, target.length - filled);
      target.set(part, filled);
      filled += part.length;
      this.#chunk = this.#chunk.subarray(part.length);
    }
    return filled;
  }

  /** Holds no more what was taken; the owner counts from here on. */
  release(byteCount: number): void {
    this.#hold(-byteCount);
  }

  /** Tells the source that nobody goes on reading. */
  async close(): Promise<void> {
    this.#isOver = true;
    this.#chunk = new Uint8Array(0);
    this.#hold(-this.#held);
    await this.#chunks.return?.();
  }

  async #next(): Promise<boolean> {
    while (!this.#isOver && this.#chunk.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done === true) {
        this.#isOver = true;
      } else {
        this.#chunk = value;
        this.#hold(value.length);
      }
    }
    return this.#chunk.length > 0;
  }

  #hold(change: number): void {
    if (change === 0) return;
    this.#held += change;
    this.#onHeld(this.#held);
  }
}
