// Copies the stored data of a collection to another incarnation: manifest, deletions, expiries, segment files, and
// the log up to a sequence with the files that it adds. Nothing reads the copy until the catalogue names its
// incarnation, so that it can be made in several commits; the next start removes an interrupted copy.

import type { Store, StoreOperation } from '../../storage/store.js';
import { keys, logName, segmentBlobName } from '../layout/keys.js';
import { type AddedFile, encodeJson, type Manifest } from '../layout/manifest.js';
import { addedFilesIn } from '../layout/store-layout.js';

interface Source {
  readonly incarnation: string;
  readonly manifest: Manifest;
  /** The last write to copy, which must be visible. */
  readonly sequence: number;
}

type Copy = Extract<StoreOperation, { kind: 'put' | 'append' }>;

/** Bytes of values and records per commit, which are held in memory. */
const COMMIT_BYTES_MAX = 32 * 1024 * 1024;

/** The manifest must not be replaced, nor the log trimmed, during the copy. */
export async function copyStored(store: Store, source: Source, target: string): Promise<void> {
  const { incarnation, manifest } = source;
  // Read before the first await, because expired vectors that the copy still contains may be deleted later.
  const expiries = [...copiesOfExpiries(store, source, target)];
  const added = [...addedFilesIn(store, incarnation).values()].filter(
    ({ sequence }) => sequence <= source.sequence,
  );
  // The manifest comes first, so that the next start finds the remains of an interrupted copy.
  await store.commit([{ kind: 'put', key: keys.manifest(target), value: encodeJson(manifest) }]);
  await commitInPieces(store, expiries);
  await commitInPieces(store, copiesOfDeletions(store, incarnation, target));
  await commitInPieces(store, copiesOfAdded(added, target));
  for (const { number } of [...manifest.segments, ...added]) {
    await store.copyBlob(segmentBlobName(incarnation, number), segmentBlobName(target, number));
  }
  await commitInPieces(store, copiesOfRecords(store, source, target));
}

async function commitInPieces(store: Store, operations: Iterable<Copy>): Promise<void> {
  let piece: Copy[] = [];
  let byteCount = 0;
  for (const operation of operations) {
    piece.push(operation);
    byteCount += (operation.kind === 'put' ? operation.value : operation.record).byteLength;
    if (byteCount < COMMIT_BYTES_MAX) continue;
    await store.commit(piece);
    piece = [];
    byteCount = 0;
  }
  if (piece.length > 0) await store.commit(piece);
}

function* copiesOfDeletions(store: Store, incarnation: string, target: string): Iterable<Copy> {
  for (const { key, value } of store.list(keys.deletionsOfCollection(incarnation))) {
    const [, , segmentNumber, throughSequence] = key;
    const copy = keys.deletions(target, Number(segmentNumber), Number(throughSequence));
    yield { kind: 'put', key: copy, value };
  }
}

function* copiesOfExpiries(store: Store, source: Source, target: string): Iterable<Copy> {
  for (const { key, value } of store.list(keys.expiriesOfCollection(source.incarnation))) {
    const sequence = Number(key[2]);
    if (sequence > source.sequence) return;
    yield { kind: 'put', key: keys.expiries(target, sequence), value };
  }
}

function* copiesOfAdded(files: readonly AddedFile[], target: string): Iterable<Copy> {
  for (const file of files) {
    const value = encodeJson<AddedFile>(file);
    yield { kind: 'put', key: keys.addedFile(target, file.sequence), value };
  }
}

function* copiesOfRecords(
  store: Store,
  { incarnation, manifest, sequence: last }: Source,
  target: string,
): Iterable<Copy> {
  for (const { sequence, record } of store.readLog(
    logName(incarnation),
    manifest.checkpointSequence,
  )) {
    if (sequence > last) return;
    yield { kind: 'append', log: logName(target), sequence, record };
  }
}
