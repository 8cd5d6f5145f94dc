// The backups of the nodes of a cluster, where collections are on some of them only, as one state: the catalogue of the
// backup that has come furthest in its log, and of each collection the rows of the one that has come furthest in its.

import { SagittaError } from '../../common/errors.js';
import type { StateReader, Store } from '../../storage/store.js';
import type { StoreInspection } from '../../storage/store-inspection.js';
import { findAppliedPosition } from '../logs/applied-position.js';
import { CATALOGUE, FOUNDED } from '../logs/store-keys.js';
import { bytesIn, piecesOf, removeState, type StoreLayout, stateOf } from './log-state.js';

export interface Completion {
  /** What was taken from other backups than that of the catalogue. */
  readonly added: readonly { readonly incarnation: string; readonly backup: string }[];
  /** Collections whose rows are in none of the backups. */
  readonly missing: readonly string[];
  /** Of what was added. */
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
    const place = findAppliedPosition(backup, CATALOGUE);
    if (place === undefined) {
      throw new SagittaError(
        'configuration_invalid',
        `${backup.directory} is not a backup of a node of a cluster. Restore it alone.`,
      );
    }
    if (identityOf(backup).join() !== identity) {
      throw new SagittaError(
        'configuration_invalid',
        `${backup.directory} and ${first!.directory} are not backups of nodes of one cluster: each service has other secrets, and a cluster that began with data is another one. Restore them into a data directory each.`,
      );
    }
    return place.position;
  });
  return positions.indexOf(Math.max(...positions));
}

/** Brings into a store, which has the newest catalogue, what other backups have more of. Throws `data_corrupt`. */
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
      byteLength += await bringIn(store, best, layout, incarnation);
      added.push({ incarnation, backup: best.directory });
    } else if (own === null) {
      missing.push(incarnation);
    }
  }
  return { added, missing, byteLength };
}

/** Up to where it has the log of a collection; null where it does not have the collection. */
function positionOf(
  reader: Pick<StateReader, 'get'>,
  layout: StoreLayout,
  incarnation: string,
): number | null {
  const { absence } = layout.collection(incarnation);
  if (reader.get(absence) !== undefined) return null;
  return findAppliedPosition(reader, incarnation)?.position ?? null;
}

/** Returns the number of bytes. */
async function bringIn(
  store: Store,
  backup: StoreInspection,
  layout: StoreLayout,
  incarnation: string,
): Promise<number> {
  await removeState(store, layout, incarnation);
  let byteLength = 0;
  for (const { name } of layout.blobsOf(backup, incarnation)) {
    const bytes = await backup.readBlob(name);
    await store.writeBlob(name, [bytes]);
    byteLength += bytes.length;
  }
  for (const operations of piecesOf(stateOf(wholeState(backup), layout, incarnation))) {
    await store.commit(operations);
    for (const operation of operations) byteLength += bytesIn(operation);
  }
  const { absence } = layout.collection(incarnation);
  await store.commit([{ kind: 'remove', key: absence }]);
  return byteLength;
}

/** Its records, of which none may be damaged. */
function wholeState(backup: StoreInspection): Pick<StateReader, 'get' | 'list' | 'readLog'> {
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
