// Backups of the whole service, made while it goes on: which files belong to a moment, what backups
// are called and where they lie. The copying is the store's.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SagittaError } from '../common/errors.js';
import type { Logger } from '../common/logger.js';
import { readMarker } from '../storage/backup-marker.js';
import { removeUnfinished } from '../storage/staged-folder.js';
import type { DiskStore, ListEntries } from '../storage/store.js';
import type { BackupRecord, BackupService } from './api.js';
import { type CollectionDefinition, decodeJson, type Manifest } from './collection/manifest.js';
import { keys, segmentBlobName } from './keys.js';

export const BACKUP_NAME_PATTERN = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

export interface BackupsOptions {
  readonly store: DiskStore;
  /** Where backups with a name lie, which only this service writes to; null for nowhere. */
  readonly directory: string | null;
  readonly logger: Logger;
}

export class Backups implements BackupService {
  readonly #options: BackupsOptions;
  #isMaking = false;

  constructor(options: BackupsOptions) {
    this.#options = options;
  }

  async create(name: string = nameOf(new Date())): Promise<BackupRecord> {
    const directory = this.#requireDirectory();
    if (!BACKUP_NAME_PATTERN.test(name)) {
      throw new SagittaError(
        'invalid_request',
        `The name of a backup matches ${BACKUP_NAME_PATTERN.source}; found ${JSON.stringify(name)}.`,
      );
    }
    // Only one is made at a time, so whatever is unfinished is what a process left that died.
    if (!this.#isMaking) await removeUnfinished(directory);
    const made = await this.#make(join(directory, name)).catch((error: unknown) => {
      if (!(error instanceof SagittaError) || error.code !== 'backup_exists') throw error;
      // Over the network nobody needs to know where it lies.
      throw new SagittaError('backup_exists', `There is a backup with the name "${name}".`);
    });
    return { name, ...made };
  }

  async createAt(folder: string): Promise<Omit<BackupRecord, 'name'>> {
    try {
      return await this.#make(folder);
    } catch (error) {
      // Of the operating system: who named the folder can do something about it.
      if (!(error instanceof Error) || !('syscall' in error)) throw error;
      throw new SagittaError(
        'invalid_request',
        `The backup cannot be made in ${folder}: ${error.message}.`,
        { cause: error },
      );
    }
  }

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
    this.#isMaking = true;
    try {
      const { createdAt, byteLength, collectionCount } = await store.backup(folder, chooseBlobs);
      const milliseconds = Math.round(performance.now() - startedAt);
      logger.info({ folder, byteLength, collectionCount, milliseconds }, 'backup made');
      return { createdAt, byteLength, collectionCount };
    } finally {
      this.#isMaking = false;
    }
  }

  /** Undefined for a folder that is no backup, or one that cannot be read: `sagitta verify` says why. */
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
      'No place for backups is configured: set SAGITTA_BACKUP_DIR, or run "sagitta backup --to DIR" on the machine of the service.',
    );
  }
}

/** Entries read between two turns of the event loop. */
const TURN_ENTRIES = 256;

/** The segment files of every collection that there was. Throws `collection_unavailable`. */
export async function chooseBlobs(
  list: ListEntries,
): Promise<{ blobNames: string[]; collectionCount: number }> {
  const incarnations = new Set<string>();
  const blobNames: string[] = [];
  let entryCount = 0;
  const rest = async () => {
    if (++entryCount % TURN_ENTRIES === 0) await new Promise((resolve) => setImmediate(resolve));
  };
  for (const { key, value } of list(keys.collections)) {
    const what = `The catalogue's entry of collection "${key[1]}"`;
    incarnations.add(decode<CollectionDefinition>(value, what).incarnation);
    await rest();
  }
  for (const { key, value } of list(keys.manifests)) {
    const incarnation = key[1]!;
    if (!incarnations.has(incarnation)) continue;
    const { segments } = decode<Manifest>(value, `The manifest of incarnation ${incarnation}`);
    for (const { number } of segments) blobNames.push(segmentBlobName(incarnation, number));
    await rest();
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
      `A copy of what cannot be read is no backup: ${error.message} Delete that collection to make backups of the others.`,
      { cause: error },
    );
  }
}

/** `2026-11-21T08-00-00-000Z`: in the order of time, and a name on every file system. */
function nameOf(time: Date): string {
  return time.toISOString().replace(/[:.]/g, '-');
}
