// The state of a store in memory: keyed values, and where the records of each log are. It changes only through the
// entries of the journal, so replaying the journal yields the same state.

import { type Extent, isExtent, isSameExtent, type StoredValue } from './extent.js';
import { OrderedMap } from './ordered-map.js';
import { RecordList } from './record-list.js';

/** Keys are encoded with one byte per character. */
export type Change =
  | {
      readonly kind: 'append';
      readonly log: string;
      readonly sequence: number;
      readonly extent: Extent;
    }
  | { readonly kind: 'trim'; readonly log: string; readonly throughSequence: number }
  | { readonly kind: 'dropLog'; readonly log: string }
  /** The properties of a log in a base, before its records are added. */
  | { readonly kind: 'log'; readonly log: string; readonly last: number; readonly through: number }
  | { readonly kind: 'put'; readonly key: string; readonly value: StoredValue }
  | { readonly kind: 'remove'; readonly key: string }
  | { readonly kind: 'removeRange'; readonly start: string; readonly end: string };

/** A record or value that was copied to another extent. */
export interface Move {
  readonly entry: Extract<Change, { kind: 'append' | 'put' }>;
  readonly from: Extent;
  readonly to: Extent;
}

export interface LogState {
  /** The greatest sequence that was ever appended. */
  last: number;
  /** Records up to this sequence were removed. */
  trimmedThrough: number;
  readonly records: RecordList;
}

export class StoreState {
  readonly values: OrderedMap<StoredValue>;
  readonly logs: Map<string, LogState>;
  /** Bytes of the records and values in use, by file. */
  readonly liveBytes: Map<number, number>;

  constructor(source?: StoreState) {
    this.values = new OrderedMap(source?.values);
    this.liveBytes = new Map(source?.liveBytes);
    this.logs = new Map();
    for (const [name, { last, trimmedThrough, records }] of source?.logs ?? []) {
      this.logs.set(name, { last, trimmedThrough, records: new RecordList(records) });
    }
  }

  lastOf(log: string): number {
    return this.logs.get(log)?.last ?? 0;
  }

  apply(change: Change): void {
    switch (change.kind) {
      case 'append':
        this.#append(change.log, change.sequence, change.extent);
        break;
      case 'trim':
        this.#trim(change.log, change.throughSequence);
        break;
      case 'dropLog':
        this.#trim(change.log, Number.POSITIVE_INFINITY);
        this.logs.delete(change.log);
        break;
      case 'log':
        this.#logOf(change.log).last = change.last;
        this.#logOf(change.log).trimmedThrough = change.through;
        break;
      case 'put':
        this.#count(change.value, 1);
        this.#count(this.values.set(change.key, change.value), -1);
        break;
      case 'remove':
        this.#count(this.values.delete(change.key), -1);
        break;
      case 'removeRange':
        for (const [key] of [...this.values.entries(change.start, change.end)]) {
          this.#count(this.values.delete(key), -1);
        }
        break;
    }
  }

  /** Refers to the new extent, unless the record or value was removed meanwhile. */
  move({ entry, from, to }: Move): void {
    if (entry.kind === 'append') {
      if (this.logs.get(entry.log)?.records.move(entry.sequence, from, to) !== true) return;
      this.#count(from, -1);
      this.#count(to, 1);
    } else {
      const value = this.values.get(entry.key);
      if (value === undefined || !isExtent(value) || !isSameExtent(value, from)) return;
      this.apply({ kind: 'put', key: entry.key, value: to });
    }
  }

  #append(log: string, sequence: number, extent: Extent): void {
    const state = this.#logOf(log);
    state.last = Math.max(state.last, sequence);
    state.records.add(sequence, extent);
    this.#count(extent, 1);
  }

  #trim(log: string, throughSequence: number): void {
    const state = this.logs.get(log);
    if (state === undefined) return;
    // Trimming beyond the end must not hide records that are appended later.
    const through = Math.min(throughSequence, state.last);
    if (through <= state.trimmedThrough) return;
    state.trimmedThrough = through;
    for (const extent of state.records.removeThrough(through)) this.#count(extent, -1);
  }

  #logOf(log: string): LogState {
    let state = this.logs.get(log);
    if (state === undefined) {
      state = { last: 0, trimmedThrough: 0, records: new RecordList() };
      this.logs.set(log, state);
    }
    return state;
  }

  #count(value: StoredValue | undefined, sign: 1 | -1): void {
    if (value === undefined || !isExtent(value)) return;
    const bytes = (this.liveBytes.get(value.file) ?? 0) + sign * weightOf(value);
    if (bytes === 0) this.liveBytes.delete(value.file);
    else this.liveBytes.set(value.file, bytes);
  }
}

/** Even an empty record needs its file, which holds its sequence. */
function weightOf({ byteLength }: Extent): number {
  return byteLength + 1;
}
