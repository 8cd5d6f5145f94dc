// Checks the tables of a file without lmdb, which trusts its pages and crashes on some damage: the structure of
// the pages, the checksum of every entry, the head over all entries and, when asked to, the chains of the logs.
// It runs at every start and in `sagitta verify`.

import type { LmdbPages, PageEntry } from './lmdb-pages.js';
import {
  CHAIN_START,
  ChainReader,
  decodeStoredLog,
  type StoredLog,
  splitRecord,
} from './log-chain.js';
import { type OpenedValue, openValue } from './sealed-entry.js';
import {
  DROPPED,
  decodeKey,
  FORMAT_KEY,
  FORMAT_VERSION,
  logOf,
  recordRange,
  SEQUENCE_BYTES,
  sequenceOf,
  type TableName,
} from './store-format.js';
import { decodeHead, HEAD_KEY, isCounted, type StoreHead } from './store-head.js';

export interface CheckedTables {
  /** As stored; undefined when it is missing. */
  readonly formatVersion: string | undefined;
  /** Undefined when it is missing or damaged. */
  readonly head: StoreHead | undefined;
  readonly logs: ReadonlyMap<string, CheckedLog>;
  /** Whether there are no entries but those of `meta`. */
  readonly isEmpty: boolean;
  /** Pages that are neither used nor free. */
  readonly lostPageCount: number;
}

interface CheckedLog extends StoredLog {
  /** Those that are trimmed and not removed yet are included. */
  readonly recordCount: number;
}

/** `where` is a place in the file; empty for the file as a whole. */
export type ReportDamage = (where: string, what: string) => void;

/** What stands for the entry of a log that has none. */
const UNKNOWN_LOG: StoredLog = { last: CHAIN_START, trimmedThrough: 0 };

/** What is wrong is reported; never throws for it. */
export function checkTables(
  pages: LmdbPages,
  report: ReportDamage,
  options: { readonly withRecords: boolean },
): CheckedTables {
  return new TableCheck(pages, report).run(options);
}

/** The value of an entry; undefined when it is damaged. */
export function openPageEntry(
  table: TableName,
  { key, value }: PageEntry,
): OpenedValue | undefined {
  const bytes = value();
  return bytes && openValue(table, key, bytes);
}

/** After `check` or `readTables`; undefined when it is missing or damaged. */
export function headOf(pages: LmdbPages): StoreHead | undefined {
  const entry = metaEntry(pages, HEAD_KEY);
  const opened = entry && openPageEntry('meta', entry);
  return opened && decodeHead(opened.value);
}

function metaEntry(pages: LmdbPages, key: Buffer): PageEntry | undefined {
  const end = Buffer.concat([key, Buffer.of(0)]);
  const [entry] = pages.entries('meta', { start: key, end });
  return entry;
}

function nameOf(key: Buffer): string {
  return JSON.stringify(decodeKey(key).join('/'));
}

class TableCheck {
  readonly #pages: LmdbPages;
  readonly #report: ReportDamage;
  readonly #storedLogs = new Map<string, StoredLog>();
  readonly #recordCounts = new Map<string, number>();
  /** The name of a log in a key, without the sequence, and its records: neighbours have the same. */
  #neighbours: { readonly prefix: Buffer; readonly log: string; count: number } | undefined;
  #formatVersion: string | undefined;
  #head: StoreHead | undefined;
  #entryCount = 0;
  #checksumSum = 0;
  #isEmpty = true;

  constructor(pages: LmdbPages, report: ReportDamage) {
    this.#pages = pages;
    this.#report = report;
  }

