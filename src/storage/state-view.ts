// Reads a state: short values from memory, records and long values from the journal files.

import { assert } from '../common/errors.js';
import { isExtent, type StoredValue } from './extent.js';
import type { JournalFiles } from './journal-files.js';
import type { LogEntry, Store, StoreKey } from './store.js';
import { decodeKey, encodeKey, nameOfKey, rangeUnder } from './store-format.js';
import type { StoreState } from './store-state.js';

type StateReads = Pick<Store, 'get' | 'list' | 'count' | 'readLog' | 'logBytes' | 'logRecordCount'>;

export class StateView implements StateReads {
  readonly #state: StoreState;
  readonly #files: Pick<JournalFiles, 'read' | 'retain'>;
  #isEnded = false;

  constructor(state: StoreState, files: Pick<JournalFiles, 'read' | 'retain'>) {
    this.#state = state;
    this.#files = files;
  }

  get(key: StoreKey): Uint8Array | undefined {
    this.#requireOpen();
    const encoded = encodeKey(key);
    const value = this.#state.values.get(encoded);
    return value && this.#read(encoded, value);
  }

  count(prefix: StoreKey): number {
    const { start, end } = rangeUnder(prefix);
    return this.#state.values.count(start, end);
  }

  *list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }> {
    this.#requireOpen();
    const { start, end } = rangeUnder(prefix);
    for (const [key, value] of this.#state.values.entries(start, end)) {
      const read = () => this.#read(key, value);
      yield {
        key: decodeKey(key),
        get value() {
          return read();
        },
      };
    }
  }

  *readLog(log: string, afterSequence: number): Iterable<LogEntry> {
    this.#requireOpen();
    const records = this.#state.logs.get(log)?.records.after(afterSequence);
    if (records === undefined) return;
    // Records stay readable even if they are trimmed during the iteration.
    const release = this.#files.retain();
    try {
      for (const { sequence, extent } of records) {
        const record = this.#files.read(extent, () => `record ${sequence} of log ${log}`);
        yield { sequence, record };
      }
    } finally {
      release();
    }
  }

  logBytes(log: string): number {
    return this.#state.logs.get(log)?.records.byteLength ?? 0;
  }

  logRecordCount(log: string): number {
    return this.#state.logs.get(log)?.records.count ?? 0;
  }

  /** Nothing can be read afterwards. */
  end(): void {
    this.#isEnded = true;
  }

  #requireOpen(): void {
    assert(!this.#isEnded, 'a state is not read after its end');
  }

  #read(key: string, value: StoredValue): Uint8Array {
    if (isExtent(value)) return this.#files.read(value, () => nameOfKey(key));
    return new Uint8Array(value);
  }
}
