// The table of error codes and the only error class. Every failure that a user can cause has a code here and a test;
// failures that only a bug can cause are assertions. Nothing in this file knows HTTP: `server/wire/problem.ts` maps each
// code to a status, exhaustively.

/** Titles by error code. A code is part of the API: it is never reused for another meaning. */
export const ERROR_TITLES = {
  // the request itself
  invalid_request: 'The request is not valid',
  invalid_json: 'The body is not valid JSON',
  invalid_arrow: 'The body is not valid Arrow',
  unknown_parameter: 'The request contains an unknown member or parameter',
  dimension_mismatch: 'The vector has the wrong dimension',
  invalid_vector: 'The vector is not valid',
  invalid_metadata: 'The metadata is not valid',
  invalid_filter: 'The filter is not valid',
  duplicate_id: 'The same id appears twice in the body',
  collection_required: 'The request names no collection',
  cursor_invalid: 'The cursor is not valid',
  cursor_mismatch: 'The cursor belongs to a different request',
  cursor_expired: 'The cursor has expired',
  limit_exceeded: 'A limit is exceeded',
  idempotency_key_mismatch: 'Two different idempotency keys were sent',
  // authentication, authorization and rate limits
  credentials_missing: 'The request carries no credential',
  credentials_invalid: 'The credential is not valid',
  insufficient_scope: 'The credential does not allow this',
  origin_not_allowed: 'The origin of the page is not allowed',
  rate_limited: 'The rate limit is exceeded',
  // routes and resources
  route_not_found: 'The route does not exist',
  method_not_allowed: 'The route does not support this method',
  not_acceptable: 'No acceptable content type is available',
  unsupported_media_type: 'The content type is not supported',
  payload_too_large: 'The body is too large',
  collection_not_found: 'The collection does not exist',
  collection_exists: 'The collection already exists',
  collection_aliased: 'The collection has aliases',
  alias_not_found: 'The alias does not exist',
  vector_not_found: 'The vector does not exist',
  key_not_found: 'The API key does not exist',
  node_not_found: 'The cluster has no such node',
  would_lock_out: 'Nobody could manage the service any more',
  backup_exists: 'The backup already exists',
  vector_exists: 'The vector already exists',
  precondition_failed: 'The precondition failed',
  idempotency_in_flight: 'A request with this idempotency key is in progress',
  idempotency_key_reused: 'The idempotency key was used with a different payload',
  collections_apart: 'No node holds both collections',
  embedding_not_configured: 'The collection has no usable model for texts',
  // the state of the service
  collection_unavailable: 'The collection is unavailable',
  backups_not_configured: 'Backups are not configured',
  credentials_unavailable: 'Credentials cannot be verified at the moment',
  embedding_failed: 'Texts could not be turned into vectors',
  embedding_unavailable: 'The embedding endpoint is unavailable',
  overloaded: 'The service is overloaded',
  no_leader: 'No node can write at the moment',
  no_holder: 'No node that holds the collection answers',
  outcome_unknown: 'Whether the request took effect is not known',
  starting: 'The service is starting',
  stopping: 'The service is stopping',
  deadline_exceeded: 'The request took too long',
  storage_full: 'The disk is full',
  backup_failed: 'The backup could not be made',
  internal: 'Internal server error',
  // the start of the process
  configuration_invalid: 'The configuration is not valid',
  data_directory_locked: 'The data directory is in use by another process',
  data_corrupt: 'Stored data is corrupt',
} as const;

export type ErrorCode = keyof typeof ERROR_TITLES;

/** Member names and indexes that lead to a value, outermost first; empty for the whole value. */
export type FieldPath = readonly (string | number)[];

/**
 * What an issue refers to in a request, independent of how the request spells it: `server/wire/problem.ts` renders it as a
 * JSON pointer.
 */
export type IssueLocation =
  | {
      readonly kind: 'field';
      /** The vector, query or stream row that contains the field, from 0; absent for fields of the request itself. */
      readonly row?: number;
      /** Relative to the row, or to the request if there is no row. */
      readonly path: FieldPath;
    }
  /** `path` leads into the JSON value of the parameter. */
  | { readonly kind: 'parameter'; readonly name: string; readonly path: FieldPath };

/** A field of the request; without arguments, the whole request. */
export const field = (...path: FieldPath): IssueLocation => ({ kind: 'field', path });

