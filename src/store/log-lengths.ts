// How many bytes each log holds, kept beside the store: record lengths in order, so that a trim
// knows what it takes away without reading it.

interface Lengths {
  sequences: number[];
  byteLengths: number[];
  total: number;
}

export class LogLengths {
  readonly #logs = new Map<string, Lengths>();

  bytesOf(log: string): number {
    return this.#logs.get(log)?.total ?? 0;
  }

  /** Records that are known already are passed over: a log may be read more than once. */
  add(log: string, sequence: number, byteLength: number): void {
    let lengths = this.#logs.get(log);
    if (lengths === undefined) {
      lengths = { sequences: [], byteLengths: [], total: 0 };
      this.#logs.set(log, lengths);
    }
    if (sequence <= (lengths.sequences.at(-1) ?? 0)) return;
    lengths.sequences.push(sequence);
    lengths.byteLengths.push(byteLength);
    lengths.total += byteLength;
  }

  trim(log: string, throughSequence: number): void {
    const lengths = this.#logs.get(log);
    if (lengths === undefined) return;
    const kept = lengths.sequences.findIndex((sequence) => sequence > throughSequence);
    const goneCount = kept < 0 ? lengths.sequences.length : kept;
    for (let i = 0; i < goneCount; i++) lengths.total -= lengths.byteLengths[i]!;
    lengths.sequences = lengths.sequences.slice(goneCount);
    lengths.byteLengths = lengths.byteLengths.slice(goneCount);
  }

  drop(log: string): void {
    this.#logs.delete(log);
  }
}
