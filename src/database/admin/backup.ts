// Backs up the whole service while it runs: selects the files of a snapshot, and names and lists backups. The
// store does the copying.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { backupInProgress } from '../../storage/backup.js';
import { readMarker } from '../../storage/backup-marker.js';
import { removeUnfinished } from '../../storage/staged-folder.js';
import type { DiskStore, ListEntries } from '../../storage/store.js';
import { keys, segmentBlobName } from '../layout/keys.js';
import {
  type AddedFile,
  type CollectionDefinition,
  decodeJson,
  type Manifest,
} from '../layout/manifest.js';

export const BACKUP_NAME_PATTERN = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

export interface BackupsOptions {
  readonly store: DiskStore;
  /** The directory of named backups, which only this service writes to; null if none is configured. */
  readonly directory: string | null;
  readonly logger: Logger;
}

export interface BackupRecord {
  readonly name: string;
  /** The time of the snapshot. ISO 8601, UTC. */
  readonly createdAt: string;
  readonly byteLength: number;
  readonly collectionCount: number;
}

/** The operations of `Backups`, without its private state. */
export type BackupService = Pick<Backups, 'isConfigured' | 'create' | 'createAt' | 'list'>;

/** Makes one backup at a time; a second one throws `overloaded`. */
export class Backups {
  readonly #options: BackupsOptions;
  #isMaking = false;

  constructor(options: BackupsOptions) {
    this.#options = options;
  }

  /** Whether there is a directory of named backups, which `create` and `list` need. */
  get isConfigured(): boolean {
    return this.#options.directory !== null;
  }

  /**
   * Makes a backup in the configured directory, by default named after the time. It contains everything
   * that was acknowledged before the call. Throws `backups_not_configured`, `backup_exists`, `storage_full` and
   * `backup_failed`, and then leaves nothing behind.
   */
  async create(name: string = nameOf(new Date())): Promise<BackupRecord> {
    const directory = this.#requireDirectory();
    if (!BACKUP_NAME_PATTERN.test(name)) {
      throw new SagittaError(
        'invalid_request',
        `The name of a backup matches ${BACKUP_NAME_PATTERN.source}; found ${JSON.stringify(name)}.`,
      );
    }
    const made = await this.#alone(async () => {
      // One backup is made at a time, so that an unfinished one was left by a process that died.
      await removeUnfinished(directory);
      return this.#make(join(directory, name));
    }).catch((error: unknown) => {
      const systemError = systemErrorOf(error);
      if (systemError !== null) {
        this.#options.logger.error({ err: error, backup: name }, 'backup failed');
        throw new SagittaError(
          'backup_failed',
          `The operating system reported ${systemError} while the backup was made; the incomplete backup was removed. Check the disks and the permissions of the data directory and of the directory of backups (the log of the server has the details), and make the backup again.`,
          { cause: error },
        );
      }
      if (!(error instanceof SagittaError) || error.code !== 'backup_exists') throw error;
      // Clients are not shown the path.
      throw new SagittaError('backup_exists', `There is a backup with the name "${name}".`);
    });
    return { name, ...made };
  }

  /** Makes a backup in any folder, for callers who may write to the file system anyway. */
  async createAt(folder: string): Promise<Omit<BackupRecord, 'name'>> {
    try {
      return await this.#alone(() => this.#make(folder));
    } catch (error) {
      // The caller chose the folder and can resolve errors of the operating system.
      if (!(error instanceof Error) || !('syscall' in error)) throw error;
      throw new SagittaError(
        'invalid_request',
        `The backup cannot be made in ${folder}: ${error.message}.`,
        { cause: error },
      );
    }
  }

  /** All backups in the order of their names. Throws `backups_not_configured`. */
  async list(): Promise<BackupRecord[]> {
    const directory = this.#requireDirectory();
    const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    const records: BackupRecord[] = [];
    for (const name of names.filter((found) => BACKUP_NAME_PATTERN.test(found)).sort()) {
      const record = await this.#read(directory, name);
      if (record !== undefined) records.push(record);
    }
    return records;
  }

  async #make(folder: string): Promise<Omit<BackupRecord, 'name'>> {
    const { store, logger } = this.#options;
    const startedAt = performance.now();
    const { createdAt, byteLength, collectionCount } = await store.backup(folder, chooseBlobs);
    const milliseconds = Math.round(performance.now() - startedAt);
    logger.info({ folder, byteLength, collectionCount, milliseconds }, 'backup made');
    return { createdAt, byteLength, collectionCount };
  }

  /** Includes the removal of unfinished backups, which would remove the folder of a backup in progress. */
  async #alone<Result>(make: () => Promise<Result>): Promise<Result> {
    if (this.#isMaking) throw backupInProgress();
    this.#isMaking = true;
    try {
      return await make();
    } finally {
      this.#isMaking = false;
    }
  }

  /** Undefined for a folder that is not a backup or cannot be read; `sagitta verify` finds the reason. */
  async #read(directory: string, name: string): Promise<BackupRecord | undefined> {
    try {
      const marker = await readMarker(join(directory, name));
      if (marker === undefined) return undefined;
      const { createdAt, byteLength, collectionCount } = marker;
      return { name, createdAt, byteLength, collectionCount };
    } catch (error) {
      this.#options.logger.warn({ err: error, backup: name }, 'a backup cannot be read');
      return undefined;
    }
  }

  #requireDirectory(): string {
    const { directory } = this.#options;
    if (directory !== null) return directory;
    throw new SagittaError(
      'backups_not_configured',
      'No directory for backups is configured. Set SAGITTA_BACKUP_DIR, or run "sagitta backup --to DIR" on the host of the service.',
    );
  }
}

