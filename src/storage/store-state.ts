// What a store has, in memory: keyed values, and where the records of each log are. It changes by the changes that the
// journal consists of, so that a replay of the journal gives the same state as the commits did.

import { OrderedMap } from './ordered-map.js';
import { isPlace, isSamePlace, type Place, type StoredValue } from './place.js';
import { RecordList } from './record-list.js';

/** Keys are encoded, one character per byte. */
export type Change =
  | {
      readonly kind: 'append';
      readonly log: string;
      readonly sequence: number;
      readonly place: Place;
    }
  | { readonly kind: 'trim'; readonly log: string; readonly throughSequence: number }
  | { readonly kind: 'dropLog'; readonly log: string }
  /** What a log is before its records are added. */
  | { readonly kind: 'log'; readonly log: string; readonly last: number; readonly through: number }
  | { readonly kind: 'put'; readonly key: string; readonly value: StoredValue }
  | { readonly kind: 'remove'; readonly key: string }
  | { readonly kind: 'removeRange'; readonly start: string; readonly end: string };

/** A record or value that was copied. */
export interface Move {
  readonly entry: Extract<Change, { kind: 'append' | 'put' }>;
  readonly from: Place;
  readonly to: Place;
}

export interface LogState {
  /** The greatest sequence that the log ever had. */
  last: number;
  /** Records up to here are gone. */
  trimmedThrough: number;
  readonly records: RecordList;
}

export class StoreState {
  readonly values: OrderedMap<StoredValue>;
  readonly logs: Map<string, LogState>;
  /** By file: bytes of the records and values that are still referred to. */
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
        this.#append(change.log, change.sequence, change.place);
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

  /** Follows what was written at another place, unless it has been removed since. */
  move({ entry, from, to }: Move): void {
    if (entry.kind === 'append') {
      if (this.logs.get(entry.log)?.records.move(entry.sequence, from, to) !== true) return;
      this.#count(from, -1);
      this.#count(to, 1);
    } else {
      const value = this.values.get(entry.key);
      if (value === undefined || !isPlace(value) || !isSamePlace(value, from)) return;
      this.apply({ kind: 'put', key: entry.key, value: to });
    }
  }

  #append(log: string, sequence: number, place: Place): void {
    const state = this.#logOf(log);
    state.last = Math.max(state.last, sequence);
    state.records.add(sequence, place);
    this.#count(place, 1);
  }

  #trim(log: string, throughSequence: number): void {
    const state = this.logs.get(log);
    if (state === undefined) return;
    // A record that is appended later stays visible.
    const through = Math.min(throughSequence, state.last);
    if (through <= state.trimmedThrough) return;
    state.trimmedThrough = through;
    for (const place of state.records.removeThrough(through)) this.#count(place, -1);
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
    if (value === undefined || !isPlace(value)) return;
    const bytes = (this.liveBytes.get(value.file) ?? 0) + sign * weightOf(value);
    if (bytes === 0) this.liveBytes.delete(value.file);
    else this.liveBytes.set(value.file, bytes);
  }
}

/** A record without bytes still needs its file, which names its sequence. */
function weightOf({ byteLength }: Place): number {
  return byteLength + 1;
}
