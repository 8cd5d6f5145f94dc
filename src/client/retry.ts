// When a request is sent again, and after how long. Guarantees that nothing is sent twice that may
// take effect twice.

import type { SagittaClientError } from './error.js';

export interface RetryOptions {
  /** Tries in all, the first included. */
  readonly attemptsMax: number;
  /** Milliseconds before the second try; each further wait is twice as long. */
  readonly delayMsBase: number;
  readonly delayMsMax: number;
}

export const DEFAULT_RETRY: RetryOptions = { attemptsMax: 5, delayMsBase: 100, delayMsMax: 5_000 };

/** The longest wait that a service can impose: longer than that is the caller's decision. */
const RETRY_AFTER_MS_MAX = 30_000;

/** What no other try changes: not implemented, and a disk that is full. */
const LASTING_STATUSES: readonly number[] = [501, 505, 507];

/** Whether the service, not the request, is what failed: for the circuit breaker. */
export function isFailureOfService(error: SagittaClientError): boolean {
  if (error.code === 'network_error' || error.code === 'timeout') return true;
  const { status = 0 } = error;
  return status >= 500 && !LASTING_STATUSES.includes(status);
}

/** `mayRepeat`: whether the request may take effect twice without harm. */
export function isWorthAnother(error: SagittaClientError, mayRepeat: boolean): boolean {
  if ((error.retryAfterMs ?? 0) > RETRY_AFTER_MS_MAX) return false;
  if (error.status === 429) return true;
  // Our first try, whose reply was lost, is still being carried out: its reply will come.
  if (error.code === 'idempotency_in_flight') return true;
  // A refusal of the service had no effect; a gateway's page says nothing about that.
  if (error.status === 503 && error.code !== 'unexpected_reply') return true;
  return mayRepeat && isFailureOfService(error);
}

/** Milliseconds before the try after `attempt`, which counts from 1; `random` is in [0, 1). */
export function waitMsBefore(
  attempt: number,
  error: SagittaClientError,
  options: RetryOptions,
  random: () => number,
): number {
  const waitMsMax = Math.min(options.delayMsMax, options.delayMsBase * 2 ** (attempt - 1));
  // Half of the wait is chance, so that clients refused together do not return together.
  return Math.max(waitMsMax * (0.5 + 0.5 * random()), error.retryAfterMs ?? 0);
}

/** Seconds, or a date as gateways send it; `nowMs` is the time of day. */
export function retryAfterMsOf(headers: Headers, nowMs: number): number | undefined {
  const text = headers.get('retry-after');
  if (text === null) return undefined;
  const seconds = Number(text);
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(text) - nowMs;
  return ms > 0 ? ms : undefined;
}

/** Rejects with the signal's reason once the caller gives up. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