/** Entries read between two yields to the event loop. */
const YIELD_ENTRIES = 256;

/** Chooses the segment files of every collection in the snapshot. Throws `collection_unavailable`. */
async function chooseBlobs(
  list: ListEntries,
): Promise<{ blobNames: string[]; collectionCount: number }> {
  const incarnations = new Set<string>();
  const blobNames: string[] = [];
  let entryCount = 0;
  const yieldSometimes = async () => {
    if (++entryCount % YIELD_ENTRIES === 0) await new Promise((resolve) => setImmediate(resolve));
  };
  for (const { key, value } of list(keys.collections)) {
    const what = `The catalogue's entry of collection "${key[1]}"`;
    incarnations.add(decode<CollectionDefinition>(value, what).incarnation);
    await yieldSometimes();
  }
  for (const { key, value } of list(keys.manifests)) {
    const incarnation = key[1]!;
    if (!incarnations.has(incarnation)) continue;
    const { segments } = decode<Manifest>(value, `The manifest of incarnation ${incarnation}`);
    for (const { number } of segments) blobNames.push(segmentBlobName(incarnation, number));
    await yieldSometimes();
  }
  for (const { key, value } of list(keys.allAddedFiles)) {
    const incarnation = key[1]!;
    if (!incarnations.has(incarnation)) continue;
    const what = `The entry of an added file of incarnation ${incarnation}`;
    blobNames.push(segmentBlobName(incarnation, decode<AddedFile>(value, what).number));
    await yieldSometimes();
  }
  return { blobNames, collectionCount: incarnations.size };
}

function decode<T extends { readonly formatVersion: number }>(value: Uint8Array, what: string): T {
  try {
    return decodeJson<T>(value, what);
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    throw new SagittaError(
      'collection_unavailable',
      `The backup was not made because a collection cannot be read: ${error.message} Delete that collection to back up the others.`,
      { cause: error },
    );
  }
}

/** A name such as `2026-11-21T08-00-00-000Z`, which sorts by time and is a valid file name everywhere. */
function nameOf(time: Date): string {
  return time.toISOString().replace(/[:.]/g, '-');
}

/** The name of an error of the operating system, such as EIO; null for other errors. */
function systemErrorOf(error: unknown): string | null {
  if (!(error instanceof Error) || error instanceof SagittaError) return null;
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && 'syscall' in error ? code : null;
}
