// Sends one request and returns its reply, whole or as a stream. Retries where that is safe
// (retry.ts) and fails fast while the circuit breaker is open. Knows nothing about routes and bodies.

import {
  type Admission,
  CircuitBreaker,
  type CircuitBreakerOptions,
} from '../../../src/common/circuit-breaker.js';
import { connectionHint } from './connection-hint.js';
import { encodeRequestJson } from './encode-json.js';
import { errorOfReply, noteCommitted, SagittaClientError } from './error.js';
import { IdleTimer } from './idle-timer.js';
import { requireKnown } from './known-options.js';
import { proxyHint, shownUrl } from './proxy.js';
import { ReplyBody } from './reply-body.js';
import { type ParseReply, parseReply } from './reply-json.js';
import {
  backoffMs,
  DEFAULT_RETRY,
  isRetryable,
  isServerFailure,
  type RetryOptions,
  retryAfterMsOf,
  sleep,
} from './retry.js';
import { ClusterSession } from './session.js';
import {
  type ByteSource,
  blobUpload,
  canStreamUploads,
  openResendable,
  type Resendable,
  requireIterable,
  streamUpload,
  type Upload,
} from './upload.js';
import { pointerTo } from './values.js';
import { logOnce, type OnWarning, warningsOf } from './warnings.js';

/** Twice the server's request deadline of 30 s; a reply that takes longer is lost. */
const DEFAULT_TIMEOUT_MS = 60_000;

const DEFAULT_CIRCUIT_BREAKER: CircuitBreakerOptions = {
  failuresMax: 10,
  coolDownMs: 5_000,
};

export interface TransportOptions {
  /** The server's address, such as `http://127.0.0.1:8484`, with or without `/v1`. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  /** Milliseconds per attempt or, for streams, without a byte; 60 000 when absent. */
  readonly timeoutMs?: number;
  /** By default at most 5 attempts, with waits of 0.1 s, 0.2 s, … between them. */
  readonly retry?: Partial<RetryOptions>;
  /**
   * By default nothing is sent for 5 s after 10 consecutive failures, or after twice `retry.attemptsMax`
   * if that is more, so that no single call opens the breaker. False disables it.
   */
  readonly circuitBreaker?: Partial<CircuitBreakerOptions> | false;
  /**
   * Whether uploads are streamed or collected into a Blob first. In browsers the default is `blob`,
   * since they can stream uploads only over HTTP/2.
   */
  readonly uploads?: 'stream' | 'blob';
  /**
   * Called with each warning in a reply, such as a path in a filter that no vector has. By default each warning is
   * written once with `console.warn`. If this function throws, the call is rejected.
   */
  readonly onWarning?: OnWarning;
  /**
   * Whether integers in metadata, facets, stats and groups that a number cannot hold, such as 2^53 + 1, are read as
   * `bigint`. By default they are rounded to the nearest number, as the declared types say. To write them exactly, pass
   * a `bigint`.
   */
  readonly exactIntegers?: boolean;
  /** Replacement for the global fetch. */
  readonly fetch?: typeof globalThis.fetch;
  /** Random numbers in [0, 1) for the jitter of retries. */
  readonly random?: () => number;
  /** Monotonic clock of the circuit breaker, in milliseconds. */
  readonly now?: () => number;
}

interface StreamBody {
  readonly source: Resendable<ByteSource>;
  readonly contentType: string;
}

type Parameter = string | number | boolean;

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below `/v1`, already encoded. */
  readonly path: string;
  /** Whether the path is at the root instead, as for probes. */
  readonly isOperational?: boolean;
  /** Arrays are sent as JSON. */
  readonly query?: Readonly<Record<string, Parameter | readonly string[] | undefined>>;
  /** Sent as JSON; a string is already JSON text. */
  readonly body?: object | string;
  /** A streamed body, in place of `body`. */
  readonly stream?: StreamBody;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Whether the request may be sent again when it is unknown if it was executed. Replies 429 and 503
   * are always retried, because the server executed nothing.
   */
  readonly isIdempotent: boolean;
  /** An additional status that counts as success. */
  readonly alsoStatus?: number;
  readonly signal?: AbortSignal | undefined;
  /** Overrides the client's timeout. */
  readonly timeoutMs?: number | undefined;
}

