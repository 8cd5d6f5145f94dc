// Turns commits into the puts and removals of one transaction. Commits are validated here, before
// anything is written, so that an invalid one leaves nothing behind and the others of its group go on.

import { assert } from '../common/errors.js';
import type { LogChange, LogRegistry } from './log-registry.js';
import type { StoreOperation } from './store.js';
import {
  DROPPED,
  encodeKey,
  encodeRecordKey,
  encodeTrim,
  type KeyRange,
  rangeUnder,
  type TableName,
} from './store-format.js';

/** Puts `value`, or removes the entry when it is undefined. */
export interface PlannedWrite {
  readonly table: TableName;
  readonly key: Buffer;
  /** Not in shared memory. Owned by the caller of `commit`, who does not change it until that settles. */
  readonly value: Uint8Array | undefined;
}

export class CommitPlan {
  /** In order: of several writes of a key the last one counts. */
  readonly writes: PlannedWrite[] = [];
  /** For `LogRegistry.apply` once the writes are on disk. */
  readonly changes: LogChange[] = [];
  readonly #logs: LogRegistry;
  readonly #storedKeysIn: (range: KeyRange) => Iterable<Buffer>;
  /** Of the logs that this plan appends to or drops, and of those that it trims. */
  readonly #lastSequences = new Map<string, number>();
  readonly #trimmedThrough = new Map<string, number>();

  constructor(logs: LogRegistry, storedKeysIn: (range: KeyRange) => Iterable<Buffer>) {
    this.#logs = logs;
    this.#storedKeysIn = storedKeysIn;
  }

  /** Adds a commit as a whole; when it throws, nothing was added. */
  add(operations: readonly StoreOperation[]): void {
    const writeCount = this.writes.length;
    const changeCount = this.changes.length;
    try {
      for (const operation of operations) this.#plan(operation);
    } catch (error) {
      this.writes.length = writeCount;
      this.changes.length = changeCount;
      this.#lastSequences.clear();
      this.#trimmedThrough.clear();
      for (const change of this.changes) this.#follow(change);
      throw error;
    }
  }

  #plan(operation: StoreOperation): void {
    switch (operation.kind) {
      case 'append':
        this.#append(operation.log, operation.sequence, operation.record);
        break;
      case 'trim':
        this.#trim(operation.log, operation.throughSequence);
        break;
      case 'dropLog':
        this.#write('trims', encodeKey([operation.log]), encodeTrim(DROPPED));
        this.#change({ kind: 'dropLog', log: operation.log });
        break;
      case 'put':
        this.#write('values', encodeKey(operation.key), operation.value);
        break;
      case 'remove':
        this.#write('values', encodeKey(operation.key), undefined);
        break;
      case 'removeUnder':
        this.#removeUnder(rangeUnder(operation.prefix));
        break;
    }
  }

  #append(log: string, sequence: number, record: Uint8Array): void {
    const last = this.#lastSequenceOf(log);
    assert(last !== DROPPED, `log ${log} was dropped and its name cannot be used again`);
    assert(
      Number.isSafeInteger(sequence) && sequence > last && sequence < DROPPED,
      `the next sequence of log ${log} must be greater than ${last}, found ${sequence}`,
    );
    this.#write('records', encodeRecordKey(log, sequence), record);
    this.#change({ kind: 'append', log, sequence, byteLength: record.byteLength });
  }

  #trim(log: string, throughSequence: number): void {
    const last = this.#lastSequenceOf(log);
    // Only existing records are trimmed: a record appended later must stay visible.
    const through = Math.min(throughSequence, last);
    const before = this.#trimmedThrough.get(log) ?? this.#logs.trimmedThrough(log);
    if (last === DROPPED || through <= before) return;
    this.#write('trims', encodeKey([log]), encodeTrim(through));
    this.#change({ kind: 'trim', log, throughSequence: through });
  }

  /** Removes keys that are on disk and keys that this plan puts. */
  #removeUnder(range: KeyRange): void {
    const planned = this.writes
      .filter(({ table, value }) => table === 'values' && value !== undefined)
      .map(({ key }) => key)
      .filter((key) => range.start.compare(key) <= 0 && key.compare(range.end) < 0);
    for (const key of this.#storedKeysIn(range)) this.#write('values', key, undefined);
    for (const key of planned) this.#write('values', key, undefined);
  }

  #write(table: TableName, key: Buffer, value: Uint8Array | undefined): void {
    this.writes.push({ table, key, value: value && unshare(value) });
  }

  #change(change: LogChange): void {
    this.changes.push(change);
    this.#follow(change);
  }

  #follow(change: LogChange): void {
    const { kind, log } = change;
    if (kind === 'append') this.#lastSequences.set(log, change.sequence);
    else if (kind === 'trim') this.#trimmedThrough.set(log, change.throughSequence);
    else this.#lastSequences.set(log, DROPPED);
  }

  #lastSequenceOf(log: string): number {
    if (this.#logs.isDropped(log)) return DROPPED;
    return this.#lastSequences.get(log) ?? this.#logs.lastSequenceOf(log);
  }
}

/** On Node 20 lmdb reads past the end of shared memory and crashes. */
function unshare(bytes: Uint8Array): Uint8Array {
  return bytes.buffer instanceof SharedArrayBuffer ? new Uint8Array(bytes) : bytes;
}
