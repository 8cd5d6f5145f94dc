// Merges the backups of the nodes of a cluster, each of which may hold only some of the collections: the catalogue comes
// from the backup that is furthest in its log, and each collection from the backup that is furthest in that of the
// collection.

import { SagittaError } from '../../common/errors.js';
import type { StateReader, Store } from '../../storage/store.js';
import type { StoreInspection } from '../../storage/store-inspection.js';
import { findAppliedPosition } from '../logs/applied-position.js';
import { CATALOGUE, FOUNDED } from '../logs/store-entries.js';
import { batchesOf, payloadBytes, removeState, type StoreLayout, stateOf } from './log-state.js';

export interface Completion {
  /** Collections from other backups than that of the catalogue. */
  readonly added: readonly { readonly incarnation: string; readonly backup: string }[];
  /** Collections whose rows are in none of the backups. */
  readonly missing: readonly string[];
  /** The bytes that were added. */
  readonly byteLength: number;
}

/** The index of the backup with the newest catalogue. Throws `configuration_invalid` when they are not of one cluster. */
export function newestCatalogue(
  backups: readonly StoreInspection[],
  layout: Pick<StoreLayout, 'secret'>,
): number {
  const identityOf = (backup: StoreInspection) =>
    [layout.secret, FOUNDED].map((key) => Buffer.from(backup.get(key) ?? []).toString('hex'));
  const [first] = backups;
  const identity = identityOf(first!).join();
  const positions = backups.map((backup) => {
    const position = findAppliedPosition(backup, CATALOGUE);
    if (position === undefined) {
      throw new SagittaError(
        'configuration_invalid',
        `Expected backups of nodes of a cluster; found ${backup.directory}, which is not one. Restore it alone.`,
      );
    }
    if (identityOf(backup).join() !== identity) {
      throw new SagittaError(
        'configuration_invalid',
        `Expected backups of nodes of one cluster; found ${backup.directory} and ${first!.directory}, which are from different ones. Restore each of them into a data directory of its own.`,
      );
    }
    return position.position;
  });
  return positions.indexOf(Math.max(...positions));
}

/**
 * Adds to a store with the newest catalogue the collections of which other backups hold more. Throws `data_corrupt`.
 */
export async function completeFrom(
  store: Store,
  backups: readonly StoreInspection[],
  layout: StoreLayout,
  incarnations: readonly string[],
): Promise<Completion> {
  const added: { incarnation: string; backup: string }[] = [];
  const missing: string[] = [];
  let byteLength = 0;
  for (const incarnation of incarnations) {
    const own = positionOf(store, layout, incarnation);
    let best: StoreInspection | null = null;
    let furthest = own ?? -1;
    for (const backup of backups) {
      const position = positionOf(backup, layout, incarnation) ?? -1;
      if (position <= furthest) continue;
      furthest = position;
      best = backup;
    }
    if (best !== null) {
      byteLength += await copyCollection(store, best, layout, incarnation);
      added.push({ incarnation, backup: best.directory });
    } else if (own === null) {
      missing.push(incarnation);
    }
  }
  return { added, missing, byteLength };
}

/** The applied position in the log of a collection; null where the store does not hold the collection. */
function positionOf(
  reader: Pick<StateReader, 'get'>,
  layout: StoreLayout,
  incarnation: string,
): number | null {
  const { absence } = layout.collection(incarnation);
  if (reader.get(absence) !== undefined) return null;
  return findAppliedPosition(reader, incarnation)?.position ?? null;
}

/** Replaces the state of a collection by that of a backup, and returns its bytes. */
async function copyCollection(
  store: Store,
  backup: StoreInspection,
  layout: StoreLayout,
  incarnation: string,
): Promise<number> {
  await removeState(store, layout, incarnation);
  let byteLength = 0;
  for (const { name } of layout.filesOf(backup, incarnation).blobs) {
    const bytes = await backup.readBlob(name);
    await store.writeBlob(name, [bytes]);
    byteLength += bytes.length;
  }
  for (const operations of batchesOf(stateOf(strictReader(backup), layout, incarnation))) {
    await store.commit(operations);
    for (const operation of operations) byteLength += payloadBytes(operation);
  }
  const { absence } = layout.collection(incarnation);
  await store.commit([{ kind: 'remove', key: absence }]);
  return byteLength;
}

/** A reader that throws `data_corrupt` at a damaged record. */
function strictReader(backup: StoreInspection): Pick<StateReader, 'get' | 'list' | 'readLog'> {
  return {
    get: (key) => backup.get(key),
    list: (prefix) => backup.list(prefix),
    *readLog(log, afterSequence) {
      for (const { sequence, record } of backup.readLog(log, afterSequence)) {
        if (record === undefined) {
          throw new SagittaError(
            'data_corrupt',
            `Record ${sequence} of the log ${log} in ${backup.directory} is damaged. Restore from the backups of the other nodes.`,
          );
        }
        yield { sequence, record };
      }
    },
  };
}
