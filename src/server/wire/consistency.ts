// What a reply must have at least: the headers Sagitta-Consistency and Sagitta-Session of reads. The second is what replies
// of the service had in theirs, from any node of a cluster.

import type { IncomingHttpHeaders } from 'node:http';
import { SagittaError } from '../../common/errors.js';

const CONSISTENCY = 'sagitta-consistency';
export const SESSION = 'sagitta-session';
/** More collections than a client uses at a time; the header has a few kilobytes then. */
const SESSION_LOGS_MAX = 64;
const SESSION_ITEM = /^([A-Za-z0-9-]{1,64}):([0-9]{1,15})$/;

/** Positions in logs by the name of the log: `catalogue`, or the incarnation of a collection. */
export type LogPositions = Readonly<Record<string, number>>;

export interface Consistency {
  /** Whether the reply must have everything that any node of the cluster has acknowledged before. */
  readonly isStrong: boolean;
  /** What the client has seen, which the reply must have. */
  readonly seen: LogPositions;
}

/** Throws `invalid_request` for values that are not known. */
export function consistencyOf({
  [CONSISTENCY]: consistency = 'default',
  [SESSION]: session,
}: IncomingHttpHeaders): Consistency {
  if (consistency !== 'strong' && consistency !== 'default') {
    throw new SagittaError(
      'invalid_request',
      `The header Sagitta-Consistency is ${JSON.stringify(consistency)}; expected default or strong.`,
    );
  }
  const seen = session === undefined ? {} : readSession(String(session));
  return { isStrong: consistency === 'strong', seen };
}

function readSession(text: string): LogPositions {
  const items = text.split(',');
  const read = items.map((item) => SESSION_ITEM.exec(item.trim()));
  if (items.length > SESSION_LOGS_MAX || read.includes(null)) {
    throw new SagittaError(
      'invalid_request',
      `The header Sagitta-Session is ${JSON.stringify(text.slice(0, 100))}; expected items NAME:POSITION of such headers of replies, ${SESSION_LOGS_MAX} at most, with commas between them.`,
    );
  }
  return Object.fromEntries(read.map((found) => [found![1]!, Number(found![2])]));
}

/** The header of a reply. */
export function writeSession(positions: LogPositions): string {
  return Object.entries(positions)
    .map(([log, position]) => `${log}:${position}`)
    .join(',');
}