/** A field of one row of the request; without a path, the whole row. */
export const rowField = (row: number, ...path: FieldPath): IssueLocation => ({
  kind: 'field',
  row,
  path,
});

/** A parameter of the query string, or a value inside its JSON. */
export const parameter = (name: string, ...path: FieldPath): IssueLocation => ({
  kind: 'parameter',
  name,
  path,
});

/** What is wrong with a value, without its location. */
export interface Violation {
  readonly code: ErrorCode;
  /** A complete sentence that does not mention the location. */
  readonly detail: string;
  readonly expected?: string | number;
  readonly actual?: string | number;
}

/** One thing that is wrong with a request, and where. */
export interface ValidationIssue extends Violation {
  readonly location: IssueLocation;
}

/** Maximum number of issues in one error: a client with 10 000 bad rows needs no more to find the cause. */
export const ISSUES_MAX = 100;

/** All stream rows before row `count` are durable and visible. */
export interface Committed {
  readonly count: number;
  /** Sequence of the last committed write; undefined if there is none. */
  readonly sequence: number | undefined;
}

/**
 * The only error class. `detail` is a sentence that says what was found, what was expected and where. It may be shown
 * to the user who caused it and never contains secrets, vectors or metadata.
 */
export class SagittaError extends Error {
  readonly code: ErrorCode;
  readonly issues: readonly ValidationIssue[];
  /** Seconds after which to retry, if the code is retryable. */
  readonly retryAfterSeconds: number | undefined;
  /** The scope that the credential lacks, for `insufficient_scope`. */
  readonly scope: string | undefined;
  /** The rows of a stream that were durable before it failed. */
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

/**
 * An overload error. `detail` is a sentence that names the limit that was reached; the time until a retry, which
 * Retry-After also carries, is appended.
 */
export function overloadedError(
  detail: string,
  { retryAfterSeconds = 1 }: { retryAfterSeconds?: number } = {},
): SagittaError {
  return new SagittaError('overloaded', `${detail} Retry after ${retryAfterSeconds} s.`, {
    retryAfterSeconds,
  });
}

/** The error for writes in a cluster while no node leads, or while this node does not know the leader. */
export function noLeaderError(cause?: unknown): SagittaError {
  return new SagittaError(
    'no_leader',
    'No node can write at the moment: the one that did has stopped or lost its connection, and another one is about to take over. Nothing was written. Retry after 1 s.',
    { cause, retryAfterSeconds: 1 },
  );
}

/** The error where parts of a file are not on the disk of this node, and cannot be fetched either. */
export function blocksUnavailableError(file: string, cause?: unknown): SagittaError {
  return new SagittaError(
    'collection_unavailable',
    `Parts of the file ${file} are not on the disk of this node, and the shared files do not return them at the moment. They will be tried again. Retry after 5 s.`,
    { cause, retryAfterSeconds: 5 },
  );
}

/**
 * An error that reports one or more issues. Its detail is that of the first issue. Without `code`, the code is that of
 * all issues, or `invalid_request` if they differ.
 */
export function validationError(
  issues: readonly ValidationIssue[],
  code: ErrorCode = codeOf(issues),
): SagittaError {
  const count = `${issues.length}${issues.length < ISSUES_MAX ? '' : ' or more'}`;
  const others = issues.length === 1 ? '' : ` This is the first of ${count} issues.`;
  return new SagittaError(code, `${issues[0]!.detail}${others}`, { issues });
}

function codeOf(issues: readonly ValidationIssue[]): ErrorCode {
  const { code } = issues[0]!;
  return issues.every((issue) => issue.code === code) ? code : 'invalid_request';
}

/** The same error with row numbers shifted by `firstRow`, the row of the request at which the given rows begin. */
export function shiftRows(error: SagittaError, firstRow: number, detail = error.message) {
  const issues = error.issues.map((issue) => {
    const { location } = issue;
    if (location.kind !== 'field' || location.row === undefined) return issue;
    return { ...issue, location: { ...location, row: location.row + firstRow } };
  });
  return new SagittaError(error.code, detail, { issues, cause: error });
}

/** The same error, whether the collection does not exist or the principal may not see it. */
export function collectionNotFound(id: string): SagittaError {
  return new SagittaError('collection_not_found', `There is no collection with the id "${id}".`);
}

/** An error as plain data: structured clone across threads would lose `code`. */
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

/** Checks an invariant that only a bug can violate. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}
