// Reads a data directory or a backup for inspection and changes nothing in it. Damage is reported and skipped. A data
// directory is locked during the inspection, so that no process opens it; a backup is not.

import { constants, existsSync } from 'node:fs';
import { access, rmdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { SagittaError } from '../common/errors.js';
import type { KeptParts } from '../common/types.js';
import { BACKUP_BASE } from './backup.js';
import { type BackupMarker, digestOfFile, MARKER_FILE, readMarker } from './backup-marker.js';
import { blobNamesIn, readWholeFile, withFile } from './blob-files.js';
import { LOCK_FOLDER, lockDirectory } from './directory-lock.js';
import { type Extent, isExtent } from './extent.js';
import { JOURNAL_FOLDER, JournalFiles } from './journal-files.js';
import { missingBase, type ReportDamage, readJournal } from './journal-reader.js';
import { keptPartsOf, readPartialBlob, readPartialFile } from './partial-blob.js';
import type { LogEntry, StoreKey } from './store.js';
import { ALL_KEYS, BLOB_FOLDER, decodeKey, nameOfKey, rangeUnder } from './store-format.js';
import { describeMark, MARK_FILE, readMark } from './store-mark.js';
import type { StoreState } from './store-state.js';

export interface Finding {
  /** `note` means that nothing is lost and that the next start cleans it up. */
  readonly severity: 'error' | 'note';
  readonly where: string;
  readonly what: string;
}

export type ReportFinding = (finding: Finding) => void;

export interface InspectedLog {
  readonly recordCount: number;
  readonly trimmedThrough: number;
}

export class StoreInspection {
  readonly directory: string;
  readonly isBackup: boolean;
  /** Total size of all files. */
  readonly byteLength: number;
  readonly logs: ReadonlyMap<string, InspectedLog>;
  /** Blob sizes by name, including unfinished writes. */
  readonly blobs: ReadonlyMap<string, number>;
  readonly #state: StoreState;
  readonly #files: JournalFiles;
  readonly #release: () => Promise<void>;

  /**
   * Reads the journal and reports its damage. Throws `configuration_invalid` if the directory is not a data directory
   * or has another format, `data_directory_locked`, and `data_corrupt` if the journal contains no state.
   */
  static async open(directory: string, report: ReportFinding): Promise<StoreInspection> {
    requireDataDirectory(directory);
    const marker = await readMarker(directory);
    const release = marker === undefined ? await lockForInspection(directory) : async () => {};
    let files: JournalFiles | undefined;
    try {
      if (marker !== undefined) await compareWithMarker(directory, marker, report);
      files = await JournalFiles.open(directory);
      const state = await inspectJournal(directory, files, report);
      const blobs = await listBlobs(join(directory, BLOB_FOLDER));
      const isBackup = marker !== undefined;
      return new StoreInspection({ directory, isBackup, state, files, release, blobs });
    } catch (error) {
      files?.close();
      await release();
      throw error;
    }
  }

  private constructor(options: {
    directory: string;
    isBackup: boolean;
    state: StoreState;
    files: JournalFiles;
    release: () => Promise<void>;
    blobs: ReadonlyMap<string, number>;
  }) {
    const { state, files, blobs } = options;
    this.directory = options.directory;
    this.isBackup = options.isBackup;
    this.#state = state;
    this.#files = files;
    this.#release = options.release;
    this.blobs = blobs;
    const logs = [...state.logs].map(
      ([log, { records, trimmedThrough }]): [string, InspectedLog] => [
        log,
        { recordCount: records.count, trimmedThrough },
      ],
    );
    this.logs = new Map(logs);
    this.byteLength = [...blobs.values()].reduce((sum, size) => sum + size, files.byteLength);
  }

  /** Entries under a prefix in key order; damaged ones are left out. */
  *list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }> {
    const { start, end } = rangeUnder(prefix);
    for (const [key, stored] of this.#state.values.entries(start, end)) {
      const value = isExtent(stored) ? this.#files.readIntact(stored) : stored;
      if (value !== undefined) yield { key: decodeKey(key), value };
    }
  }

  get(key: StoreKey): Uint8Array | undefined {
    for (const entry of this.list(key)) {
      if (entry.key.length === key.length) return entry.value;
    }
    return undefined;
  }

  /** The records that a store would read; `record` is undefined if it is damaged. */
  *readLog(
    log: string,
    afterSequence: number,
  ): Iterable<{ sequence: LogEntry['sequence']; record: Uint8Array | undefined }> {
    for (const { sequence, extent } of this.#state.logs.get(log)?.records.after(afterSequence) ??
      []) {
      yield { sequence, record: this.#files.readIntact(extent) };
    }
  }

  /** Returns the whole blob in shared memory; what is not on this disk is zero. Throws errors of the system. */
  readBlob(name: string): Promise<Uint8Array> {
    return withFile(join(this.directory, BLOB_FOLDER, name), async (file) => {
      const blob = await readPartialBlob(file);
      return blob === null ? readWholeFile(file) : readPartialFile(file, blob, null);
    });
  }

  /** The parts of a blob that are on this disk; null if all of it is. Throws errors of the system. */
  keptParts(name: string): Promise<KeptParts | null> {
    return withFile(join(this.directory, BLOB_FOLDER, name), async (file) => {
      const blob = await readPartialBlob(file);
      return blob && keptPartsOf(blob);
    });
  }

  async close(): Promise<void> {
    this.#files.close();
    await this.#release();
  }
}

function requireDataDirectory(directory: string): void {
  const exists = (name: string) => existsSync(join(directory, name));
  if (exists(JOURNAL_FOLDER)) return;
  if ([MARK_FILE, BLOB_FOLDER, MARKER_FILE].some(exists)) {
    throw new SagittaError(
      'data_corrupt',
      `The folder ${JOURNAL_FOLDER} is missing in ${directory}, although it contains other files of a data directory. Restore a backup.`,
    );
  }
  throw new SagittaError(
    'configuration_invalid',
    `${directory} is neither a data directory nor a backup: it contains no folder ${JOURNAL_FOLDER}.`,
  );
}

async function compareWithMarker(
  directory: string,
  { base }: BackupMarker,
  report: ReportFinding,
): Promise<void> {
  const found = await digestOfFile(join(directory, BACKUP_BASE)).catch((error: unknown) => {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? missingBase(directory) : error;
  });
  const { byteLength, checksum } = found;
  if (byteLength === base.byteLength && checksum === base.checksum) return;
  report({
    severity: 'error',
    where: BACKUP_BASE,
    what: `has ${byteLength} bytes with checksum ${checksum}; ${MARKER_FILE} says ${base.byteLength} bytes with checksum ${base.checksum}`,
  });
}

/** A read-only file system needs no lock. */
async function lockForInspection(directory: string): Promise<() => Promise<void>> {
  const isReadOnly = await access(directory, constants.W_OK).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'EROFS',
  );
  if (isReadOnly) return async () => {};
  const folder = join(directory, LOCK_FOLDER);
  const existed = existsSync(folder);
  const lock = await lockDirectory(directory);
  return async () => {
    await lock.release();
    if (!existed) await rmdir(folder).catch(() => {});
  };
}

