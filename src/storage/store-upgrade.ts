// Writes a file of tables of the first format, which had no checksums, in the format of this version: into a
// new file, which then takes the place of the old one at once. An attempt that was interrupted is repeated.

import { randomBytes } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { PlannedWrite } from './commit-plan.js';
import { requireFreeSpace, syncFile, syncFolder } from './disk.js';
import { commitTo, openEnvironment } from './lmdb-environment.js';
import { LmdbPages } from './lmdb-pages.js';
import {
  CHAIN_START,
  type ChainLink,
  encodeLink,
  encodeStoredLog,
  linkAfter,
} from './log-chain.js';
import { sealValue } from './sealed-entry.js';
import {
  DROPPED,
  decodeKey,
  decodeTrim,
  encodeKey,
  FORMAT_KEY,
  FORMAT_VERSION,
  logOf,
  sequenceOf,
} from './store-format.js';
import { firstHead, headAfter, type StoreHead, writeOfHead } from './store-head.js';

/** Bound on one transaction. */
const BATCH_BYTES_MAX = 16 * 1024 * 1024;
/** Checksums and links need a little more than the old file. */
const EXTRA_BYTES = 16 * 1024 * 1024;

/**
 * The pages of the file were checked before, and nobody has it open. Returns the head of the new tables. Throws
 * `storage_full` and errors of the system; the old file is then unchanged.
 */
export async function upgradeTables(path: string): Promise<StoreHead> {
  const newPath = `${path}.upgrade`;
  await removeFiles(newPath);
  const pages = LmdbPages.open(path);
  let head = firstHead(randomBytes(16));
  try {
    requireFreeSpace(dirname(path), Math.ceil(1.25 * pages.byteLength) + EXTRA_BYTES);
    pages.readTables();
    const environment = await openEnvironment(newPath);
    const { root, tables } = environment;
    try {
      for (const writes of batchesOf(sealedEntries(pages))) {
        head = headAfter(head, writes, () => undefined);
        const all = [...writes, writeOfHead(head)];
        await commitTo(environment, () => {
          for (const { table, key, value } of all) tables[table].put(key, value!.bytes);
        });
      }
      await commitTo(environment, () => {
        const { key, value } = writeOfHead(head);
        tables.meta.put(key, value!.bytes);
        tables.meta.put(FORMAT_KEY, Buffer.from(String(FORMAT_VERSION)));
      });
    } finally {
      await root.close();
    }
    await syncFile(newPath);
    // Before the rename, after which no start would look for it.
    await rm(`${newPath}-lock`, { force: true });
    await rename(newPath, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await removeFiles(newPath);
    throw error;
  } finally {
    pages.close();
  }
  return head;
}

async function removeFiles(path: string): Promise<void> {
  await rm(path, { force: true });
  await rm(`${path}-lock`, { force: true });
}

/** The entries of the new tables. Records that are trimmed, and logs that were dropped, are left out. */
function* sealedEntries(pages: LmdbPages): Iterable<PlannedWrite> {
  for (const { key, value } of pages.entries('values')) {
    yield { table: 'values', key, value: sealValue('values', key, [value()!]) };
  }
  const trims = new Map<string, number>();
  const lasts = new Map<string, ChainLink>();
  for (const { key, value } of pages.entries('trims')) {
    const log = decodeKey(key)[0]!;
    const through = decodeTrim(value()!);
    trims.set(log, through);
    if (through !== DROPPED) lasts.set(log, { ...CHAIN_START, sequence: through });
  }
  for (const { key, value } of pages.entries('records')) {
    const log = logOf(key)!;
    const sequence = sequenceOf(key);
    if (sequence <= (trims.get(log) ?? 0)) continue;
    const last = lasts.get(log) ?? CHAIN_START;
    const sealed = sealValue('records', key, [value()!, encodeLink(last)]);
    yield { table: 'records', key, value: sealed };
    lasts.set(log, linkAfter(last, sequence, sealed.checksum));
  }
  for (const [log, last] of lasts) {
    const key = encodeKey([log]);
    const stored = encodeStoredLog({ last, trimmedThrough: trims.get(log) ?? 0 });
    yield { table: 'logs', key, value: sealValue('logs', key, [stored]) };
  }
}

function* batchesOf(writes: Iterable<PlannedWrite>): Iterable<PlannedWrite[]> {
  let batch: PlannedWrite[] = [];
  let byteCount = 0;
  for (const write of writes) {
    batch.push(write);
    byteCount += write.key.byteLength + write.value!.bytes.byteLength;
    if (byteCount < BATCH_BYTES_MAX) continue;
    yield batch;
    batch = [];
    byteCount = 0;
  }
  if (batch.length > 0) yield batch;
}
