// What a store has of one log, as operations that write it to another store: entries, records and, last, the place in
// the log. Replies under idempotency keys come through all logs; each names the one that has it.

import type { StateReader, Store, StoreKey, StoreOperation } from '../../storage/store.js';
import {
  appliedPositionKey,
  appliedPositionOperation,
  findAppliedPosition,
} from '../logs/applied-position.js';
import {
  CATALOGUE,
  DRAINED_NODES,
  FOUNDED,
  FOUNDING,
  PLACEMENTS,
  SNAPSHOTS,
} from '../logs/store-keys.js';

/** Bytes of values and records in one piece of a state. */
const PIECE_BYTES = 16 * 1024 * 1024;

/** A blob, and a text that is another one for other bytes under the name. */
interface NamedBlob {
  readonly name: string;
  readonly version: string;
}

/** Where a store has what was committed to which log. */
export interface StoreLayout {
  /** Prefixes of the entries of the catalogue. */
  readonly catalogue: readonly StoreKey[];
  /** An entry of the catalogue that tells one service, or cluster, from another one. */
  readonly secret: StoreKey;
  collection(incarnation: string): {
    readonly prefixes: readonly StoreKey[];
    readonly log: string;
    readonly blobPrefix: string;
    /** Present where the store has no rows of it. */
    readonly absence: StoreKey;
  };
  /** The blobs that the entries of a collection name. */
  blobsOf(reader: Pick<StateReader, 'get'>, incarnation: string): readonly NamedBlob[];
  /** Replies: an entry under `prefix`, whose value is the name of the log, and the one that belongs to it. */
  readonly replies: { readonly prefix: StoreKey; entryOf(key: StoreKey): StoreKey };
}

function prefixesOf(layout: StoreLayout, log: string): readonly StoreKey[] {
  const snapshot = [...SNAPSHOTS, log];
  if (log !== CATALOGUE) return [...layout.collection(log).prefixes, snapshot];
  return [...layout.catalogue, DRAINED_NODES, PLACEMENTS, FOUNDING, FOUNDED, snapshot];
}

/** With the name of the log where replies have it, when they are committed to it. */
export function namedAfter(
  layout: StoreLayout,
  log: string,
  operations: readonly StoreOperation[],
): readonly StoreOperation[] {
  const { prefix } = layout.replies;
  const isMarker = (key: StoreKey) => prefix.every((part, i) => key[i] === part);
  const hasMarker = operations.some(({ kind, key }: Keyed) => kind === 'put' && isMarker(key!));
  if (!hasMarker) return operations;
  return operations.map((operation) =>
    operation.kind === 'put' && isMarker(operation.key)
      ? { ...operation, value: Buffer.from(log) }
      : operation,
  );
}

type Keyed = Pick<StoreOperation, 'kind'> & { readonly key?: StoreKey };

/** All that the reader has of a log, but blobs. */
export function* stateOf(
  reader: Pick<StateReader, 'get' | 'list' | 'readLog'>,
  layout: StoreLayout,
  log: string,
): Iterable<Extract<StoreOperation, { kind: 'put' | 'append' }>> {
  for (const prefix of prefixesOf(layout, log)) {
    for (const { key, value } of reader.list(prefix)) yield { kind: 'put', key, value };
  }
  for (const key of repliesOf(reader, layout, log)) {
    const entry = layout.replies.entryOf(key);
    const value = reader.get(entry);
    yield { kind: 'put', key, value: Buffer.from(log) };
    if (value !== undefined) yield { kind: 'put', key: entry, value };
  }
  if (log !== CATALOGUE) {
    const { log: stored } = layout.collection(log);
    for (const { sequence, record } of reader.readLog(stored, 0)) {
      yield { kind: 'append', log: stored, sequence, record };
    }
  }
  const place = findAppliedPosition(reader, log);
  if (place !== undefined) yield appliedPositionOperation(log, place);
}

/** The operations in pieces, each of which is in memory, and is one commit of whoever loads it. */
export function* piecesOf(operations: Iterable<StoreOperation>): Iterable<StoreOperation[]> {
  let piece: StoreOperation[] = [];
  let byteCount = 0;
  for (const operation of operations) {
    piece.push(operation);
    byteCount += bytesIn(operation);
    if (byteCount < PIECE_BYTES) continue;
    yield piece;
    piece = [];
    byteCount = 0;
  }
  yield piece;
}

/** Of the value or the record that an operation writes. */
export function bytesIn(operation: StoreOperation): number {
  if (operation.kind === 'put') return operation.value.byteLength;
  return operation.kind === 'append' ? operation.record.byteLength : 0;
}

/** The keys under `replies.prefix`. Those without a name were made before there was a cluster. */
function* repliesOf(
  reader: Pick<StateReader, 'list'>,
  layout: StoreLayout,
  log: string,
): Iterable<StoreKey> {
  for (const { key, value } of reader.list(layout.replies.prefix)) {
    if ((Buffer.from(value).toString() || CATALOGUE) === log) yield key;
  }
}

/** Removes what the store has of a collection, its place in the log first. */
export async function removeState(
  store: Store,
  layout: StoreLayout,
  incarnation: string,
): Promise<void> {
  const { log, blobPrefix } = layout.collection(incarnation);
  const replies = [...repliesOf(store, layout, incarnation)];
  await store.commit([
    { kind: 'remove', key: appliedPositionKey(incarnation) },
    ...prefixesOf(layout, incarnation).map(
      (prefix): StoreOperation => ({ kind: 'removeUnder', prefix }),
    ),
    ...replies.flatMap((key): StoreOperation[] => [
      { kind: 'remove', key },
      { kind: 'remove', key: layout.replies.entryOf(key) },
    ]),
    // With the place, without which a later attempt does not look for it.
    { kind: 'dropLog', log },
  ]);
  await store.eraseLog(log);
  for (const name of await store.listBlobs(blobPrefix)) await store.removeBlob(name);
}
