// What stands between the head of a request and its handler, in one place for the application and
// its routes: how much one principal may ask, how many bytes may be held, and whether we keep up.

import type { FastifyRequest } from 'fastify';
import type { Limits } from '../../common/limits.js';
import type { Route, RouteReply } from '../route.js';
import { BodyAdmission, type BodyReservation } from './body-admission.js';
import { EventLoopMonitor } from './event-loop-monitor.js';
import { shareHolder } from './memory-budget.js';
import { type Allowance, RateLimiter } from './rate-limit.js';
import { ReplyAdmission, type ReplyReservation } from './reply-admission.js';

export interface Guards {
  readonly rates: RateLimiter;
  readonly bodies: BodyAdmission;
  readonly replies: ReplyAdmission;
  readonly eventLoop: EventLoopMonitor;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** What its principal has left; null where nothing is counted, or nobody is known yet. */
    allowance: Allowance | null;
    /** What its body holds; null where there is none. */
    bodyReservation: BodyReservation | null;
    /** What its reply holds. */
    replyReservation: ReplyReservation;
  }
}

/** `nowMs`: milliseconds of a clock that never goes back. */
export function createGuards(limits: Limits, nowMs: () => number): Guards {
  return {
    rates: new RateLimiter({ limits, nowMs }),
    bodies: new BodyAdmission({ bytesMax: limits.bodyBytesInFlightMax }),
    replies: new ReplyAdmission({ bytesMax: limits.replyBytesInFlightMax }),
    eventLoop: new EventLoopMonitor({ delayMsMax: limits.eventLoopDelayMsMax, nowMs }),
  };
}

/** A place for the body that comes; it is taken as the body arrives. Throws `overloaded`. */
export function openBodyReservation(
  route: Route,
  { principal, headers }: FastifyRequest,
  bodies: BodyAdmission,
): BodyReservation | null {
  // The body of a GET is never read.
  if (route.method === 'GET') return null;
  const principalId = shareHolder(principal.id);
  if (Number(headers['content-length'] ?? 0) > 0) bodies.check(principalId);
  return bodies.open(principalId);
}

/** Holds the body's place until the work on it has ended, even if its client has long gone away. */
export function releaseBodyAfter(
  request: FastifyRequest,
  work: () => RouteReply | Promise<RouteReply>,
): RouteReply | Promise<RouteReply> {
  const { bodyReservation: bodyPlace } = request;
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
