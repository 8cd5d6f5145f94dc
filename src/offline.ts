// The composition root for commands that work on a data directory without a server: the store and the services that
// need nothing else. The directory lock prevents such a command and a server from running at the same time.

import { completeFrom, newestCatalogue } from './cluster/snapshots/merge-backups.js';
import { systemClock } from './common/clock.js';
import { SagittaError } from './common/errors.js';
import { silentLogger } from './common/logger.js';
import { ApiKeys } from './database/admin/api-keys.js';
import { type BackupRecord, Backups } from './database/admin/backup.js';
import { Database } from './database/database.js';
import { apiKeyInput, apiKeyMembers } from './server/replies/key-members.js';
import { requireRestorable, restoreBackup } from './storage/backup.js';
import { openStore } from './storage/open-store.js';
import type { DiskStore } from './storage/store.js';
import { StoreInspection } from './storage/store-inspection.js';
import { verifyStore } from './tools/verify/verify.js';
import { Findings, type VerifyReport } from './tools/verify/verify-report.js';

/**
 * Opens the directory and closes it after `work`. A missing directory is created, and removed if `work` fails. Throws
 * the errors of `openStore`, such as `data_directory_locked`.
 */
export async function withDataDirectory<Result>(
  directory: string,
  work: (store: DiskStore) => Promise<Result>,
): Promise<Result> {
  const store = await openStore({ directory });
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

/** Opens the API keys of a directory for `work`. Throws like `withDataDirectory`, and `data_corrupt`. */
export function withApiKeys<Result>(
  directory: string,
  work: (apiKeys: ApiKeys) => Promise<Result>,
): Promise<Result> {
  return withDataDirectory(directory, (store) => work(new ApiKeys({ store, clock: systemClock })));
}

/** Creates a backup of an existing directory. */
export function backupDirectory(
  directory: string,
  folder: string,
): Promise<Omit<BackupRecord, 'name'>> {
  return withDataDirectory(directory, (store) =>
    new Backups({ store, directory: null, logger: silentLogger }).createAt(folder),
  );
}

/** Verifies a data directory or a backup and changes nothing in it. Throws if it cannot be opened. */
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

export interface RestoredBackups {
  readonly byteLength: number;
  /** Collections whose data was taken from a backup other than the first, by id. */
  readonly added: readonly { readonly id: string; readonly backup: string }[];
  /** Ids of collections whose rows are in none of the backups. */
  readonly missing: readonly string[];
}

/** Throws `data_corrupt` if the tables are damaged, because data that cannot be read would be missing silently. */
async function openIntact(backup: string): Promise<StoreInspection> {
  const damage: string[] = [];
  const inspection = await StoreInspection.open(backup, ({ severity, where, what }) => {
    if (severity === 'error') damage.push(`${where}: ${what}`);
  });
  if (damage.length === 0) return inspection;
  await inspection.close();
  throw new SagittaError(
    'data_corrupt',
    `${backup} is damaged (${damage[0]}) and cannot be restored together with others. Leave it out; what no other backup contains is then missing.`,
  );
}

/** Makes a data directory from a backup, or from the backups of all nodes of a cluster. Throws like `restoreBackup`. */
export async function restoreBackups(
  backups: readonly string[],
  directory: string,
): Promise<RestoredBackups> {
  // A single backup is copied as it is, even if it is damaged.
  if (backups.length === 1) {
    return { ...(await restoreBackup(backups[0]!, directory)), added: [], missing: [] };
  }
  const opened: StoreInspection[] = [];
  try {
    for (const backup of backups) opened.push(await openIntact(backup));
    const layout = Database.storeLayout;
    const first = newestCatalogue(opened, layout);
    const others = opened.filter((_, i) => i !== first);
    let found: Omit<RestoredBackups, 'byteLength'> = { added: [], missing: [] };
    const { byteLength } = await restoreBackup(backups[first]!, directory, (staging) =>
      withDataDirectory(staging, async (store) => {
        const collections = Database.collectionsIn(store);
        const incarnations = collections.map(({ incarnation }) => incarnation);
        const completion = await completeFrom(store, others, layout, incarnations);
        const { added, missing } = completion;
        const idOf = (wanted: string) =>
          collections.find(({ incarnation }) => incarnation === wanted)!.id;
        found = {
          added: added.map(({ incarnation, backup }) => ({ id: idOf(incarnation), backup })),
          missing: missing.map(idOf),
        };
        return completion.byteLength;
      }),
    );
    return { byteLength, ...found };
  } finally {
    for (const inspection of opened) await inspection.close();
  }
}

export type { VerifyReport };
export { apiKeyInput, apiKeyMembers, requireRestorable };
