// Fetches the records of collections that only other nodes hold, since only they know the number of vectors. A
// record that no node returns keeps what the catalogue says, with the status `elsewhere`.

import { OPERATOR } from '../../common/access.js';
import type { CollectionRecord } from '../../database/api/database-api.js';
import type { Database } from '../../database/database.js';
import type { Consistency, LogPositions } from '../wire/consistency.js';
import type { ClusterMember } from './cluster.js';
import type { RequestForwarder } from './request-forwarder.js';

export const RECORDS_PATH = '/cluster/records';
const ANSWER_MS_MAX = 2_000;

interface Services {
  readonly database: Database;
  /** Null outside a cluster. */
  readonly forwarder: RequestForwarder | null;
}

/** The body of a request for records between nodes. */
export interface RecordsRequest extends Consistency {
  readonly incarnations: readonly string[];
}

const DEFAULT: Consistency = { isStrong: false, seen: {} };

export interface RecordsReply {
  /** In the order of the request; null for collections that the node does not hold. */
  readonly records: readonly (CollectionRecord | null)[];
  /** How far the node has applied their logs. */
  readonly positions: LogPositions;
}

/** The record as a replica knows it; null if this node holds the collection itself. */
export async function fetchRemoteRecord(
  services: Services,
  record: CollectionRecord,
): Promise<CollectionRecord | null> {
  const isRemote = remoteIncarnationOf(services, record.id) !== null;
  return isRemote ? await completeRecord(services, record) : null;
}

export async function completeRecord(
  services: Services,
  record: CollectionRecord,
  wanted = DEFAULT,
): Promise<CollectionRecord> {
  return (await completeRecords(services, [record], wanted))[0]!;
}

/** The records with the row state of collections that only other nodes hold, in the same order. */
export async function completeRecords(
  services: Services,
  records: readonly CollectionRecord[],
  wanted = DEFAULT,
): Promise<readonly CollectionRecord[]> {
  const { forwarder } = services;
  if (forwarder === null) return records;
  const found = [...records];
  /** Incarnations of records still to be fetched, by index. */
  const missing = new Map<number, string>();
  for (const [i, { id }] of records.entries()) {
    const incarnation = remoteIncarnationOf(services, id);
    if (incarnation !== null) missing.set(i, incarnation);
  }
  const fetched = new Set<number>();
  const asked = new Set<string>();
  for (;;) {
    const indexesByMember = new Map<ClusterMember, number[]>();
    for (const [i, incarnation] of missing) {
      const replicas = forwarder.replicasOf([incarnation]);
      const member = replicas.find(({ instance }) => !asked.has(instance));
      if (member === undefined) continue;
      const known = [...indexesByMember.keys()].find((each) => each.instance === member.instance);
      const key = known ?? member;
      indexesByMember.set(key, [...(indexesByMember.get(key) ?? []), i]);
    }
    if (indexesByMember.size === 0) break;
    await Promise.all(
      [...indexesByMember].map(async ([member, indexes]) => {
        asked.add(member.instance);
        const incarnations = indexes.map((i) => missing.get(i)!);
        const request = { incarnations, ...wanted };
        const answers = await fetchRecords(services, member, request).catch(() => []);
        if (answers.length === 0) forwarder.peers.requestFailed(member);
        for (const [k, i] of indexes.entries()) {
          const held = answers[k] ?? null;
          if (held === null) continue;
          found[i] = mergeRowState(held, found[i]!);
          fetched.add(i);
          // A replica that is loading the collection, or has failed to, leaves the record to the next one.
          if (held.status === 'ready') missing.delete(i);
        }
      }),
    );
  }
  for (const i of missing.keys()) if (!fetched.has(i)) found[i] = toRemoteRecord(found[i]!);
  return found;
}

/** The incarnation of a collection that only other nodes hold; null if this node holds it or it is gone. */
function remoteIncarnationOf({ database, forwarder }: Services, id: string): string | null {
  const incarnation = database.incarnationOf(id);
  if (forwarder === null || incarnation === undefined) return null;
  // While a collection is moved to this node, the node has only some of its rows.
  const isHeld = database.holds(id) && forwarder.cluster.holds(incarnation);
  return isHeld ? null : incarnation;
}

function toRemoteRecord(record: CollectionRecord): CollectionRecord {
  if (record.status === 'elsewhere') return record;
  const statusReason = `It is held by ${record.nodes?.join(', ') ?? 'other nodes'}.`;
  return { ...record, status: 'elsewhere', statusReason, vectorCount: 0, sequence: 0 };
}

/** `record` with the state of the rows from `held`, a record of the same collection. */
export function mergeRowState(held: CollectionRecord, record: CollectionRecord): CollectionRecord {
  const { status, statusReason, vectorCount, sequence, engine, memory, diskBytes } = held;
  const { statusReason: _, ...rest } = record;
  return {
    ...rest,
    status,
    ...(statusReason === undefined ? {} : { statusReason }),
    vectorCount,
    sequence,
    // The time of the last write or the last change of settings.
    updatedAt: held.updatedAt > record.updatedAt ? held.updatedAt : record.updatedAt,
    engine,
    memory,
    diskBytes,
  };
}

async function fetchRecords(
  { forwarder }: Services,
  member: ClusterMember,
  request: RecordsRequest,
): Promise<RecordsReply['records']> {
  const { incarnations } = request;
  const { status, text } = await forwarder!.ask(
    member,
    {
      method: 'POST',
      path: RECORDS_PATH,
      body: JSON.stringify(request),
      principal: OPERATOR,
      incarnations,
    },
    AbortSignal.timeout(ANSWER_MS_MAX),
  );
  if (status !== 200) throw new Error(`${member.node} replied: ${text}`);
  const { records, positions } = JSON.parse(text) as RecordsReply;
  forwarder!.raiseMarks(incarnations, positions);
  return records;
}
