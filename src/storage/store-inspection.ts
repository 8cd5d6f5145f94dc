// Reads a data directory or a backup for inspection, and changes nothing in it. Damage is reported and
// skipped. A data directory is locked meanwhile, since a process might open it; a backup is not.

import { constants } from 'node:fs';
import { access, open, readdir, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SagittaError } from '../common/errors.js';
import { digestOfFile, MARKER_FILE, readMarker } from './backup-marker.js';
import { readWholeBlob } from './blob-files.js';
import { LOCK_FOLDER, lockDirectory } from './directory-lock.js';
import { LmdbPages } from './lmdb-pages.js';
import { splitRecord } from './log-chain.js';
import type { LogEntry, StoreKey } from './store.js';
import { type CheckedTables, checkTables, openPageEntry } from './store-check.js';
import {
  BLOB_FOLDER,
  DROPPED,
  decodeKey,
  FORMAT_VERSION,
  type KeyRange,
  otherFormat,
  rangeUnder,
  recordRange,
  STORE_FILE,
  sequenceOf,
} from './store-format.js';
import { compareMark, MARK_FILE, readMark } from './store-mark.js';

export interface Finding {
  /** `note`: nothing is lost, and the next start cleans it up. */
  readonly severity: 'error' | 'note';
  readonly where: string;
  readonly what: string;
}

export type ReportFinding = (finding: Finding) => void;

export interface InspectedLog {
  readonly recordCount: number;
  /** Infinity when the log was dropped. */
  readonly trimmedThrough: number;
}

export class StoreInspection {
  readonly directory: string;
  readonly isBackup: boolean;
  /** The size of all files. */
  readonly byteLength: number;
  /** By name; logs whose records are about to be removed are included. */
  readonly logs: ReadonlyMap<string, InspectedLog>;
  /** Lengths by name, those of unfinished writes included. */
  readonly blobs: ReadonlyMap<string, number>;
  readonly #pages: LmdbPages;
  readonly #release: () => Promise<void>;

  /**
   * Checks the file of tables and reports its damage. Throws `configuration_invalid` if it is not a data
   * directory or has another format, `data_directory_locked`, and `data_corrupt` when nothing in the
   * file can be read.
   */
  static async open(directory: string, report: ReportFinding): Promise<StoreInspection> {
    await requireDataDirectory(directory);
    const marker = await readMarker(directory);
    const release = marker === undefined ? await lockForInspection(directory) : async () => {};
    let pages: LmdbPages | undefined;
    try {
      const path = join(directory, STORE_FILE);
      if (marker !== undefined) {
        const { byteLength, checksum } = await digestOfFile(path);
        const { storeFile } = marker;
        if (byteLength !== storeFile.byteLength || checksum !== storeFile.checksum) {
          report({
            severity: 'error',
            where: STORE_FILE,
            what: `has ${byteLength} bytes with checksum ${checksum}; ${MARKER_FILE} says ${storeFile.byteLength} bytes with checksum ${storeFile.checksum}`,
          });
        }
      }
      pages = LmdbPages.open(path);
      const blobs = await listBlobs(join(directory, BLOB_FOLDER));
      const tables = inspectTables(pages, report);
      checkFormat(directory, tables, report);
      await checkMark(directory, tables, report);
      return new StoreInspection({
        directory,
        isBackup: marker !== undefined,
        pages,
        release,
        blobs,
        tables,
      });
    } catch (error) {
      pages?.close();
      await release();
      throw error;
    }
  }

  private constructor(options: {
    directory: string;
    isBackup: boolean;
    pages: LmdbPages;
    release: () => Promise<void>;
    blobs: ReadonlyMap<string, number>;
    tables: CheckedTables;
  }) {
    this.directory = options.directory;
    this.isBackup = options.isBackup;
    this.#pages = options.pages;
    this.#release = options.release;
    this.blobs = options.blobs;
    this.logs = inspectedLogs(options.tables);
    let byteLength = options.pages.byteLength;
    for (const bytes of options.blobs.values()) byteLength += bytes;
    this.byteLength = byteLength;
  }