export interface TransportReply<Body> {
  readonly body: Body;
  readonly headers: Headers;
}

/** All methods throw SagittaClientError, or the signal's reason when the caller aborts. */
export interface Transport {
  /** Parses replies, as the client's options say. */
  readonly parse: ParseReply;
  /** Sends a request and parses the reply as JSON. */
  send<Body>(request: TransportRequest): Promise<TransportReply<Body>>;
  sendForText(request: TransportRequest): Promise<TransportReply<string>>;
  /** Sends a request and streams the reply. Retries only until the reply begins. */
  open(request: TransportRequest): Promise<TransportReply<ReplyBody>>;
}

/** State that all attempts share. */
interface TransportState {
  readonly root: string;
  readonly apiKey: string | undefined;
  readonly timeoutMs: number;
  readonly retry: RetryOptions;
  readonly breaker: CircuitBreaker | undefined;
  readonly session: ClusterSession;
  /** Whether uploads are streamed or collected into a Blob. */
  readonly streamsUploads: boolean;
  readonly fetch: typeof globalThis.fetch;
  readonly random: () => number;
}

/** Reads the reply of an attempt, and finishes the attempt. */
type ReadReply<Result> = (response: Response, attempt: Attempt) => Promise<Result>;

/** Throws SagittaClientError (`invalid_argument`) when `baseUrl` is not an HTTP address. */
export function createTransport(options: TransportOptions): Transport {
  requireOptions(options);
  requireKnown(options.retry ?? {}, Object.keys(DEFAULT_RETRY));
  requireKnown(options.circuitBreaker || {}, Object.keys(DEFAULT_CIRCUIT_BREAKER));
  const retry = { ...DEFAULT_RETRY, ...options.retry };
  const state: TransportState = {
    root: rootOf(options.baseUrl),
    apiKey: options.apiKey,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    retry,
    breaker: breakerOf(options, retry.attemptsMax),
    session: new ClusterSession(),
    streamsUploads:
      options.uploads === undefined ? canStreamUploads() : options.uploads === 'stream',
    fetch: options.fetch ?? globalThis.fetch,
    random: options.random ?? Math.random,
  };
  const { onWarning = logOnce() } = options;
  const parse = parseReply(options.exactIntegers === true);
  const passWarnings = ({ method, path }: TransportRequest, body: unknown, headers: Headers) => {
    for (const warning of warningsOf(body, headers)) onWarning(warning, { method, path });
  };
  const sendForText = (request: TransportRequest) =>
    withRetries(state, request, async (response, attempt) => {
      const body = await response.text();
      attempt.finish();
      return {
        body,
        headers: response.headers,
        status: response.status,
        url: response.url || state.root,
      };
    });
  return {
    parse,
    sendForText,
    async send<Body>(request: TransportRequest) {
      const { body: text, headers, status, url } = await sendForText(request);
      const body = parseJson<Body>(parse, text, status, url);
      passWarnings(request, body, headers);
      return { body, headers };
    },
    async open(request) {
      const reply = await withRetries(state, request, async (response, attempt) => ({
        headers: response.headers,
        body: new ReplyBody(response.body, {
          timer: attempt.timer,
          toError: attempt.toError,
          onEnd: attempt.finish,
        }),
      }));
      try {
        passWarnings(request, undefined, reply.headers);
      } catch (error) {
        await reply.body.cancel();
        throw error;
      }
      return reply;
    },
  };
}

async function withRetries<Result>(
  state: TransportState,
  request: TransportRequest,
  read: ReadReply<Result>,
): Promise<Result> {
  const { root, breaker, retry, random } = state;
  const url = (request.isOperational ? root : `${root}/v1`) + request.path + queryString(request);
  const isSentOnce = request.stream !== undefined && typeof request.stream.source !== 'function';
  const text = typeof request.body === 'object' ? encodeRequestJson(request.body) : request.body;
  let last: SagittaClientError | undefined;
  let committedCountAtLeast = 0;
  for (let attemptCount = 1; ; attemptCount++) {
    const admission = breaker?.admit() ?? UNGUARDED;
    // The last error of this call is more useful than a report that the breaker is open.
    if (admission.kind === 'rejected') throw last ?? circuitOpen(url, admission.retryAfterMs);
    try {
      const result = await runAttempt(state, url, { ...request, text }, read);
      admission.settle('success');
      return result;
    } catch (error) {
      if (!(error instanceof SagittaClientError)) {
        admission.settle('unknown');
        throw error;
      }
      admission.settle(isServerFailure(error) ? 'failure' : 'success');
      // A later attempt may not report what an earlier attempt made durable.
      committedCountAtLeast = Math.max(committedCountAtLeast, error.committedCountAtLeast);
      noteCommitted(error, { committedCountAtLeast });
      const isLast = isSentOnce || attemptCount >= retry.attemptsMax;
      if (isLast || !isRetryable(error, request.isIdempotent)) throw error;
      last = error;
      await sleep(backoffMs(attemptCount, error, retry, random), request.signal);
    }
  }
}

