// The state of each log that a store keeps in memory: the link to its last record, how far it is trimmed, whether it
// was dropped, and the bytes of the records appended or read since the store was opened. Changes are
// applied once they are on disk.

import { CHAIN_START, type ChainLink, type StoredLog } from './log-chain.js';
import { DROPPED } from './store-format.js';

export type LogChange =
  | {
      readonly kind: 'append';
      readonly log: string;
      /** To the record. */
      readonly link: ChainLink;
      readonly byteLength: number;
    }
  | { readonly kind: 'trim'; readonly log: string; readonly throughSequence: number }
  | { readonly kind: 'dropLog'; readonly log: string };

interface LogState {
  last: ChainLink;
  trimmedThrough: number;
  /** By sequence, of the records counted in `byteLength`. */
  byteLengths: Map<number, number>;
  byteLength: number;
}

export class LogRegistry {
  readonly #states = new Map<string, LogState>();
  readonly #dropped = new Set<string>();

  /** Registers a log with its state on disk. */
  enter(log: string, { last, trimmedThrough }: StoredLog): void {
    if (trimmedThrough === DROPPED) {
      this.#drop(log);
      return;
    }
    this.#states.set(log, {
      last,
      trimmedThrough,
      byteLengths: new Map(),
      byteLength: 0,
    });
  }

  isDropped(log: string): boolean {
    return this.#dropped.has(log);
  }

  /** The record with the greatest sequence that the log ever had. */
  lastOf(log: string): ChainLink {
    return this.#states.get(log)?.last ?? CHAIN_START;
  }

  /** `DROPPED` for a dropped log. */
  trimmedThrough(log: string): number {
    return this.#dropped.has(log) ? DROPPED : (this.#states.get(log)?.trimmedThrough ?? 0);
  }

  byteLengthOf(log: string): number {
    return this.#states.get(log)?.byteLength ?? 0;
  }

  apply(change: LogChange): void {
    switch (change.kind) {
      case 'append':
        this.#append(change.log, change.link, change.byteLength);
        break;
      case 'trim':
        this.#trim(change.log, change.throughSequence);
        break;
      case 'dropLog':
        this.#drop(change.log);
        break;
    }
  }

  /** Counts a record that was appended or read, once however often it is read. */
  count(log: string, sequence: number, byteLength: number): void {
    const state = this.#states.get(log);
    if (state === undefined || sequence <= state.trimmedThrough || state.byteLengths.has(sequence))
      return;
    state.byteLengths.set(sequence, byteLength);
    state.byteLength += byteLength;
  }

  /** Of a log that was dropped and of which nothing is left: its name can be used again. */
  forget(log: string): void {
    this.#dropped.delete(log);
  }

  #append(log: string, link: ChainLink, byteLength: number): void {
    if (!this.#states.has(log)) this.enter(log, { last: CHAIN_START, trimmedThrough: 0 });
    this.#states.get(log)!.last = link;
    this.count(log, link.sequence, byteLength);
  }

  #drop(log: string): void {
    this.#states.delete(log);
    this.#dropped.add(log);
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