  /** The entries under a prefix in key order, without damaged ones. */
  *list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }> {
    for (const entry of this.#pages.entries('values', rangeUnder(prefix))) {
      const opened = openPageEntry('values', entry);
      if (opened !== undefined) yield { key: decodeKey(entry.key), value: opened.value };
    }
  }

  get(key: StoreKey): Uint8Array | undefined {
    for (const entry of this.list(key)) {
      if (entry.key.length === key.length) return entry.value;
    }
    return undefined;
  }

  /** The records that a store would read; `record` is undefined where it is damaged. */
  *readLog(
    log: string,
    afterSequence: number,
  ): Iterable<{ sequence: LogEntry['sequence']; record: Uint8Array | undefined }> {
    const first = Math.max(afterSequence, this.logs.get(log)?.trimmedThrough ?? 0) + 1;
    if (!Number.isSafeInteger(first)) return;
    const range: KeyRange = recordRange(log, first, DROPPED - 1);
    for (const entry of this.#pages.entries('records', range)) {
      const opened = openPageEntry('records', entry);
      const record = opened && splitRecord(opened.value)?.record;
      yield { sequence: sequenceOf(entry.key), record };
    }
  }

  /** The whole blob, in shared memory. Throws errors of the system. */
  async readBlob(name: string): Promise<Uint8Array> {
    const file = await open(join(this.directory, BLOB_FOLDER, name), 'r');
    try {
      return await readWholeBlob(file);
    } finally {
      await file.close();
    }
  }

  async close(): Promise<void> {
    this.#pages.close();
    await this.#release();
  }
}

async function requireDataDirectory(directory: string): Promise<void> {
  const found = await stat(join(directory, STORE_FILE)).catch(() => undefined);
  if (found?.isFile() === true) return;
  const others = [MARK_FILE, BLOB_FOLDER, MARKER_FILE].map((name) => stat(join(directory, name)));
  if ((await Promise.allSettled(others)).some(({ status }) => status === 'fulfilled')) {
    throw new SagittaError(
      'data_corrupt',
      `The file ${STORE_FILE} is missing in ${directory}, but other files of a data directory are there. Restore a backup.`,
    );
  }
  throw new SagittaError(
    'configuration_invalid',
    `${directory} is neither a data directory nor a backup: it has no ${STORE_FILE}.`,
  );
}

/** A read-only file system needs no lock. */
async function lockForInspection(directory: string): Promise<() => Promise<void>> {
  const isReadOnly = await access(directory, constants.W_OK).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'EROFS',
  );
  if (isReadOnly) return async () => {};
  const folder = join(directory, LOCK_FOLDER);
  const wasThere = await stat(folder).then(
    () => true,
    () => false,
  );
  const lock = await lockDirectory(directory);
  return async () => {
    await lock.release();
    if (!wasThere) await rmdir(folder).catch(() => {});
  };
}

async function listBlobs(folder: string): Promise<Map<string, number>> {
  const blobs = new Map<string, number>();
  const folders = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const { name } of folders.filter((entry) => entry.isDirectory())) {
    for (const file of await readdir(join(folder, name))) {
      blobs.set(`${name}/${file}`, (await stat(join(folder, name, file))).size);
    }
  }
  return blobs;
}

function inspectTables(pages: LmdbPages, report: ReportFinding): CheckedTables {
  const tables = checkTables(
    pages,
    (place, what) => {
      const where = place === '' ? STORE_FILE : `${STORE_FILE}, ${place}`;
      report({ severity: 'error', where, what });
    },
    { withRecords: true },
  );
  if (pages.missingBytes > 0) {
    const what = `its last ${pages.missingBytes} bytes are missing; if only free pages were there, nothing is lost`;
    report({ severity: 'note', where: STORE_FILE, what });
  }
  if (tables.lostPageCount !== 0) {
    const what = `${tables.lostPageCount} pages are neither used nor free; only space is lost`;
    report({ severity: 'note', where: STORE_FILE, what });
  }
  return tables;
}

function inspectedLogs({ logs }: CheckedTables): Map<string, InspectedLog> {
  const inspected = new Map<string, InspectedLog>();
  for (const [name, { recordCount, trimmedThrough }] of logs) {
    const through = trimmedThrough === DROPPED ? Number.POSITIVE_INFINITY : trimmedThrough;
    inspected.set(name, { recordCount, trimmedThrough: through });
  }
  return inspected;
}

function checkFormat(
  directory: string,
  { formatVersion, isEmpty }: CheckedTables,
  report: ReportFinding,
): void {
  if (formatVersion === undefined) {
    const what = 'the format version is missing';
    report({ severity: isEmpty ? 'note' : 'error', where: STORE_FILE, what });
  } else if (Number(formatVersion) !== FORMAT_VERSION) {
    throw otherFormat(directory, formatVersion);
  }
}

async function checkMark(
  directory: string,
  { head }: CheckedTables,
  report: ReportFinding,
): Promise<void> {
  if (head === undefined) return;
  const { kind, what } = compareMark(await readMark(directory), head);
  if (kind === 'lost') report({ severity: 'error', where: STORE_FILE, what });
  else if (kind !== 'equal') report({ severity: 'note', where: MARK_FILE, what });
}
