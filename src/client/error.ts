// The one error that the client throws, whether the service refused or could not be reached. A
// caller branches on `code`; `message` is for people.

import type { ErrorCode } from '../common/errors.js';
import type { Problem, ProblemItem } from './types.js';

/** What can go wrong before or after the service has its say. */
export type TransportCode =
  /** No connection, or it broke before the whole reply was here. */
  | 'network_error'
  /** Nothing came for `timeoutMs`. */
  | 'timeout'
  /** The reply is not Sagitta's: a proxy's page, perhaps, or another service's. */
  | 'unexpected_reply'
  /** The arguments cannot be sent. */
  | 'invalid_argument'
  /** Not sent: the service failed several times in a row, and is left alone for `retryAfterMs`. */
  | 'circuit_open';

export interface ErrorFacts {
  readonly status?: number | undefined;
  readonly items?: readonly ProblemItem[] | undefined;
  readonly requestId?: string | undefined;
  readonly retryable?: boolean | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly committedCount?: number | undefined;
  readonly sequence?: number | undefined;
  readonly cause?: unknown;
}

export class SagittaClientError extends Error {
  readonly code: ErrorCode | TransportCode;
  /** HTTP status; undefined when there was no reply. */
  readonly status: number | undefined;
  /** What was found, what was expected and where, in a sentence. */
  readonly detail: string;
  /** One finding for each bad place in the request, at most 100. */
  readonly items: readonly ProblemItem[];
  /** Names the request in the service's log. */
  readonly requestId: string | undefined;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** Milliseconds before which another try is in vain; undefined where nobody said. */
  readonly retryAfterMs: number | undefined;
  /**
   * Of a streamed write: how many of its rows are durable, counted from its first. Undefined where
   * the service could not say, because the connection broke.
   */
  readonly committedCount: number | undefined;
  /** The write that made the last of those rows durable. */
  readonly sequence: number | undefined;

  constructor(code: ErrorCode | TransportCode, detail: string, facts: ErrorFacts = {}) {
    super(detail, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'SagittaClientError';
    this.code = code;
    this.status = facts.status;
    this.detail = detail;
    this.items = facts.items ?? [];
    this.requestId = facts.requestId;
    this.retryable = facts.retryable ?? false;
    this.retryAfterMs = facts.retryAfterMs;
    this.committedCount = facts.committedCount;
    this.sequence = facts.sequence;
  }
}

/** The error of a reply that is not a success; `body` is its text. */
export function errorOfReply(
  status: number,
  body: string,
  facts: Pick<ErrorFacts, 'retryAfterMs'> = {},
): SagittaClientError {
  const problem = parseProblem(body);
  if (problem !== undefined) return errorOfProblem(problem, { status, ...facts });
  const start = body.trim().slice(0, 200);
  return new SagittaClientError(
    'unexpected_reply',
    `expected a problem+json body with status ${status}, found ` +
      (start === '' ? 'an empty body' : `"${start}"`),
    { status, ...facts },
  );
}

/** The error that a problem describes, in a reply or at the end of a stream. */
export function errorOfProblem(problem: Problem, facts: ErrorFacts = {}): SagittaClientError {
  return new SagittaClientError(problem.code, problem.detail, {
    status: problem.status,
    items: problem.errors,
    requestId: problem.request_id,
    retryable: problem.retryable,
    committedCount: problem.committed_count,
    sequence: problem.sequence,
    ...facts,
  });
}

/** Undefined when the value is no problem of the service. */
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
