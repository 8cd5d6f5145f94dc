// The one table of errors. Every failure that a user can cause has a code here and a test; what
// only we can cause is an assertion. Nothing in this file knows HTTP: `server/problem.ts` maps each
// code to a status, exhaustively.

/** Every code that a reply can carry. A code is never reused for another meaning. */
export const ERROR_TITLES = {
  // the request itself
  invalid_request: 'The request is not valid',
  invalid_json: 'The body is not valid JSON',
  invalid_arrow: 'The body is not valid Arrow',
  unknown_parameter: 'The request has an unknown member or parameter',
  dimension_mismatch: 'The vector has the wrong length',
  invalid_vector: 'The vector is not valid',
  invalid_metadata: 'The metadata is not valid',
  invalid_filter: 'The filter is not valid',
  duplicate_id: 'The same id appears twice in the body',
  collection_required: 'No collection is named',
  cursor_invalid: 'The cursor is not one of ours',
  cursor_mismatch: 'The cursor belongs to another request',
  cursor_expired: 'The cursor has expired',
  limit_exceeded: 'A bound is exceeded',
  idempotency_key_mismatch: 'Two different idempotency keys were sent',
  // who asks
  credentials_missing: 'No credential was sent',
  credentials_invalid: 'The credential is not valid',
  insufficient_scope: 'The credential does not allow this',
  rate_limited: 'The rate limit is exceeded',
  // what the request names
  route_not_found: 'There is no such route',
  method_not_allowed: 'The route does not take this method',
  not_acceptable: 'No acceptable representation exists',
  unsupported_media_type: 'The content type is not supported',
  payload_too_large: 'The body is too large',
  collection_not_found: 'There is no such collection',
  collection_exists: 'The collection exists',
  vector_not_found: 'There is no such vector',
  key_not_found: 'There is no such key',
  backup_exists: 'The backup exists',
  vector_exists: 'The vector exists',
  precondition_failed: 'The precondition does not hold',
  idempotency_in_flight: 'A request with this idempotency key is in flight',
  idempotency_key_reused: 'The idempotency key was used with another payload',
  // the state of the service
  collection_unavailable: 'The collection cannot be served',
  backups_not_configured: 'The service keeps no backups',
  credentials_unavailable: 'Credentials cannot be checked now',
  overloaded: 'The service is overloaded',
  starting: 'The service is starting',
  stopping: 'The service is stopping',
  deadline_exceeded: 'The request took too long',
  storage_full: 'The disk is full',
  internal: 'Something went wrong on our side',
  // the start of the process
  configuration_invalid: 'The configuration is not valid',
  data_directory_locked: 'Another process uses the data directory',
  data_corrupt: 'Stored data is damaged',
} as const;

export type ErrorCode = keyof typeof ERROR_TITLES;

/** One finding inside a request; `pointer` is a JSON pointer into the body, or `?name` of a query parameter. */
export interface ValidationIssue {
  readonly pointer: string;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly expected?: string | number;
  readonly actual?: string | number;
}

/** At most this many findings are reported; a body of 10 000 bad rows says no more with 10 000 of them. */
export const ISSUES_MAX = 100;

/** The rows of a stream before its row `count` are durable and visible. */
export interface Committed {
  readonly count: number;
  /** Of the last of their writes; undefined when there is none. */
  readonly sequence: number | undefined;
}

/**
 * The only error class. `detail` says what was found, what was expected and where, in a sentence
 * that may be shown to the user who caused it; it never carries secrets, vectors or metadata.
 */
export class SagittaError extends Error {
  readonly code: ErrorCode;
  readonly issues: readonly ValidationIssue[];
  /** Seconds after which a retry is worth it, where the code is retryable. */
  readonly retryAfterSeconds: number | undefined;
  /** What the credential lacks, with `insufficient_scope`. */
  readonly scope: string | undefined;
  /** What a stream has made durable before it failed. */
  readonly committed: Committed | undefined;

  constructor(
    code: ErrorCode,
    detail: string,
    options: {
      issues?: readonly ValidationIssue[];
      retryAfterSeconds?: number | undefined;
      scope?: string | undefined;
      committed?: Committed | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'SagittaError';
    this.code = code;
    this.issues = (options.issues ?? []).slice(0, ISSUES_MAX);
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.scope = options.scope;
    this.committed = options.committed;
  }
}

/** Said alike of what does not exist and of what the asking principal may not see. */
export function collectionNotFound(id: string): SagittaError {
  return new SagittaError('collection_not_found', `There is no collection with the id "${id}".`);
}

/** What crosses a thread boundary in place of an error, which would lose its `code` there. */
export interface ErrorMessage {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly issues: readonly ValidationIssue[];
  readonly stack: string | undefined;
}

export function toErrorMessage(error: unknown): ErrorMessage {
  if (error instanceof SagittaError) {
    return { code: error.code, detail: error.message, issues: error.issues, stack: error.stack };
  }
  const plain = error instanceof Error ? error : new Error(String(error));
  return { code: 'internal', detail: plain.message, issues: [], stack: plain.stack };
}

export function fromErrorMessage(message: ErrorMessage): SagittaError {
  const error = new SagittaError(message.code, message.detail, { issues: message.issues });
  if (message.stack !== undefined) error.stack = message.stack;
  return error;
}

/** For what only a mistake of ours can cause. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}