async function listBlobs(folder: string): Promise<Map<string, number>> {
  const blobs = new Map<string, number>();
  for (const name of await blobNamesIn(folder).catch(() => [])) {
    blobs.set(name, await byteLengthOf(join(folder, name)));
  }
  return blobs;
}

/** A file whose description is damaged has a length that no blob has. */
async function byteLengthOf(path: string): Promise<number> {
  const { size } = await stat(path);
  const blob = await withFile(path, readPartialBlob).catch(() => null);
  return blob?.byteLength ?? size;
}

async function inspectJournal(
  directory: string,
  files: JournalFiles,
  report: ReportFinding,
): Promise<StoreState> {
  const mark = await readMark(directory);
  const nameOf = (file: number) => relative(directory, files.pathOf(file));
  const reportDamage: ReportDamage = (file, what) =>
    report({ severity: 'error', where: nameOf(file), what });
  const { state, head, last, isTorn } = await readJournal(files, mark, reportDamage);
  if (isTorn) {
    const what = `at offset ${last!.offset}, the last write was not finished; it was never acknowledged`;
    report({ severity: 'note', where: nameOf(last!.file), what });
  }
  const aboutMark = describeMark(mark, head);
  if (aboutMark !== undefined) report({ severity: 'note', where: MARK_FILE, what: aboutMark });
  reportContents(state, files, reportDamage);
  return state;
}

/** Checks every record and long value against its checksum. */
function reportContents(state: StoreState, files: JournalFiles, report: ReportDamage): void {
  const check = (extent: Extent, what: string) => {
    if (files.readIntact(extent) !== undefined) return;
    report(extent.file, `${what} at offset ${extent.offset} does not match its checksum`);
  };
  for (const [log, { records }] of state.logs) {
    for (const { sequence, extent } of records.after(0)) {
      check(extent, `record ${sequence} of log ${log}`);
    }
  }
  for (const [key, value] of state.values.entries(ALL_KEYS.start, ALL_KEYS.end)) {
    if (isExtent(value)) check(value, nameOfKey(key));
  }
}