  run({ withRecords }: { withRecords: boolean }): CheckedTables {
    let isFormatRead = false;
    const lostPageCount = this.#pages.check(this.#report, (table, entry) => {
      // From here on the tables are known.
      if (!isFormatRead)
        this.#formatVersion = metaEntry(this.#pages, FORMAT_KEY)?.value()?.toString();
      isFormatRead = true;
      if (table !== 'meta') this.#isEmpty = false;
      if (table === 'records') this.#countRecord(entry.key);
      else if (this.#isKnownFormat) this.#checkEntry(table, entry);
    });
    this.#countNeighbours();
    if (this.#isKnownFormat) {
      this.#checkHead();
      if (withRecords) this.#checkChains();
    }
    const logs = new Map<string, CheckedLog>();
    for (const name of new Set([...this.#storedLogs.keys(), ...this.#recordCounts.keys()])) {
      const stored = this.#storedLogs.get(name) ?? UNKNOWN_LOG;
      logs.set(name, { ...stored, recordCount: this.#recordCounts.get(name) ?? 0 });
    }
    return {
      formatVersion: this.#formatVersion,
      head: this.#head,
      logs,
      isEmpty: this.#isEmpty,
      lostPageCount,
    };
  }

  /** Whether the format is ours; of another one, only what lmdb follows is checked. */
  get #isKnownFormat(): boolean {
    return Number(this.#formatVersion) === FORMAT_VERSION;
  }

  #countRecord(key: Buffer): void {
    const prefix = key.subarray(0, Math.max(0, key.byteLength - SEQUENCE_BYTES));
    if (this.#neighbours?.prefix.equals(prefix) === true) {
      this.#neighbours.count++;
      return;
    }
    this.#countNeighbours();
    const log = logOf(key);
    if (log === undefined) {
      this.#report('table records', `a key of ${key.byteLength} bytes is not that of a record`);
    } else this.#neighbours = { prefix, log, count: 1 };
  }

  #countNeighbours(): void {
    if (this.#neighbours === undefined) return;
    const { log, count } = this.#neighbours;
    this.#recordCounts.set(log, (this.#recordCounts.get(log) ?? 0) + count);
    this.#neighbours = undefined;
  }

  #checkEntry(table: string, entry: PageEntry): void {
    const { key } = entry;
    if (table === 'meta' && key.equals(FORMAT_KEY)) return;
    if (table !== 'meta' && table !== 'values' && table !== 'logs') {
      this.#report(`table ${table}`, 'is not a table of this format');
      return;
    }
    const opened = openPageEntry(table, entry);
    if (opened === undefined) {
      this.#report(`table ${table}`, `the entry ${nameOf(key)} does not have its checksum`);
      return;
    }
    if (isCounted(table)) {
      this.#entryCount++;
      this.#checksumSum = (this.#checksumSum + opened.checksum) >>> 0;
    }
    if (table === 'meta' && key.equals(HEAD_KEY)) this.#head = decodeHead(opened.value);
    if (table === 'logs') {
      const stored = decodeStoredLog(opened.value);
      if (stored !== undefined) this.#storedLogs.set(decodeKey(key)[0]!, stored);
      else this.#report('table logs', `the entry ${nameOf(key)} cannot be read`);
    }
  }

  #checkHead(): void {
    const head = this.#head;
    if (head === undefined) {
      this.#report('table meta', 'the head of the tables is missing or damaged');
    } else if (head.entryCount !== this.#entryCount) {
      this.#report(
        '',
        `the tables have ${this.#entryCount} intact entries, but commit ${head.number} left ${head.entryCount}: entries are missing or were brought back`,
      );
    } else if (head.checksumSum !== this.#checksumSum) {
      this.#report(
        '',
        `the entries of the tables are not those that commit ${head.number} left: some are older ones`,
      );
    }
  }

  #checkChains(): void {
    for (const [log, count] of this.#recordCounts) {
      if (this.#storedLogs.has(log)) continue;
      this.#report('table logs', `the entry of log ${log}, which has ${count} records, is missing`);
    }
    for (const [log, stored] of this.#storedLogs) {
      if (stored.trimmedThrough !== DROPPED) this.#checkChain(log, stored);
    }
  }

  #checkChain(log: string, stored: StoredLog): void {
    const where = `log ${log}`;
    const report = (what: string | undefined) => {
      if (what !== undefined) this.#report(where, what);
    };
    let chain = new ChainReader(stored, stored.trimmedThrough);
    const range = recordRange(log, stored.trimmedThrough + 1, DROPPED - 1);
    for (const entry of this.#pages.entries('records', range)) {
      const sequence = sequenceOf(entry.key);
      if (sequence > stored.last.sequence) {
        report(`record ${sequence} is after the last one, ${stored.last.sequence}`);
        continue;
      }
      const opened = openPageEntry('records', entry);
      const split = opened && splitRecord(opened.value);
      if (opened === undefined || split === undefined) {
        report(`record ${sequence} does not have its checksum`);
        // The next record is the first one of which the predecessor is not known.
        chain = new ChainReader(stored, sequence);
      } else report(chain.accept(sequence, split.previous, opened.checksum));
    }
    report(chain.end());
  }
}
