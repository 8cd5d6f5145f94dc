// The one error that the client throws, whether the service refused or could not be reached. A
// caller branches on `code`; `message` is for people.

import type { ErrorCode } from '../errors.js';
import type { Problem, ProblemItem } from './types.js';

/** What can go wrong before or after the service has its say. */
export type TransportCode =
  /** No connection, or it broke before the whole reply was here. */
  | 'network_error'
  /** No whole reply within `timeoutMs`. */
  | 'timeout'
  /** The reply is not Sagitta's: a proxy's page, perhaps, or another service's. */
  | 'unexpected_reply'
  /** The arguments cannot be sent. */
  | 'invalid_argument';

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

  constructor(
    code: ErrorCode | TransportCode,
    detail: string,
    options: {
      status?: number;
      items?: readonly ProblemItem[];
      requestId?: string;
      retryable?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'SagittaClientError';
    this.code = code;
    this.status = options.status;
    this.detail = detail;
    this.items = options.items ?? [];
    this.requestId = options.requestId;
    this.retryable = options.retryable ?? false;
  }
}

/** The error of a reply that is not a success; `body` is its text. */
export function errorOfReply(status: number, body: string): SagittaClientError {
  const problem = parseProblem(body);
  if (problem === undefined) {
    const start = body.trim().slice(0, 200);
    return new SagittaClientError(
      'unexpected_reply',
      `expected a problem+json body with status ${status}, found ` +
        (start === '' ? 'an empty body' : `"${start}"`),
      { status },
    );
  }
  return new SagittaClientError(problem.code, problem.detail, {
    status,
    items: problem.errors ?? [],
    retryable: problem.retryable,
    ...(problem.request_id !== undefined && { requestId: problem.request_id }),
  });
}

function parseProblem(body: string): Problem | undefined {
  try {
    const value: unknown = JSON.parse(body);
    const isProblem =
      typeof value === 'object' &&
      value !== null &&
      typeof (value as Partial<Problem>).code === 'string' &&
      typeof (value as Partial<Problem>).detail === 'string';
    return isProblem ? (value as Problem) : undefined;
  } catch {
    return undefined;
  }
}
