// The state of each log that a store keeps in memory: its last sequence, how far it is trimmed, whether it
// was dropped, and the bytes of the records appended or read since the store was opened. Changes are
// applied once they are on disk.

export type LogChange =
  | {
      readonly kind: 'append';
      readonly log: string;
      readonly sequence: number;
      readonly byteLength: number;
    }
  | { readonly kind: 'trim'; readonly log: string; readonly throughSequence: number }
  | { readonly kind: 'dropLog'; readonly log: string };

interface LogState {
  lastSequence: number;
  trimmedThrough: number;
  /** By sequence, of the records counted in `byteLength`. */
  byteLengths: Map<number, number>;
  byteLength: number;
}

export class LogRegistry {
  readonly #states = new Map<string, LogState>();
  readonly #dropped = new Set<string>();

  /** Registers a log with its state on disk. */
  enter(log: string, lastSequence: number, trimmedThrough: number): void {
    this.#states.set(log, {
      lastSequence: Math.max(lastSequence, trimmedThrough),
      trimmedThrough,
      byteLengths: new Map(),
      byteLength: 0,
    });
  }

  has(log: string): boolean {
    return this.#states.has(log);
  }

  isDropped(log: string): boolean {
    return this.#dropped.has(log);
  }

  /** The greatest sequence the log ever had; 0 when it had none. */
  lastSequenceOf(log: string): number {
    return this.#states.get(log)?.lastSequence ?? 0;
  }

  trimmedThrough(log: string): number {
    return this.#states.get(log)?.trimmedThrough ?? 0;
  }

  byteLengthOf(log: string): number {
    return this.#states.get(log)?.byteLength ?? 0;
  }

  apply(change: LogChange): void {
    switch (change.kind) {
      case 'append':
        this.count(change.log, change.sequence, change.byteLength);
        break;
      case 'trim':
        this.#trim(change.log, change.throughSequence);
        break;
      case 'dropLog':
        this.#states.delete(change.log);
        this.#dropped.add(change.log);
        break;
    }
  }

  /** Counts a record that was appended or read, once however often it is read. */
  count(log: string, sequence: number, byteLength: number): void {
    if (!this.#states.has(log)) this.enter(log, 0, 0);
    const state = this.#states.get(log)!;
    state.lastSequence = Math.max(state.lastSequence, sequence);
    if (sequence <= state.trimmedThrough || state.byteLengths.has(sequence)) return;
    state.byteLengths.set(sequence, byteLength);
    state.byteLength += byteLength;
  }

  #trim(log: string, throughSequence: number): void {
    const state = this.#states.get(log);
    if (state === undefined || throughSequence <= state.trimmedThrough) return;
    state.trimmedThrough = throughSequence;
    const counted = state.byteLengths;
    state.byteLengths = new Map();
    state.byteLength = 0;
    for (const [sequence, byteLength] of counted) this.count(log, sequence, byteLength);
  }
}
