// Turns commits into the puts and removals of one transaction. Commits are validated here, before
// anything is written, so that an invalid one leaves nothing behind and the others of its group go on.

import { assert } from '../common/errors.js';
import { type ChainLink, encodeLink, encodeStoredLog, linkAfter } from './log-chain.js';
import type { LogChange, LogRegistry } from './log-registry.js';
import { type SealedValue, sealValue } from './sealed-entry.js';
import type { StoreOperation } from './store.js';
import {
  DROPPED,
  encodeKey,
  encodeRecordKey,
  type KeyRange,
  rangeUnder,
  type TableName,
} from './store-format.js';

/** Puts `value`, or removes the entry when it is undefined. */
export interface PlannedWrite {
  readonly table: TableName;
  readonly key: Buffer;
  readonly value: SealedValue | undefined;
}

export class CommitPlan {
  readonly #writes: PlannedWrite[] = [];
  /** For `LogRegistry.apply` once the writes are on disk. */
  readonly changes: LogChange[] = [];
  readonly #logs: LogRegistry;
  readonly #storedKeysIn: (range: KeyRange) => Iterable<Buffer>;
  /** Of the logs that this plan appends to, and of those that it trims or drops. */
  readonly #lasts = new Map<string, ChainLink>();
  readonly #trimmedThrough = new Map<string, number>();

  constructor(logs: LogRegistry, storedKeysIn: (range: KeyRange) => Iterable<Buffer>) {
    this.#logs = logs;
    this.#storedKeysIn = storedKeysIn;
  }

  /** Adds a commit as a whole; when it throws, nothing was added. */
  add(operations: readonly StoreOperation[]): void {
    const writeCount = this.#writes.length;
    const changeCount = this.changes.length;
    try {
      for (const operation of operations) this.#plan(operation);
    } catch (error) {
      this.#writes.length = writeCount;
      this.changes.length = changeCount;
      this.#lasts.clear();
      this.#trimmedThrough.clear();
      for (const change of this.changes) this.#follow(change);
      throw error;
    }
  }

  /** In order: of several writes of a key the last one counts. */
  get writes(): PlannedWrite[] {
    return [...this.#writes, ...this.#writesOfLogs()];
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
        this.#change({ kind: 'dropLog', log: operation.log });
        break;
      case 'put':
        this.#put('values', encodeKey(operation.key), [operation.value]);
        break;
      case 'remove':
        this.#remove('values', encodeKey(operation.key));
        break;
      case 'removeUnder':
        this.#removeUnder(rangeUnder(operation.prefix));
        break;
    }
  }

  #append(log: string, sequence: number, record: Uint8Array): void {
    const isDropped = this.#trimmedThroughOf(log) === DROPPED;
    assert(!isDropped, `log ${log} was dropped and its name cannot be used again`);
    const last = this.#lastOf(log);
    assert(
      Number.isSafeInteger(sequence) && sequence > last.sequence && sequence < DROPPED,
      `the next sequence of log ${log} must be greater than ${last.sequence}, found ${sequence}`,
    );
    const key = encodeRecordKey(log, sequence);
    const { checksum } = this.#put('records', key, [record, encodeLink(last)]);
    const link = linkAfter(last, sequence, checksum);
    this.#change({ kind: 'append', log, link, byteLength: record.byteLength });
  }

  #trim(log: string, throughSequence: number): void {
    // Only existing records are trimmed: a record appended later must stay visible.
    const through = Math.min(throughSequence, this.#lastOf(log).sequence);
    if (through <= this.#trimmedThroughOf(log)) return;
    this.#change({ kind: 'trim', log, throughSequence: through });
  }

  /** Removes keys that are on disk and keys that this plan puts. */
  #removeUnder(range: KeyRange): void {
    const planned = this.#writes
      .filter(({ table, value }) => table === 'values' && value !== undefined)
      .map(({ key }) => key)
      .filter((key) => range.start.compare(key) <= 0 && key.compare(range.end) < 0);
    for (const key of this.#storedKeysIn(range)) this.#remove('values', key);
    for (const key of planned) this.#remove('values', key);
  }

  #put(table: TableName, key: Buffer, parts: readonly Uint8Array[]): SealedValue {
    const value = sealValue(table, key, parts);
    this.#writes.push({ table, key, value });
    return value;
  }

  #remove(table: TableName, key: Buffer): void {
    this.#writes.push({ table, key, value: undefined });
  }

  /** One per log, however many records the plan has. */
  *#writesOfLogs(): Iterable<PlannedWrite> {
    for (const log of new Set([...this.#lasts.keys(), ...this.#trimmedThrough.keys()])) {
      const key = encodeKey([log]);
      const last = this.#lastOf(log);
      const value = encodeStoredLog({ last, trimmedThrough: this.#trimmedThroughOf(log) });
      yield { table: 'logs', key, value: sealValue('logs', key, [value]) };
    }
  }

  #change(change: LogChange): void {
    this.changes.push(change);
    this.#follow(change);
  }

  #follow(change: LogChange): void {
    const { kind, log } = change;
    if (kind === 'append') this.#lasts.set(log, change.link);
    else this.#trimmedThrough.set(log, kind === 'trim' ? change.throughSequence : DROPPED);
  }

  #lastOf(log: string): ChainLink {
    return this.#lasts.get(log) ?? this.#logs.lastOf(log);
  }

  #trimmedThroughOf(log: string): number {
    return this.#trimmedThrough.get(log) ?? this.#logs.trimmedThrough(log);
  }
}
