// What stands between the head of a request and its handler, in one place for the application and
// its routes: how much one principal may ask, how many bytes may be held, and whether we keep up.

import type { FastifyRequest } from 'fastify';
import type { StoredReply } from '../../database/api.js';
import type { Limits } from '../../limits.js';
import type { Route } from '../route.js';
import { BodyAdmission, type BodyPlace } from './admission.js';
import { Pressure } from './pressure.js';
import { type Allowance, RateLimiter } from './rate-limit.js';

export interface Guards {
  readonly rates: RateLimiter;
  readonly bodies: BodyAdmission;
  readonly pressure: Pressure;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** What its principal has left; null where nothing is counted, or nobody is known yet. */
    allowance: Allowance | null;
    /** What its body holds; null where there is none. */
    bodyPlace: BodyPlace | null;
  }
}

/** `nowMs`: milliseconds of a clock that never goes back. */
export function createGuards(limits: Limits, nowMs: () => number): Guards {
  return {
    rates: new RateLimiter({ limits, nowMs }),
    bodies: new BodyAdmission({ bytesMax: limits.bodyBytesInFlightMax }),
    pressure: new Pressure({ delayMsMax: limits.eventLoopDelayMsMax, nowMs }),
  };
}

/**
 * A place for the body that comes, by what the head says of its length. What is too long anyway has
 * none: the parser says so. Throws `overloaded`.
 */
export function reserveBody(
  route: Route,
  { headers }: FastifyRequest,
  bodies: BodyAdmission,
  bodyBytesMax: number,
): BodyPlace | null {
  // The body of a GET is never read.
  if (route.method === 'GET') return null;
  const byteCount = Number(headers['content-length'] ?? 0);
  return bodies.reserve(byteCount <= bodyBytesMax ? byteCount : 0);
}

/** Holds the body's place until the work on it has ended, even if its client has long gone away. */
export function holdBody(
  request: FastifyRequest,
  work: () => StoredReply | Promise<StoredReply>,
): StoredReply | Promise<StoredReply> {
  const { bodyPlace } = request;
  if (bodyPlace === null) return work();
  bodyPlace.isWorkedOn = true;
  const release = () => {
    // The request lives on until a slow client has its reply.
    request.body = undefined;
    bodyPlace.release();
  };
  try {
    const working = work();
    if (working instanceof Promise) working.then(release, release);
    else release();
    return working;
  } catch (error) {
    release();
    throw error;
  }
}