async function runAttempt<Result>(
  state: TransportState,
  url: string,
  request: EncodedRequest,
  read: ReadReply<Result>,
): Promise<Result> {
  // Not called as a method: in browsers, fetch accepts no other `this`.
  const { fetch, streamsUploads } = state;
  const { signal } = request;
  const timeoutMs = request.timeoutMs ?? state.timeoutMs;
  // The progress of a Blob upload is unknown, so it has no timeout.
  const isBlob = request.stream !== undefined && !streamsUploads;
  const timer = new IdleTimer(isBlob ? Number.POSITIVE_INFINITY : timeoutMs, signal);
  let upload: Upload | undefined;
  const attempt: Attempt = {
    timer,
    toError(cause, byteCount) {
      if (upload?.failure !== undefined) return upload.failure.error;
      if (signal?.aborted) return signal.reason;
      return timer.isExpired
        ? timeoutError(url, timeoutMs, cause)
        : networkError(url, cause, byteCount);
    },
    finish() {
      timer.close();
      if (upload === undefined || upload.isComplete) return;
      upload.stop();
      timer.abort(new Error('the reply arrived before the request body was sent'));
    },
  };
  try {
    if (request.stream !== undefined) {
      const source = requireIterable(openResendable(request.stream.source), BYTES);
      upload = streamsUploads ? streamUpload(source, timer) : await blobUpload(source, signal);
      if (upload.failure !== undefined) throw upload.failure.error;
    }
    const init = { ...initOf(request, state), ...upload?.init, signal: timer.signal };
    const response = await fetch(url, init);
    state.session.record(response.headers);
    const isSuccess = response.ok || response.status === request.alsoStatus;
    if (isSuccess) return await read(response, attempt);
    const retryAfterMs = retryAfterMsOf(response.headers, Date.now());
    const hint = proxyHint(url);
    const error = errorOfReply(response.status, await response.text(), { retryAfterMs, hint });
    attempt.finish();
    throw error;
  } catch (cause) {
    attempt.finish();
    throw cause instanceof SagittaClientError ? cause : attempt.toError(cause, 0);
  }
}

type EncodedRequest = Omit<TransportRequest, 'body'> & { readonly text: string | undefined };

/** One attempt in flight. */
interface Attempt {
  readonly timer: IdleTimer;
  /** The error to throw for a failure after `byteCount` bytes of the reply. */
  toError(cause: unknown, byteCount: number): unknown;
  /** Stops the timer, and the upload if it is not complete. */
  finish(): void;
}

const BYTES = 'an iterable of Uint8Arrays, or a function that returns one';

const UNGUARDED: Admission = { kind: 'admitted', settle() {} };

function breakerOf(options: TransportOptions, attemptsMax: number): CircuitBreaker | undefined {
  if (options.circuitBreaker === false) return undefined;
  const failuresMax = Math.max(DEFAULT_CIRCUIT_BREAKER.failuresMax, 2 * attemptsMax);
  return new CircuitBreaker(
    { ...DEFAULT_CIRCUIT_BREAKER, failuresMax, ...options.circuitBreaker },
    options.now ?? (() => performance.now()),
  );
}

function initOf(
  request: EncodedRequest,
  { apiKey, session }: Pick<TransportState, 'apiKey' | 'session'>,
): RequestInit {
  const headers: Record<string, string> = {
    accept: 'application/json',
    ...session.headers,
    ...request.headers,
  };
  if (apiKey !== undefined) headers.authorization = `Bearer ${apiKey}`;
  const { method, text, stream } = request;
  if (stream !== undefined) headers['content-type'] = stream.contentType;
  if (text === undefined) return { method, headers };
  headers['content-type'] ??= 'application/json';
  return { method, headers, body: text };
}

