// Recognises threads that read a file in sequence, so that the blocks that follow are fetched before they are read. Blocks
// that were fetched ahead raise no request, except one in the middle of each window: it tells that the reader has come
// this far, while there is still time to fetch more.

/** Sequences of one file that are followed at the same time: a search reads a few arrays of a segment side by side. */
const STREAM_COUNT_MAX = 8;

interface Stream {
  /** The block after the last one that was requested. */
  next: number;
  /** The first block that was not fetched ahead yet. */
  end: number;
  /** Number of blocks to fetch ahead; it doubles with every request. */
  window: number;
}

export interface BlocksAhead {
  /** Blocks to fetch now, without the end. */
  readonly from: number;
  readonly to: number;
  /** The block whose request continues the sequence. */
  readonly marker: number;
}

export class ReadAhead {
  readonly #windowMax: number;
  /** The most recently used one comes last. */
  readonly #streams: Stream[] = [];

  constructor(windowMax: number) {
    this.#windowMax = windowMax;
  }

  /** To be called for every request. Returns null unless the request continues a sequence. */
  next(block: number): BlocksAhead | null {
    const at = this.#streams.findIndex(({ next, end }) => block >= next && block <= end);
    if (at < 0) {
      this.#streams.push({ next: block + 1, end: block + 1, window: 1 });
      if (this.#streams.length > STREAM_COUNT_MAX) this.#streams.shift();
      return null;
    }
    const [stream] = this.#streams.splice(at, 1) as [Stream];
    this.#streams.push(stream);
    stream.window = Math.min(2 * stream.window, this.#windowMax);
    stream.next = block + 1;
    const from = Math.max(stream.end, stream.next);
    const to = stream.next + stream.window;
    stream.end = Math.max(from, to);
    return { from, to, marker: block + Math.max(1, stream.window >> 1) };
  }
}
