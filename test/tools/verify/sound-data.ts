// Intact data that the tests of verification copy and damage: segments, a log, and everything else in a data directory.

import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { silentLogger } from '../../../src/common/logger.js';
import { Backups } from '../../../src/database/admin/backup.js';
import { keys } from '../../../src/database/layout/keys.js';
import type { Manifest } from '../../../src/database/layout/manifest.js';
import type { DiskStore } from '../../../src/storage/store.js';
import { batchOf, createTestClock, openDatabase } from '../../database/harness.js';
import { makeDirectory, openIn } from '../../storage/directories.js';
import { eventually } from '../../support/waiting.js';
import { dense } from '../../vector-columns.js';
import { DamagedData } from './damages.js';

const DIMENSION = 3;

export interface SoundData {
  /** A data directory. */
  readonly sound: string;
  /** Its backup. */
  readonly backup: string;
  /** The incarnation of the collection `c`. */
  readonly incarnation: string;
  readonly manifest: Manifest;
}

const rowsOf = (from: number, count: number, n: number) =>
  batchOf(
    Array.from({ length: count }, (_, i) => ({
      id: `v${from + i}`,
      values: [n, i, 1],
      metadata: `{"n":${n},"t":"x${i}"}`,
    })),
  );

export async function makeSoundData(): Promise<SoundData> {
  const sound = await makeDirectory();
  const store = (await openIn(sound)) as DiskStore;
  const database = await openDatabase({ store, clock: createTestClock() });
  for (const [id, metric] of [
    ['c', 'cosine'],
    ['empty', 'dot'],
  ] as const) {
    const vectors = { '': { ...dense(DIMENSION), metric } };
    await database.createCollection({ id, vectors, description: null, labels: {} });
  }
  // Segments hold 64 rows; the last write straddles two of them, and later writes are only in the log.
  for (let n = 1; n <= 6; n++)
    await database.collection('c').write(rowsOf(n * 30, 50, n), { mode: 'upsert' });
  await eventually('a checkpoint has the full segments', () => {
    if ([...store.list(keys.manifests)].length === 0) return false;
    const { segments, partialRowCount } = new DamagedData(store).manifest;
    return segments.length >= 3 && partialRowCount > 0;
  });
  await database.collection('c').delete({ kind: 'ids', ids: ['v31', 'v32'] }, { dryRun: false });
  await database.runIdempotent({ scope: 's', key: 'k', payloadDigest: 'd' }, async () => ({
    status: 200,
    headers: {},
    body: '{}',
  }));
  await database.apiKeys.create({ owner: 'o', scopes: ['admin'], expiresAt: null });
  await database.collection('c').write(rowsOf(1000, 30, 7), { mode: 'upsert' });
  await database.collection('c').delete({ kind: 'ids', ids: ['v33'] }, { dryRun: false });
  await database.close();
  const backup = join(await makeDirectory(), 'backup');
  await new Backups({ store, directory: null, logger: silentLogger }).createAt(backup);
  const data = new DamagedData(store);
  const incarnation = data.definition.incarnation;
  const manifest = data.manifest;
  assert.ok(manifest.segments.length >= 3);
  assert.ok(manifest.partialRowCount > 0, 'no write straddles');
  await store.close();
  return { sound, backup, incarnation, manifest };
}

export async function copyOf(directory: string): Promise<string> {
  const copy = join(await makeDirectory(), 'copy');
  await cp(directory, copy, { recursive: true, filter: (path) => !path.includes('/lock/') });
  return copy;
}
