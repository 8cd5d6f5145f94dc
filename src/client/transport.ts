// Sends one request and returns the parsed reply. Guarantees that nothing is sent twice that may
// take effect twice: what each request says about repeating decides after a lost connection.
// Which paths and bodies exist is the client's matter.

import { errorOfReply, SagittaClientError } from './error.js';

export interface RetryOptions {
  /** Tries in all, the first included. */
  readonly attemptsMax: number;
  /** The wait before the second try; each further wait is twice as long. */
  readonly delayMsBase: number;
  readonly delayMsMax: number;
}

export const DEFAULT_RETRY: RetryOptions = { attemptsMax: 5, delayMsBase: 100, delayMsMax: 5_000 };

/** The service ends a request after 30 s; a reply that is not here after twice that is lost. */
export const DEFAULT_TIMEOUT_MS = 60_000;

export interface TransportOptions {
  /** Where the service is: `http://127.0.0.1:8484`, with or without `/v1`. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  /** Milliseconds that one try may take. */
  readonly timeoutMs?: number;
  readonly retry?: Partial<RetryOptions>;
  /** For tests and for runtimes with a fetch of their own. */
  readonly fetch?: typeof globalThis.fetch;
  /** In [0, 1): spreads the waits of many clients. */
  readonly random?: () => number;
}

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/v1`, encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON; a string is JSON text already. */
  readonly body?: object | string;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Whether a request of which nobody knows if it was carried out may be sent again. Refusals (429,
   * 503) are repeated whatever is said here: they had no effect.
   */
  readonly mayRepeat: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface TransportReply<Body> {
  readonly body: Body;
  readonly headers: Headers;
}

/** Throws SagittaClientError, or the signal's reason when the caller gave up. */
export type Send = <Body>(request: TransportRequest) => Promise<TransportReply<Body>>;

type Attempt<Body> =
  | { readonly kind: 'reply'; readonly reply: TransportReply<Body> }
  | { readonly kind: 'error'; readonly error: SagittaClientError; readonly waitMsMin: number };

export function createTransport(options: TransportOptions): Send {
  const root = rootOf(options.baseUrl);
  const fetch = options.fetch ?? globalThis.fetch;
  const retry = { ...DEFAULT_RETRY, ...options.retry };
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const random = options.random ?? Math.random;

  return async (request) => {
    const url = root + request.path + queryString(request.query ?? {});
    const init = initOf(request, options.apiKey);
    for (let attempt = 1; ; attempt++) {
      const result = await attemptOnce(fetch, url, init, request.signal, timeoutMs);
      if (result.kind === 'reply') return result.reply as TransportReply<never>;
      if (attempt >= retry.attemptsMax || !isWorthAnother(result.error, request.mayRepeat)) {
        throw result.error;
      }
      const waitMsMax = Math.min(retry.delayMsMax, retry.delayMsBase * 2 ** (attempt - 1));
      // Half of the wait is chance, so that clients refused together do not return together.
      const waitMs = waitMsMax * (0.5 + 0.5 * random());
      await sleep(Math.max(waitMs, result.waitMsMin), request.signal);
    }
  };
}

async function attemptOnce<Body>(
  fetch: typeof globalThis.fetch,
  url: string,
  init: RequestInit,
  signal: AbortSignal | undefined,
  timeoutMs: number,
): Promise<Attempt<Body>> {
  const timeout = AbortSignal.timeout(timeoutMs);
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      ...init,
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
    text = await response.text();
  } catch (cause) {
    signal?.throwIfAborted();
    const error = timeout.aborted
      ? new SagittaClientError('timeout', `no reply from ${url} within ${timeoutMs} ms`, {
          cause,
          retryable: true,
        })
      : new SagittaClientError('network_error', `cannot reach ${url}: ${reasonOf(cause)}`, {
          cause,
          retryable: true,
        });
    return { kind: 'error', error, waitMsMin: 0 };
  }
  if (!response.ok) {
    return {
      kind: 'error',
      error: errorOfReply(response.status, text),
      waitMsMin: retryAfterMs(response.headers),
    };
  }
  try {
    const body = JSON.parse(text) as Body;
    return { kind: 'reply', reply: { body, headers: response.headers } };
  } catch {
    const error = new SagittaClientError(
      'unexpected_reply',
      `expected JSON from ${url}, found "${text.trim().slice(0, 200)}"`,
      { status: response.status },
    );
    return { kind: 'error', error, waitMsMin: 0 };
  }
}

function isWorthAnother(error: SagittaClientError, mayRepeat: boolean): boolean {
  if (error.status === 429 || error.status === 503) return true;
  // Our first try, whose reply was lost, is still being carried out: its reply will come.
  if (error.code === 'idempotency_in_flight') return true;
  return mayRepeat && (error.code === 'network_error' || error.code === 'timeout');
}

function initOf(request: TransportRequest, apiKey: string | undefined): RequestInit {
  const headers: Record<string, string> = { accept: 'application/json', ...request.headers };
  if (apiKey !== undefined) headers.authorization = `Bearer ${apiKey}`;
  if (request.body === undefined) return { method: request.method, headers };
  headers['content-type'] ??= 'application/json';
  const { method, body } = request;
  return { method, headers, body: typeof body === 'string' ? body : JSON.stringify(body) };
}

function rootOf(baseUrl: string): string {
  if (!/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw new SagittaClientError(
      'invalid_argument',
      `expected baseUrl to be an address such as http://127.0.0.1:8484, found "${baseUrl}"`,
    );
  }
  return `${baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`;
}

function queryString(query: NonNullable<TransportRequest['query']>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  return parameters.size === 0 ? '' : `?${parameters}`;
}

/** fetch says no more than "fetch failed"; the reason is in a cause, or in several for one host. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof AggregateError && error.cause.errors.length > 0) {
    return reasonOf(error.cause.errors[0]);
  }
  return error.cause === undefined ? error.message : reasonOf(error.cause);
}

/** The longest wait that a server can impose: longer than that is the caller's decision. */
const RETRY_AFTER_MS_MAX = 30_000;

function retryAfterMs(headers: Headers): number {
  const seconds = Number(headers.get('retry-after') ?? 0);
  return seconds > 0 ? Math.min(seconds * 1_000, RETRY_AFTER_MS_MAX) : 0;
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
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
