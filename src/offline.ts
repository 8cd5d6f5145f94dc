// The composition root for commands that work on a data directory without a server: the store and the
// services that need nothing else. The directory lock keeps such a command and a server apart.

import { systemClock } from './common/clock.js';
import { silentLogger } from './common/logger.js';
import { ApiKeys } from './database/api-keys.js';
import { type BackupRecord, Backups } from './database/backup.js';
import { apiKeyInput, apiKeyMembers } from './server/key-members.js';
import { requireRestorable, restoreBackup } from './storage/backup.js';
import { openLmdbStore } from './storage/lmdb-store.js';
import type { DiskStore } from './storage/store.js';
import { StoreInspection } from './storage/store-inspection.js';
import { verifyStore } from './tools/verify/verify.js';
import { Findings, type VerifyReport } from './tools/verify/verify-report.js';

/**
 * Opens the directory and closes it after `work`. If it is missing it is created, and removed when `work`
 * fails. Throws what `openLmdbStore` throws, such as `data_directory_locked`.
 */
export async function withDataDirectory<Result>(
  directory: string,
  work: (store: DiskStore) => Promise<Result>,
): Promise<Result> {
  const store = await openLmdbStore({ directory });
  let result: Result;
  try {
    result = await work(store);
  } catch (error) {
    await store.closeAndRemoveIfNew();
    throw error;
  }
  await store.close();
  return result;
}

/** Opens the API keys of a directory for `work`. Throws also `data_corrupt`. */
export function withApiKeys<Result>(
  directory: string,
  work: (apiKeys: ApiKeys) => Promise<Result>,
): Promise<Result> {
  return withDataDirectory(directory, (store) => work(new ApiKeys({ store, clock: systemClock })));
}

/** Makes a backup of an existing directory. */
export function backupDirectory(
  directory: string,
  folder: string,
): Promise<Omit<BackupRecord, 'name'>> {
  return withDataDirectory(directory, (store) =>
    new Backups({ store, directory: null, logger: silentLogger }).createAt(folder),
  );
}

/** Verifies a data directory or a backup, and changes nothing. Throws when it cannot be opened. */
export async function verifyDirectory(
  directory: string,
  onProgress?: (rowCount: number, share: number) => void,
): Promise<VerifyReport> {
  const findings = new Findings();
  const inspection = await StoreInspection.open(directory, findings.report);
  try {
    await verifyStore(inspection, findings, onProgress);
    return findings.toReport(inspection);
  } finally {
    await inspection.close();
  }
}

export type { VerifyReport };
export { apiKeyInput, apiKeyMembers, requireRestorable, restoreBackup };
