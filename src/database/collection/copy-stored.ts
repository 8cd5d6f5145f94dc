// Copies what is stored of a collection to another incarnation: manifest, deletions, expiries, segment
// files, and the log up to a sequence. Until the catalogue names that incarnation nobody reads it, so the copy is
// made in several commits; the next start removes one that was interrupted.

import type { Store, StoreOperation } from '../../storage/store.js';
import { keys, logName, segmentBlobName } from '../keys.js';
import { encodeJson, type Manifest } from './manifest.js';

/** Bytes of log records in one commit, which are in memory. */
const COMMIT_BYTES_MAX = 32 * 1024 * 1024;

/** Manifest and log must not be trimmed or replaced meanwhile. `sequence`: the last write to copy. */
export async function copyStored(
  store: Store,
  source: {
    readonly incarnation: string;
    readonly manifest: Manifest;
    readonly sequence: number;
  },
  target: string,
): Promise<void> {
  const { incarnation, manifest, sequence } = source;
  // First, so that the next start finds what an interrupted copy has left.
  await store.commit([
    { kind: 'put', key: keys.manifest(target), value: encodeJson(manifest) },
    ...copiesOfDeletions(store, incarnation, target),
    ...copiesOfExpiries(store, { incarnation, through: sequence }, target),
  ]);
  for (const { number } of manifest.segments) {
    await store.copyBlob(segmentBlobName(incarnation, number), segmentBlobName(target, number));
  }
  let copied = manifest.checkpointSequence;
  while (copied < sequence) {
    const operations = nextRecords(
      store,
      { incarnation, after: copied, through: sequence },
      target,
    );
    const last = operations.at(-1);
    if (last === undefined) break;
    await store.commit(operations);
    copied = last.sequence;
  }
}

function copiesOfDeletions(store: Store, incarnation: string, target: string): StoreOperation[] {
  const operations: StoreOperation[] = [];
  for (const { key, value } of store.list(keys.deletionsOfCollection(incarnation))) {
    const [, , segmentNumber, throughSequence] = key;
    const copy = keys.deletions(target, Number(segmentNumber), Number(throughSequence));
    operations.push({ kind: 'put', key: copy, value });
  }
  return operations;
}

function copiesOfExpiries(
  store: Store,
  source: { readonly incarnation: string; readonly through: number },
  target: string,
): StoreOperation[] {
  const operations: StoreOperation[] = [];
  for (const { key, value } of store.list(keys.expiriesOfCollection(source.incarnation))) {
    const sequence = Number(key[2]);
    if (sequence > source.through) break;
    operations.push({ kind: 'put', key: keys.expiries(target, sequence), value });
  }
  return operations;
}

function nextRecords(
  store: Store,
  range: { readonly incarnation: string; readonly after: number; readonly through: number },
  target: string,
): Extract<StoreOperation, { kind: 'append' }>[] {
  const operations: Extract<StoreOperation, { kind: 'append' }>[] = [];
  let byteCount = 0;
  for (const { sequence, record } of store.readLog(logName(range.incarnation), range.after)) {
    if (sequence > range.through || byteCount >= COMMIT_BYTES_MAX) break;
    operations.push({ kind: 'append', log: logName(target), sequence, record });
    byteCount += record.byteLength;
  }
  return operations;
}
