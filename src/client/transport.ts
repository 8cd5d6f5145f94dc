// Sends one request and returns its reply, whole or as a stream; asks again where that is safe and
// worth it (retry.ts), and not at all while the service is left alone (circuit-breaker.ts). Which
// paths and bodies exist is the client's matter.

import { type Admission, CircuitBreaker, type CircuitBreakerOptions } from './circuit-breaker.js';
import { errorOfReply, SagittaClientError } from './error.js';
import { IdleTimer } from './idle-timer.js';
import { ReplyBody } from './reply-body.js';
import {
  DEFAULT_RETRY,
  isFailureOfService,
  isWorthAnother,
  type RetryOptions,
  retryAfterMsOf,
  sleep,
  waitMsBefore,
} from './retry.js';
import {
  type ByteSource,
  blobUpload,
  canStreamUploads,
  openSource,
  type Resendable,
  streamUpload,
  type Upload,
} from './upload.js';

/** The service ends a request after 30 s; a reply that is not here after twice that is lost. */
export const DEFAULT_TIMEOUT_MS = 60_000;

export const DEFAULT_CIRCUIT_BREAKER: CircuitBreakerOptions = {
  failuresMax: 10,
  coolDownMs: 5_000,
};

export interface TransportOptions {
  /** Where the service is: `http://127.0.0.1:8484`, with or without `/v1`. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  /** Milliseconds that one try may take; of a stream, that may pass without a byte (60 000). */
  readonly timeoutMs?: number;
  /** At most 5 tries, with waits of 0.1 s, 0.2 s, … between them. */
  readonly retry?: Partial<RetryOptions>;
  /**
   * After 10 failures in a row (or twice `retry.attemptsMax`, if that is more, so that no single
   * call opens it) nothing is sent for 5 s. False: never.
   */
  readonly circuitBreaker?: Partial<CircuitBreakerOptions> | false;
  /**
   * How streams are sent: as they come, or collected into a Blob first. Browsers collect unless
   * told otherwise, since they send streams over HTTP/2 alone.
   */
  readonly uploads?: 'stream' | 'blob';
  /** For tests and for runtimes with a fetch of their own. */
  readonly fetch?: typeof globalThis.fetch;
  /** In [0, 1): spreads the waits of many clients. */
  readonly random?: () => number;
  /** Milliseconds of a clock that does not go backwards; the circuit breaker's. */
  readonly now?: () => number;
}

