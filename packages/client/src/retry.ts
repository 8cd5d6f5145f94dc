// The retry policy: which errors are retryable, and the backoff. A request that might take effect twice
// is never sent twice.

import { whenAborted } from '../../../src/common/when-aborted.js';
import type { SagittaClientError } from './error.js';

export interface RetryOptions {
  /** Maximum number of attempts, including the first. */
  readonly attemptsMax: number;
  /** Milliseconds before the second attempt; the wait doubles with each attempt. */
  readonly delayMsBase: number;
  readonly delayMsMax: number;
}

export const DEFAULT_RETRY: RetryOptions = { attemptsMax: 5, delayMsBase: 100, delayMsMax: 5_000 };

/** The longest Retry-After that is honoured; beyond it, the error is left to the caller. */
const RETRY_AFTER_MS_MAX = 30_000;

/** Statuses that a retry cannot change: not implemented, and a full disk. */
const PERMANENT_STATUSES: readonly number[] = [501, 505, 507];

/** Whether the server failed rather than the request; the circuit breaker counts these errors. */
export function isServerFailure(error: SagittaClientError): boolean {
  if (error.code === 'network_error' || error.code === 'timeout') return true;
  const { status = 0 } = error;
  return status >= 500 && !PERMANENT_STATUSES.includes(status);
}

/** `isIdempotent`: whether the request can safely take effect twice. */
export function isRetryable(error: SagittaClientError, isIdempotent: boolean): boolean {
  if ((error.retryAfterMs ?? 0) > RETRY_AFTER_MS_MAX) return false;
  if (error.status === 429) return true;
  // The first attempt, whose reply was lost, is still being executed; its reply will be stored.
  if (error.code === 'idempotency_in_flight') return true;
  // Sagitta's own 503 means that nothing was executed; a gateway's 503 does not.
  if (error.status === 503 && error.code !== 'unexpected_reply') return true;
  return isIdempotent && isServerFailure(error);
}

/** Milliseconds to wait after attempt number `attempt` (from 1); `random` returns values in [0, 1). */
export function backoffMs(
  attempt: number,
  error: SagittaClientError,
  options: RetryOptions,
  random: () => number,
): number {
  const waitMsMax = Math.min(options.delayMsMax, options.delayMsBase * 2 ** (attempt - 1));
  // Jitter of half the wait, so that clients rejected together do not retry together.
  return Math.max(waitMsMax * (0.5 + 0.5 * random()), error.retryAfterMs ?? 0);
}

/** Parses Retry-After, in seconds or as a date; `nowMs` is the Unix time. */
export function retryAfterMsOf(headers: Headers, nowMs: number): number | undefined {
  const text = headers.get('retry-after');
  if (text === null) return undefined;
  const seconds = Number(text);
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(text) - nowMs;
  return ms > 0 ? ms : undefined;
}

/** Waits; rejects with the signal's reason when the caller aborts. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(() => {
      ignoreAbort();
      resolve();
    }, ms);
    const ignoreAbort = whenAborted(signal, () => {
      clearTimeout(timer);
      reject(signal?.reason);
    });
  });
}
