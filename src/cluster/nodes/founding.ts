// A cluster whose first node brings data: that of a service that was alone, or of a backup. Its state becomes the first
// snapshots, with which the others begin; the logs have what comes after it. That nobody has written to the logs
// before is checked when the node has become their writer, so that two nodes cannot both bring data.

import { randomUUID } from 'node:crypto';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { Blobs } from '../blobs/blobs.js';
import { startPositionOperation } from '../logs/applied-position.js';
import { ChainedLog } from '../logs/chained-log.js';
import { LOG_START, type LogRecord, LogTrimmedError } from '../logs/collection-log.js';
import { CATALOGUE, CLUSTER_PREFIXES, FOUNDED, FOUNDING } from '../logs/store-keys.js';
import { placedOn, placementOperation } from '../placement/placements.js';
import type { ReplicatedLog } from '../replication/replicated-log.js';
import type { SharedService } from '../service/shared-service.js';
import type { StoreLayout } from '../snapshots/log-state.js';
import { logsWithSnapshots, SnapshotFiles } from '../snapshots/snapshot-files.js';
import { snapshotOperation } from '../snapshots/snapshot-record.js';

/** A collection that the node brings; with a replication factor of null it is to be on all nodes. */
export interface FoundingCollection {
  readonly incarnation: string;
  readonly replicationFactor: number | null;
}

export interface FoundingOptions {
  readonly service: SharedService;
  /** The name of this node. */
  readonly node: string;
  readonly store: Store;
  readonly blobs: Blobs;
  /** All that the store has. */
  readonly collections: readonly FoundingCollection[];
  readonly layout: StoreLayout;
}

/** Part of the names of the snapshots. */
const UNIQUE = 'founding';

/**
 * Makes the logs, and forgets the places that the store has in others. Returns false for a cluster that has been written
 * to: the node is then one like the others. Throws `configuration_invalid` when something of another cluster is there.
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
    foreign.push(...names.filter((name) => !name.endsWith(`-${UNIQUE}`)));
  }
  for await (const name of blobs.list('archive/')) foreign.push(name);
  if (foreign.length > 0) {
    throw notEmpty(`SAGITTA_BLOBS has files of another cluster (${foreign[0]})`);
  }
  // Of an attempt that was not finished: no node can have begun with it.
  for (const log of logs) await new SnapshotFiles(blobs, log).removeAll();
  for (const incarnation of incarnations) {
    await service.createLog(incarnation, { isStarting: true });
    if (await isWritten(service, incarnation)) {
      throw notEmpty(`the log ${service.openStream(incarnation).name} has records`);
    }
  }
  await store.commit([
    ...CLUSTER_PREFIXES.map((prefix): StoreOperation => ({ kind: 'removeUnder', prefix })),
    ...incarnations.map(startPositionOperation),
    // Others join this node when they are there.
    ...collections.flatMap(({ incarnation, replicationFactor: factor }) =>
      factor === null ? [] : [placementOperation(incarnation, placedOn([node], factor))],
    ),
    { kind: 'put', key: FOUNDING, value: Buffer.from('{}') },
  ]);
  return true;
}

/**
 * Makes the state of the store the first snapshots of the cluster. Until the first commit of the catalogue no node
 * uses them. Throws `configuration_invalid` when another node has written first.
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
    new SnapshotFiles(blobs, log).upload({ store, layout, base: null, unique: UNIQUE, check });
  for (const { incarnation } of collections) await upload(incarnation);
  const made = await upload(CATALOGUE);
  await catalogue.commit([
    snapshotOperation(CATALOGUE, { ...made, previous: null, removed: [] }),
    { kind: 'remove', key: FOUNDING },
    { kind: 'put', key: FOUNDED, value: Buffer.from(randomUUID()) },
  ]);
  logger.info(
    { collections: collections.length },
    'the data of this node is that of the cluster now',
  );
}

/** Whether the store has data that no other node can get yet. */
export function isUnfinished(store: Store): boolean {
  return store.get(FOUNDING) !== undefined;
}

function requireNoCommits(records: readonly LogRecord[]): void {
  if (records.some(({ kind }) => kind === 'commit')) {
    throw notEmpty('another node has written to it in the meantime');
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
    'The data directory has data of a service that was not a node of a cluster, which the other nodes would not get. To bring it into an empty cluster, start this node with SAGITTA_CLUSTER_FOUND=yes before the others. Else start the node with an empty data directory (SAGITTA_DATA_DIR), and import the data: sagitta export, sagitta import.',
  );
}

export function foundedMeanwhile(): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    'Another node has brought its data into the cluster since this one was started. Start this node again: it then begins with that data.',
  );
}

function notWhole(): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    'The data directory lacks the rows of some collections: it is from a node of a cluster that did not hold all of them, so it cannot be brought into an empty cluster (SAGITTA_CLUSTER_FOUND). Start a service that is alone on it, delete those collections, which it lists as failed, and bring in the rest; export and import them from the backup of a node that held them.',
  );
}

function notEmpty(found: string): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    `The data directory can only be brought into an empty cluster (SAGITTA_CLUSTER_FOUND), and ${found}. Name another cluster (SAGITTA_CLUSTER_NAME) with an empty place for files (SAGITTA_BLOBS), or import the data: sagitta export, sagitta import.`,
  );
}
