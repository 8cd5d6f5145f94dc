// Takes bytes from a stream by count. A record that lies in one chunk is not copied.

export class ByteReader {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #pieces: Uint8Array[] = [];
  #held = 0;
  #isDone = false;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#iterator = chunks[Symbol.asyncIterator]();
  }

  /** `count` bytes, or fewer at the end. The caller must not write into them. */
  async take(count: number): Promise<Uint8Array> {
    while (this.#held < count && !this.#isDone) {
      const next = await this.#iterator.next();
      if (next.done) this.#isDone = true;
      else if (next.value.length > 0) {
        this.#pieces.push(next.value);
        this.#held += next.value.length;
      }
    }
    const first = this.#pieces[0];
    if (first === undefined) return new Uint8Array(0);
    const whole = first.length >= count || this.#pieces.length === 1 ? first : this.#join();
    const taken = whole.subarray(0, count);
    this.#held -= taken.length;
    if (taken.length === whole.length) this.#pieces.shift();
    else this.#pieces[0] = whole.subarray(taken.length);
    return taken;
  }

  async close(): Promise<void> {
    await this.#iterator.return?.();
  }

  #join(): Uint8Array {
    const whole = Buffer.concat(this.#pieces);
    this.#pieces = [whole];
    return whole;
  }
}
