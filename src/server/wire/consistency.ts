// The headers Sagitta-Consistency and Sagitta-Session, which say what a reply must at least reflect. A client
// copies the items of Sagitta-Session from earlier replies of any node.

import type { IncomingHttpHeaders } from 'node:http';
import { SagittaError } from '../../common/errors.js';

const CONSISTENCY = 'sagitta-consistency';
export const SESSION = 'sagitta-session';
/** More collections than a client uses at a time, in a header of a few kilobytes. */
const SESSION_LOGS_MAX = 64;
const SESSION_ITEM = /^([A-Za-z0-9-]{1,64}):([0-9]{1,15})$/;

/** Positions in logs by the name of the log: `catalogue`, or the incarnation of a collection. */
export type LogPositions = Readonly<Record<string, number>>;

export interface Consistency {
  /** Whether the reply must reflect every write that any node acknowledged before the request. */
  readonly isStrong: boolean;
  /** What the client has seen, which the reply must reflect. */
  readonly seen: LogPositions;
}

/** Throws `invalid_request` for unknown values. */
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
      `The header Sagitta-Session is ${JSON.stringify(text.slice(0, 100))}; expected at most ${SESSION_LOGS_MAX} comma-separated items NAME:POSITION, copied from the same header of earlier replies.`,
    );
  }
  return Object.fromEntries(read.map((found) => [found![1]!, Number(found![2])]));
}

/** The value of Sagitta-Session for a reply. */
export function writeSession(positions: LogPositions): string {
  return Object.entries(positions)
    .map(([log, position]) => `${log}:${position}`)
    .join(',');
}
