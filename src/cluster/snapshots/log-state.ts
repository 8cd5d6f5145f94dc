// The state of one log in a store, as operations that write it to another store: entries, records and, last, the applied
// position. Replies under idempotency keys come through all logs; each names the log that contains it.

import type { BlockRange } from '../../platform/blocks.js';
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
  ORIGINS,
  PLACEMENTS,
  SNAPSHOTS,
} from '../logs/store-entries.js';

/** Bytes of values and records in one batch of operations. */
const BATCH_BYTES = 16 * 1024 * 1024;

/** The properties of a file that are the same on all nodes. */
export interface FileShape {
  /** The blocks that are kept by nodes that do not keep all of the file. */
  readonly kept: readonly BlockRange[];
  /** By which the nodes that keep all of it are chosen. */
  readonly homeKey: string;
}

export interface NamedFile extends FileShape {
  readonly name: string;
  readonly byteLength: number;
  /** Changes with the bytes. */
  readonly version: string;
  /** See `digestOfBlocks`; null if it is unknown. */
  readonly digest: string | null;
  /** Where the file was shared before the log named it; null if it was not. */
  readonly blob: string | null;
}

/** A file that a record of a log adds. */
export interface SharedFile extends FileShape {
  /** Its name in the shared files. */
  readonly blob: string;
  readonly byteLength: number;
  readonly digest: string;
}

/** The blobs of a collection, and what describes them to the database. */
interface DescribedFiles {
  readonly description: object;
  readonly blobs: readonly NamedFile[];
}

/** Where a store keeps the operations that were committed to each log. */
export interface StoreLayout {
  /** Prefixes of the entries of the catalogue. */
  readonly catalogue: readonly StoreKey[];
  /** An entry of the catalogue that is different for each service or cluster. */
  readonly secret: StoreKey;
  collection(incarnation: string): {
    readonly prefixes: readonly StoreKey[];
    readonly log: string;
    readonly blobPrefix: string;
    /** An entry that marks a store without rows of the collection. */
    readonly absence: StoreKey;
  };
  /** The blobs that the entries of a collection name. */
  filesOf(reader: Pick<StateReader, 'get' | 'list'>, incarnation: string): DescribedFiles;
  /**
   * The files that records among the operations add to a collection that is not loaded: the name that each must get in the
   * store, and the operation that goes with the record.
   */
  filesAddedBy(
    operations: readonly StoreOperation[],
    reader: Pick<StateReader, 'get' | 'list'>,
    incarnation: string,
  ): readonly {
    readonly file: SharedFile;
    readonly name: string;
    readonly operation: StoreOperation;
  }[];
  /** A reply is an entry under `prefix` with the name of its log, and the entry that `entryOf` returns for it. */
  readonly replies: { readonly prefix: StoreKey; entryOf(key: StoreKey): StoreKey };
}

function prefixesOf(layout: StoreLayout, log: string): readonly StoreKey[] {
  const snapshot = [...SNAPSHOTS, log];
  if (log !== CATALOGUE) return [...layout.collection(log).prefixes, snapshot];
  return [...layout.catalogue, ORIGINS, DRAINED_NODES, PLACEMENTS, FOUNDING, FOUNDED, snapshot];
}

/** Writes the name of the log into the replies that are committed to it. */
export function nameReplyLogs(
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

/** Everything that the reader holds of a log, except blobs. */
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
  const position = findAppliedPosition(reader, log);
  if (position !== undefined) yield appliedPositionOperation(log, position);
}

/** The operations in batches that fit into memory, each of which is one commit of the store that loads them. */
export function* batchesOf(operations: Iterable<StoreOperation>): Iterable<StoreOperation[]> {
  let batch: StoreOperation[] = [];
  let byteCount = 0;
  for (const operation of operations) {
    batch.push(operation);
    byteCount += payloadBytes(operation);
    if (byteCount < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    byteCount = 0;
  }
  yield batch;
}

/** The bytes of the value or record that an operation writes. */
export function payloadBytes(operation: StoreOperation): number {
  if (operation.kind === 'put') return operation.value.byteLength;
  return operation.kind === 'append' ? operation.record.byteLength : 0;
}

/** The keys of a log's replies under `replies.prefix`. Replies from before the cluster name no log and are the catalogue's. */
function* repliesOf(
  reader: Pick<StateReader, 'list'>,
  layout: StoreLayout,
  log: string,
): Iterable<StoreKey> {
  for (const { key, value } of reader.list(layout.replies.prefix)) {
    if ((Buffer.from(value).toString() || CATALOGUE) === log) yield key;
  }
}

/** Removes the state of a collection from the store, beginning with the transaction that removes its applied position. */
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
    // In the same transaction as the position, without which a later attempt would not look for the log.
    { kind: 'dropLog', log },
  ]);
  await store.eraseLog(log);
  for (const name of await store.listBlobs(blobPrefix)) await store.removeBlob(name);
}