const OPTIONS: Readonly<Record<keyof TransportOptions, true>> = {
  baseUrl: true,
  apiKey: true,
  timeoutMs: true,
  retry: true,
  circuitBreaker: true,
  uploads: true,
  onWarning: true,
  exactIntegers: true,
  fetch: true,
  random: true,
  now: true,
};

/** Throws for options that JavaScript programs get wrong. */
function requireOptions(options: unknown): void {
  if (typeof options === 'object' && options !== null) {
    requireKnown(options, Object.keys(OPTIONS));
    return;
  }
  const found = typeof options === 'string' ? `"${shownUrl(options)}"` : String(options);
  throw new SagittaClientError(
    'invalid_argument',
    `createClient expects an object such as { baseUrl: 'http://127.0.0.1:8484' }, found ${found}`,
  );
}

/** The base URL without `/v1`. */
function rootOf(baseUrl: string): string {
  if (typeof baseUrl !== 'string' || !/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl)) {
    const found = typeof baseUrl === 'string' ? `"${shownUrl(baseUrl)}"` : String(baseUrl);
    throw new SagittaClientError(
      'invalid_argument',
      `baseUrl must be a URL such as http://127.0.0.1:8484, found ${found}`,
    );
  }
  const { origin, pathname, username, password } = new URL(baseUrl);
  const surplus =
    username !== '' || password !== ''
      ? 'a user name or a password, which requests do not send: use an API key'
      : /[?#]/.test(baseUrl)
        ? 'a query or a fragment, which belong to requests'
        : undefined;
  if (surplus !== undefined) {
    const detail = `baseUrl must be an address alone, found ${shownUrl(baseUrl)} with ${surplus}`;
    throw new SagittaClientError('invalid_argument', detail);
  }
  return (origin + pathname).replace(/\/+$/, '').replace(/\/v1$/, '');
}

function queryString({ query = {} }: TransportRequest): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    const text = Array.isArray(value)
      ? encodeRequestJson(value, pointerTo('', name))
      : String(value);
    parameters.set(name, text);
  }
  return parameters.size === 0 ? '' : `?${parameters}`;
}

function parseJson<Body>(parse: ParseReply, text: string, status: number, url: string): Body {
  try {
    return parse(text) as Body;
  } catch {
    const start = text.trim().slice(0, 200);
    const detail = `expected JSON from ${shownUrl(url)}, found "${start}"`;
    throw new SagittaClientError('unexpected_reply', detail, { status, hint: proxyHint(url) });
  }
}

function circuitOpen(url: string, retryAfterMs: number): SagittaClientError {
  return new SagittaClientError(
    'circuit_open',
    `not sent to ${shownUrl(url)}: too many requests failed in a row; retry in ${Math.ceil(retryAfterMs)} ms`,
    { retryable: true, retryAfterMs },
  );
}

function timeoutError(url: string, timeoutMs: number, cause: unknown): SagittaClientError {
  const detail = `no reply from ${shownUrl(url)} within ${timeoutMs} ms`;
  return new SagittaClientError('timeout', detail, {
    cause,
    retryable: true,
    hint: proxyHint(url),
  });
}

function networkError(url: string, cause: unknown, byteCount: number): SagittaClientError {
  const detail =
    byteCount === 0
      ? `cannot reach ${shownUrl(url)}: ${reasonOf(cause)}`
      : `the reply from ${shownUrl(url)} was cut off after ${byteCount} bytes: ${reasonOf(cause)}`;
  const { location } = globalThis as { readonly location?: { readonly origin: string } };
  const hint = byteCount === 0 ? connectionHint(cause, url, location?.origin) : undefined;
  return new SagittaClientError('network_error', detail, { cause, retryable: true, hint });
}

/** The reason behind "fetch failed": the innermost cause, or the first of those for several addresses. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof AggregateError && error.cause.errors.length > 0) {
    return reasonOf(error.cause.errors[0]);
  }
  if (error.cause !== undefined) return reasonOf(error.cause);
  // OpenSSL's messages also contain positions in its source code.
  return 'reason' in error && typeof error.reason === 'string' ? error.reason : error.message;
}
