// The error class of the client, for error replies and for failures to reach the server. Branch on
// `code`; `message` is meant for people.

import type { ErrorCode } from '../../../src/common/errors.js';
import type { Problem, ProblemItem } from './types.js';

/** Codes of errors that do not come from the server. */
export type TransportCode =
  /** The connection could not be opened, or broke before the reply was complete. */
  | 'network_error'
  /** No data arrived for `timeoutMs`. */
  | 'timeout'
  /** The reply is not from Sagitta; it may come from a proxy or another service. */
  | 'unexpected_reply'
  /** The arguments are invalid; nothing was sent. */
  | 'invalid_argument'
  /** Not sent, because the server failed several times in a row; retry after `retryAfterMs`. */
  | 'circuit_open';

interface ErrorDetails {
  readonly status?: number | undefined;
  readonly items?: readonly ProblemItem[] | undefined;
  readonly requestId?: string | undefined;
  readonly retryable?: boolean | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly committedCount?: number | undefined;
  readonly sequence?: number | undefined;
  /** How to fix the problem; only appended to the message, because it names options of this client. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

export class SagittaClientError extends Error {
  readonly code: ErrorCode | TransportCode;
  /** HTTP status; undefined without a reply. */
  readonly status: number | undefined;
  /** What was found, what was expected and where. The message may also say how to fix it. */
  readonly detail: string;
  /** One entry per invalid part of the request, at most 100. */
  readonly items: readonly ProblemItem[];
  /** Identifies the request in the server's log. */
  readonly requestId: string | undefined;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** Milliseconds to wait before the next attempt; undefined when unknown. */
  readonly retryAfterMs: number | undefined;
  /**
   * For a streamed write: how many rows, counted from the first, are durable. After a lost reply the client asks the
   * server; undefined if that failed too.
   */
  readonly committedCount: number | undefined;
  /** `committedCount`, or the highest count that earlier attempts of the call reported; 0 if none did. */
  readonly committedCountAtLeast: number;
  /** The sequence of the write that made the last durable row durable. */
  readonly sequence: number | undefined;

  constructor(code: ErrorCode | TransportCode, detail: string, details: ErrorDetails = {}) {
    const message = details.hint === undefined ? detail : `${detail}; ${details.hint}`;
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'SagittaClientError';
    this.code = code;
    this.status = details.status;
    this.detail = detail;
    this.items = details.items ?? [];
    this.requestId = details.requestId;
    this.retryable = details.retryable ?? false;
    this.retryAfterMs = details.retryAfterMs;
    this.committedCount = details.committedCount;
    this.committedCountAtLeast = details.committedCount ?? 0;
    this.sequence = details.sequence;
  }
}

/** Adds the progress of a streamed write to an error. */
export function noteCommitted(
  error: SagittaClientError,
  known: Partial<Pick<SagittaClientError, 'committedCount' | 'committedCountAtLeast' | 'sequence'>>,
): void {
  Object.assign(error, known);
}

/** The error for an unsuccessful reply with the text `body`. `hint` is used if the reply is not from Sagitta. */
export function errorOfReply(
  status: number,
  body: string,
  { hint, ...details }: Pick<ErrorDetails, 'retryAfterMs' | 'hint'> = {},
): SagittaClientError {
  const problem = parseProblem(body);
  if (problem !== undefined) return errorOfProblem(problem, { status, ...details });
  // The hint may say where a reply that is not from Sagitta comes from.
  const start = body.trim().slice(0, 200);
  return new SagittaClientError(
    'unexpected_reply',
    `expected a problem+json body with status ${status}, found ` +
      (start === '' ? 'an empty body' : `"${start}"`),
    { status, hint, ...details },
  );
}

/** The error for a problem document, from a reply or from the end of a stream. */
export function errorOfProblem(problem: Problem, details: ErrorDetails = {}): SagittaClientError {
  return new SagittaClientError(problem.code, problem.detail, {
    status: problem.status,
    items: problem.errors,
    requestId: problem.request_id,
    retryable: problem.retryable,
    committedCount: problem.committed_count,
    sequence: problem.sequence,
    hint: KEY_HINTS[problem.code],
    ...details,
  });
}

/** How to fix a request that was refused because of its credential. */
const KEY_HINTS: Readonly<Record<string, string>> = {
  credentials_missing: 'pass apiKey to createClient; `sagitta keys create` makes one',
  credentials_invalid: 'check the apiKey that is passed to createClient',
};

/** The value if it is a problem document, otherwise undefined. */
export function asProblem(value: unknown): Problem | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  return 'code' in value && typeof value.code === 'string' && 'detail' in value
    ? (value as Problem)
    : undefined;
}

function parseProblem(body: string): Problem | undefined {
  try {
    return asProblem(JSON.parse(body));
  } catch {
    return undefined;
  }
}