export interface StreamBody {
  readonly source: Resendable<ByteSource>;
  readonly contentType: string;
}

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/v1`, encoded. */
  readonly path: string;
  /** Served at the root, as are probes. */
  readonly isOperational?: boolean;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON; a string is JSON text already. */
  readonly body?: object | string;
  /** In place of `body`. */
  readonly stream?: StreamBody;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Whether a request of which nobody knows if it was carried out may be sent again. Refusals (429,
   * 503) are repeated whatever is said here: they had no effect.
   */
  readonly mayRepeat: boolean;
  /** Also a reply of that status is one. */
  readonly alsoStatus?: number;
  readonly signal?: AbortSignal | undefined;
  /** In place of the client's. */
  readonly timeoutMs?: number | undefined;
}

export interface TransportReply<Body> {
  readonly body: Body;
  readonly headers: Headers;
}

/** All throw SagittaClientError, or the signal's reason when the caller gave up. */
export interface Transport {
  /** The reply parsed as JSON. */
  send<Body>(request: TransportRequest): Promise<TransportReply<Body>>;
  sendForText(request: TransportRequest): Promise<TransportReply<string>>;
  /** Repeats until the reply begins; what comes after that cannot be taken back. */
  open(request: TransportRequest): Promise<TransportReply<ReplyBody>>;
}

/** Throws SagittaClientError (`invalid_argument`) when `baseUrl` is not an HTTP address. */
export function createTransport(options: TransportOptions): Transport {
  const root = rootOf(options.baseUrl);
  const fetch = options.fetch ?? globalThis.fetch;
  const retry = { ...DEFAULT_RETRY, ...options.retry };
  const random = options.random ?? Math.random;
  const breaker = breakerOf(options, retry.attemptsMax);
  const areStreamed =
    options.uploads === undefined ? canStreamUploads() : options.uploads === 'stream';

  /** One try. `read` takes the reply over, with its timer. */
  async function attempt<Result>(
    url: string,
    request: TransportRequest,
    read: (response: Response, exchange: Exchange) => Promise<Result>,
  ): Promise<Result> {
    const { signal } = request;
    const timeoutMs = request.timeoutMs ?? options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    // How far a blob has come is not known, so that no time is too long.
    const isBlob = request.stream !== undefined && !areStreamed;
    const timer = new IdleTimer(isBlob ? Number.POSITIVE_INFINITY : timeoutMs, signal);
    let upload: Upload | undefined;
    const exchange: Exchange = {
      timer,
      failureOf(cause, byteCount) {
        if (upload?.failure !== undefined) return upload.failure.error;
        if (signal?.aborted) return signal.reason;
        return timer.isExpired ? timedOut(url, timeoutMs, cause) : broken(url, cause, byteCount);
      },
      end() {
        timer.close();
        if (upload === undefined || upload.isComplete) return;
        upload.stop();
        timer.abort(new Error('the reply came before the end of the body'));
      },
    };
    try {
      if (request.stream !== undefined) {
        const source = openSource(request.stream.source);
        upload = areStreamed ? streamUpload(source, timer) : await blobUpload(source, signal);
        if (upload.failure !== undefined) throw upload.failure.error;
      }
      const init = { ...initOf(request, options.apiKey), ...upload?.init, signal: timer.signal };
      const response = await fetch(url, init);
      const isSuccess = response.ok || response.status === request.alsoStatus;
      if (isSuccess) return await read(response, exchange);
      const retryAfterMs = retryAfterMsOf(response.headers, Date.now());
      const error = errorOfReply(response.status, await response.text(), { retryAfterMs });
      exchange.end();
      throw error;
    } catch (cause) {
      exchange.end();
      throw cause instanceof SagittaClientError ? cause : exchange.failureOf(cause, 0);
    }
  }

  async function withRetries<Result>(
    request: TransportRequest,
    read: (response: Response, exchange: Exchange) => Promise<Result>,
  ): Promise<Result> {
    const url = (request.isOperational ? root : `${root}/v1`) + request.path + queryString(request);
    const isOnce = request.stream !== undefined && typeof request.stream.source !== 'function';
    let last: SagittaClientError | undefined;
    for (let attemptCount = 1; ; attemptCount++) {
      const admission = breaker?.admit() ?? UNGUARDED;
      // What happened to this very call says more than that others have failed, too.
      if (admission.kind === 'refused') throw last ?? circuitOpen(url, admission.retryAfterMs);
      try {
        const result = await attempt(url, request, read);
        admission.settle('answered');
        return result;
      } catch (error) {
        if (!(error instanceof SagittaClientError)) {
          admission.settle('unknown');
          throw error;
        }
        admission.settle(isFailureOfService(error) ? 'failed' : 'answered');
        const isLast = isOnce || attemptCount >= retry.attemptsMax;
        if (isLast || !isWorthAnother(error, request.mayRepeat)) throw error;
        last = error;
        await sleep(waitMsBefore(attemptCount, error, retry, random), request.signal);
      }
    }
  }

  const sendForText = (request: TransportRequest) =>
    withRetries(request, async (response, exchange) => {
      const body = await response.text();
      exchange.end();
      return { body, headers: response.headers, status: response.status, url: response.url };
    });

  return {
    sendForText,
    async send<Body>(request: TransportRequest) {
      const { body, headers, status, url } = await sendForText(request);
      return { body: parseJson<Body>(body, status, url), headers };
    },
    open: (request) =>
      withRetries(request, async (response, exchange) => ({
        headers: response.headers,
        body: new ReplyBody(response.body, {
          timer: exchange.timer,
          failureOf: exchange.failureOf,
          onEnd: exchange.end,
        }),
      })),
  };
}

/** What a try has under way. */
interface Exchange {
  readonly timer: IdleTimer;
  failureOf(cause: unknown, byteCount: number): unknown;
  end(): void;
}

const UNGUARDED: Admission = { kind: 'admitted', settle() {} };

function breakerOf(options: TransportOptions, attemptsMax: number): CircuitBreaker | undefined {
  if (options.circuitBreaker === false) return undefined;
  const failuresMax = Math.max(DEFAULT_CIRCUIT_BREAKER.failuresMax, 2 * attemptsMax);
  return new CircuitBreaker(
    { ...DEFAULT_CIRCUIT_BREAKER, failuresMax, ...options.circuitBreaker },
    options.now ?? (() => performance.now()),
  );
}

function initOf(request: TransportRequest, apiKey: string | undefined): RequestInit {
  const headers: Record<string, string> = { accept: 'application/json', ...request.headers };
  if (apiKey !== undefined) headers.authorization = `Bearer ${apiKey}`;
  const { method, body, stream } = request;
  if (stream !== undefined) headers['content-type'] = stream.contentType;
  if (body === undefined) return { method, headers };
  headers['content-type'] ??= 'application/json';
  return { method, headers, body: typeof body === 'string' ? body : JSON.stringify(body) };
}

/** Without `/v1`. */
function rootOf(baseUrl: string): string {
  if (!/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw new SagittaClientError(
      'invalid_argument',
      `expected baseUrl to be an address such as http://127.0.0.1:8484, found "${baseUrl}"`,
    );
  }
  return baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '');
}

function queryString({ query = {} }: TransportRequest): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  return parameters.size === 0 ? '' : `?${parameters}`;
}

function parseJson<Body>(text: string, status: number, url: string): Body {
  try {
    return JSON.parse(text) as Body;
  } catch {
    const start = text.trim().slice(0, 200);
    const detail = `expected JSON from ${url}, found "${start}"`;
    throw new SagittaClientError('unexpected_reply', detail, { status });
  }
}

function circuitOpen(url: string, retryAfterMs: number): SagittaClientError {
  return new SagittaClientError(
    'circuit_open',
    `not sent to ${url}: too many requests failed in a row; the next try may be in ${Math.ceil(retryAfterMs)} ms`,
    { retryable: true, retryAfterMs },
  );
}

function timedOut(url: string, timeoutMs: number, cause: unknown): SagittaClientError {
  const detail = `no reply from ${url} within ${timeoutMs} ms`;
  return new SagittaClientError('timeout', detail, { cause, retryable: true });
}

function broken(url: string, cause: unknown, byteCount: number): SagittaClientError {
  const detail =
    byteCount === 0
      ? `cannot reach ${url}: ${reasonOf(cause)}`
      : `the reply of ${url} broke off after ${byteCount} bytes: ${reasonOf(cause)}`;
  return new SagittaClientError('network_error', detail, { cause, retryable: true });
}

/** fetch says no more than "fetch failed"; the reason is in a cause, or in several for one host. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof AggregateError && error.cause.errors.length > 0) {
    return reasonOf(error.cause.errors[0]);
  }
  return error.cause === undefined ? error.message : reasonOf(error.cause);
}
