// The records of collections that other nodes of the cluster hold: those nodes are asked for them, since only they know
// how many vectors there are. What none of them answers stays as this node has it, with the status `elsewhere`.

import { OPERATOR } from '../../common/access.js';
import type { CollectionRecord } from '../../database/api/database-api.js';
import type { Database } from '../../database/database.js';
import type { Consistency, LogPositions } from '../wire/consistency.js';
import type { ClusterMember } from './cluster.js';
import type { Forwarding } from './forwarding.js';

export const RECORDS_PATH = '/cluster/records';
/** A node that does not answer for so long is passed over. */
const ANSWER_MS_MAX = 2_000;

interface Services {
  readonly database: Database;
  /** Null for a process that is alone. */
  readonly forwarding: Forwarding | null;
}

/** What one node asks another one for. */
export interface RecordsRequest extends Consistency {
  readonly incarnations: readonly string[];
}

const DEFAULT: Consistency = { isStrong: false, seen: {} };

export interface RecordsReply {
  /** Null for collections that the node does not hold. */
  readonly records: readonly (CollectionRecord | null)[];
  /** Up to where the node has their logs. */
  readonly positions: LogPositions;
}

/** The record of holders; null for a collection that this node holds itself. */
export async function recordElsewhere(
  services: Services,
  record: CollectionRecord,
): Promise<CollectionRecord | null> {
  const isElsewhere = heldElsewhere(services, record.id) !== null;
  return isElsewhere ? await completeRecord(services, record) : null;
}

export async function completeRecord(
  services: Services,
  record: CollectionRecord,
  wanted = DEFAULT,
): Promise<CollectionRecord> {
  return (await completeRecords(services, [record], wanted))[0]!;
}

/** In the same order. What the catalogue says of a collection stays as this node has it. */
export async function completeRecords(
  services: Services,
  records: readonly CollectionRecord[],
  wanted = DEFAULT,
): Promise<readonly CollectionRecord[]> {
  const { forwarding } = services;
  if (forwarding === null) return records;
  const found = [...records];
  /** The incarnations of those that are to be completed, by index. */
  const missing = new Map<number, string>();
  for (const [i, { id }] of records.entries()) {
    const incarnation = heldElsewhere(services, id);
    if (incarnation !== null) missing.set(i, incarnation);
  }
  const told = new Set<number>();
  const asked = new Set<string>();
  for (;;) {
    const indexesByMember = new Map<ClusterMember, number[]>();
    for (const [i, incarnation] of missing) {
      const holders = forwarding.holdersOf([incarnation]);
      const member = holders.find(({ instance }) => !asked.has(instance));
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
        const question = { incarnations, ...wanted };
        const answers = await askFor(services, member, question).catch(() => []);
        if (answers.length === 0) forwarding.askLater(member.instance);
        for (const [k, i] of indexes.entries()) {
          const held = answers[k] ?? null;
          if (held === null) continue;
          found[i] = withRowsOf(held, found[i]!);
          told.add(i);
          // A holder that loads it, or cannot, is asked in vain where another one has it.
          if (held.status === 'ready') missing.delete(i);
        }
      }),
    );
  }
  for (const i of missing.keys()) if (!told.has(i)) found[i] = elsewhere(found[i]!);
  return found;
}

/** The incarnation of a collection that only other nodes hold; null for one that this node holds, or that is gone. */
function heldElsewhere({ database, forwarding }: Services, id: string): string | null {
  const incarnation = database.incarnationOf(id);
  if (forwarding === null || incarnation === undefined) return null;
  // A node that brings a collection in has some of its rows.
  const isHeld = database.holds(id) && forwarding.cluster.holds(incarnation);
  return isHeld ? null : incarnation;
}

/** Of a collection whose rows, as far as this node has some, are not all there. */
function elsewhere(record: CollectionRecord): CollectionRecord {
  if (record.status === 'elsewhere') return record;
  const statusReason = `It is held by ${record.nodes?.join(', ') ?? 'other nodes'}.`;
  return { ...record, status: 'elsewhere', statusReason, vectorCount: 0, sequence: 0 };
}

/** What a record says of the rows, with what another one of the same collection says of the rest. */
export function withRowsOf(held: CollectionRecord, record: CollectionRecord): CollectionRecord {
  const { status, statusReason, vectorCount, sequence, engine, memory, diskBytes } = held;
  const { statusReason: _, ...rest } = record;
  return {
    ...rest,
    status,
    ...(statusReason === undefined ? {} : { statusReason }),
    vectorCount,
    sequence,
    // A write changes it, too.
    updatedAt: held.updatedAt > record.updatedAt ? held.updatedAt : record.updatedAt,
    engine,
    memory,
    diskBytes,
  };
}

async function askFor(
  { forwarding }: Services,
  member: ClusterMember,
  asked: RecordsRequest,
): Promise<RecordsReply['records']> {
  const { incarnations } = asked;
  const { status, text } = await forwarding!.ask(
    member,
    {
      method: 'POST',
      path: RECORDS_PATH,
      body: JSON.stringify(asked),
      principal: OPERATOR,
      incarnations,
    },
    AbortSignal.timeout(ANSWER_MS_MAX),
  );
  if (status !== 200) throw new Error(`${member.node} replied: ${text}`);
  const { records, positions } = JSON.parse(text) as RecordsReply;
  forwarding!.noteSeen(incarnations, positions);
  return records;
}
