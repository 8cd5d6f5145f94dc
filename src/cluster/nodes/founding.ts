// Founds a cluster with the data of its first node: that of a service that was alone, or of a backup. The state of its
// store becomes the first snapshots, which the other nodes load; the logs contain what comes after. The node checks that
// nobody has written to the logs once it owns them, so two nodes cannot both found the cluster.

import { randomUUID } from 'node:crypto';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { startPositionOperation } from '../logs/applied-position.js';
import { ChainedLog } from '../logs/chained-log.js';
import { LOG_START, type LogRecord, LogTrimmedError } from '../logs/collection-log.js';
import { CATALOGUE, CLUSTER_PREFIXES, FOUNDED, FOUNDING, putEntry } from '../logs/store-entries.js';
import { placedOn, placementOperation } from '../placement/placements.js';
import type { ReplicatedLog } from '../replication/replicated-log.js';
import type { SharedService } from '../service/shared-service.js';
import type { StoreLayout } from '../snapshots/log-state.js';
import { logsWithSnapshots, SnapshotFiles } from '../snapshots/snapshot-files.js';
import { originOperation, snapshotOperation } from '../snapshots/snapshot-record.js';

/** A collection that the node brings in. */
export interface FoundingCollection {
  readonly incarnation: string;
  /** Null for all nodes. */
  readonly replicationFactor: number | null;
}

export interface FoundingOptions {
  readonly service: SharedService;
  /** The name of this node. */
  readonly node: string;
  readonly store: Store;
  readonly blobs: SealedBlobs;
  /** All collections in the store. */
  readonly collections: readonly FoundingCollection[];
  readonly layout: StoreLayout;
}

/** Ends the names of the first snapshots. */
const SUFFIX = 'founding';

/**
 * Creates the logs, and removes the applied positions in other logs. Returns false for a cluster that has been written
 * to, which the node joins like any other. Throws `configuration_invalid` when it finds data of another cluster.
 */
export async function prepareFounding(options: FoundingOptions): Promise<boolean> {
  const { service, node, store, blobs, layout, collections } = options;
  const incarnations = collections.map(({ incarnation }) => incarnation);
  if (await isWritten(service, CATALOGUE)) return false;
  const isAbsent = (each: string) => store.get(layout.collection(each).absence) !== undefined;
  if (incarnations.some(isAbsent)) throw notWhole();
  const logs = await logsWithSnapshots(blobs);
  const foreign: string[] = [];
  for (const log of logs) {
    const names = (await new SnapshotFiles(blobs, log).list()).map(({ name }) => name);
    foreign.push(...names.filter((name) => !name.endsWith(`-${SUFFIX}`)));
  }
  for await (const name of blobs.list('archive/')) foreign.push(name);
  if (foreign.length > 0) {
    throw notEmpty(`a file of another cluster in SAGITTA_BLOBS (${foreign[0]})`);
  }
  // Snapshots of an earlier attempt, which no node can have loaded.
  for (const log of logs) await new SnapshotFiles(blobs, log).removeAll();
  for (const incarnation of incarnations) {
    await service.createLog(incarnation, { isStarting: true });
    if (await isWritten(service, incarnation)) {
      throw notEmpty(`records in the log ${service.openStream(incarnation).name}`);
    }
  }
  await store.commit([
    ...CLUSTER_PREFIXES.map((prefix): StoreOperation => ({ kind: 'removeUnder', prefix })),
    ...incarnations.flatMap((each) => [startPositionOperation(each), originOperation(each)]),
    // Other nodes are added when they are up.
    ...collections.flatMap(({ incarnation, replicationFactor: factor }) =>
      factor === null ? [] : [placementOperation(incarnation, placedOn([node], factor))],
    ),
    putEntry(FOUNDING, {}),
  ]);
  return true;
}

/**
 * Uploads the state of the store as the first snapshots of the cluster, which no node uses before the first commit of
 * the catalogue. Throws `configuration_invalid` when another node has written first.
 */
export async function found(
  catalogue: Pick<ReplicatedLog, 'lead' | 'commit'>,
  options: Omit<FoundingOptions, 'service' | 'node'> & {
    readonly logger: Logger;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { store, blobs, layout, collections, logger, signal } = options;
  await catalogue.lead(signal, { check: requireNoCommits });
  const check = () => signal.throwIfAborted();
  const upload = (log: string) =>
    new SnapshotFiles(blobs, log).upload({ store, layout, base: null, unique: SUFFIX, check });
  for (const { incarnation } of collections) await upload(incarnation);
  const made = await upload(CATALOGUE);
  await catalogue.commit([
    snapshotOperation(CATALOGUE, { ...made, previous: null, earlierPosition: 0, removed: [] }),
    { kind: 'remove', key: FOUNDING },
    { kind: 'put', key: FOUNDED, value: Buffer.from(randomUUID()) },
  ]);
  logger.info(
    { collections: collections.length },
    'the data of this node is now that of the cluster',
  );
}

/** Whether the store contains data that no other node can load yet. */
export function isUnfinished(store: Store): boolean {
  return store.get(FOUNDING) !== undefined;
}

function requireNoCommits(records: readonly LogRecord[]): void {
  if (records.some(({ kind }) => kind === 'commit')) {
    throw notEmpty('records that another node has written in the meantime');
  }
}

async function isWritten(service: SharedService, name: string): Promise<boolean> {
  const { signal } = new AbortController();
  try {
    const log = new ChainedLog(service.openStream(name));
    for await (const { kind } of log.readToEnd(LOG_START, { signal })) {
      if (kind === 'commit') return true;
    }
    return false;
  } catch (error) {
    if (error instanceof LogTrimmedError) return true;
    throw error;
  }
}

export function foreignData(): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    'The data directory contains data of a service that was not a node of a cluster, which the other nodes would not get. To bring it into an empty cluster, start this node with SAGITTA_CLUSTER_FOUND=yes before the others. Otherwise start the node with an empty data directory (SAGITTA_DATA_DIR), and import the data: sagitta export, sagitta import.',
  );
}

export function foundedMeanwhile(): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    'Another node has brought its data into the cluster since this node was started. Start this node again, so that it loads that data. If this happens again, the first snapshot of the cluster is missing from SAGITTA_BLOBS: restore it.',
  );
}

function notWhole(): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    'The data directory is from a node of a cluster that did not hold all collections, so it cannot be brought into an empty cluster (SAGITTA_CLUSTER_FOUND). Start a service without a cluster on it, delete the collections that it lists as failed, and bring in the rest. Export and import the deleted ones from the backup of a node that held them.',
  );
}

function notEmpty(found: string): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    `Expected an empty cluster for the data directory (SAGITTA_CLUSTER_FOUND); found ${found}. Name another cluster (SAGITTA_CLUSTER_NAME) with empty shared files (SAGITTA_BLOBS), or import the data: sagitta export, sagitta import.`,
  );
}
