// Problem documents (RFC 9457): the HTTP status of each error code, and the body and headers of an error reply.

import type { FastifyRequest } from 'fastify';
import {
  ERROR_TITLES,
  type ErrorCode,
  type FieldPath,
  type IssueLocation,
  SagittaError,
} from '../../common/errors.js';
import { NO_STORE, type StoredReply } from './reply.js';

export const STATUS_OF_CODE = {
  invalid_request: 400,
  invalid_json: 400,
  invalid_arrow: 400,
  unknown_parameter: 400,
  dimension_mismatch: 400,
  invalid_vector: 400,
  invalid_metadata: 400,
  invalid_filter: 400,
  duplicate_id: 400,
  collection_required: 400,
  cursor_invalid: 400,
  cursor_mismatch: 400,
  cursor_expired: 400,
  limit_exceeded: 400,
  idempotency_key_mismatch: 400,
  credentials_missing: 401,
  credentials_invalid: 401,
  insufficient_scope: 403,
  origin_not_allowed: 403,
  rate_limited: 429,
  route_not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  unsupported_media_type: 415,
  payload_too_large: 413,
  collection_not_found: 404,
  collection_exists: 409,
  collection_aliased: 409,
  alias_not_found: 404,
  vector_not_found: 404,
  key_not_found: 404,
  node_not_found: 404,
  would_lock_out: 409,
  backup_exists: 409,
  vector_exists: 409,
  precondition_failed: 412,
  idempotency_in_flight: 409,
  idempotency_key_reused: 422,
  collections_apart: 409,
  embedding_not_configured: 400,
  collection_unavailable: 503,
  backups_not_configured: 400,
  credentials_unavailable: 503,
  embedding_failed: 502,
  embedding_unavailable: 503,
  overloaded: 503,
  no_leader: 503,
  no_holder: 503,
  outcome_unknown: 504,
  starting: 503,
  stopping: 503,
  deadline_exceeded: 504,
  storage_full: 507,
  backup_failed: 507,
  internal: 500,
  // These occur only at startup, where there is no reply.
  configuration_invalid: 500,
  data_directory_locked: 500,
  data_corrupt: 500,
} as const satisfies Record<ErrorCode, number>;

/** Whether the request can be retried: after 429 or 5xx, or while its idempotency key is in use. */
export function isRetryableCode(code: ErrorCode): boolean {
  const status: number = STATUS_OF_CODE[code];
  return status === 429 || status >= 500 || code === 'idempotency_in_flight';
}

/** The data of the request that a problem document contains. */
export interface ProblemContext {
  readonly requestId: string;
  /** The path of the URL, without the query. */
  readonly path: string;
  readonly layout: IssueLayout;
}

export function problemContextOf(request: FastifyRequest): ProblemContext {
  return { requestId: request.id, path: pathOf(request), layout: request.issueLayout };
}

/** The path of the URL, without the query. */
export function pathOf({ originalUrl }: FastifyRequest): string {
  const end = originalUrl.indexOf('?');
  return end === -1 ? originalUrl : originalUrl.slice(0, end);
}

/** Determines how the locations of issues are rendered for a request. */
export interface IssueLayout {
  /** The first token of pointers to rows; null if the body itself is the only row. */
  readonly rows: 'vectors' | 'queries' | 'rows' | null;
  /** The fields that the request contains as parameters of the query string. */
  readonly parameters: readonly string[] | 'all';
}

export const BODY_LAYOUT: IssueLayout = { rows: null, parameters: [] };
export const STREAM_LAYOUT: IssueLayout = { rows: 'rows', parameters: [] };
export const PARAMETER_LAYOUT: IssueLayout = { rows: null, parameters: 'all' };

const RETRY_AFTER_SECONDS_DEFAULT = 1;

/** The reply for an error, including Retry-After and WWW-Authenticate where they apply. */
export function problemReply(error: SagittaError, context: ProblemContext): StoredReply {
  const { code, committed } = error;
  const issues = error.issues.map(({ location, ...violation }) => ({
    pointer: renderLocation(location, context.layout),
    ...violation,
  }));
  const status: number = STATUS_OF_CODE[code];
  const body = JSON.stringify({
    type: `urn:sagitta:error:${code}`,
    title: ERROR_TITLES[code],
    status,
    detail: describeError(error, issues[0]?.pointer),
    instance: context.path,
    code,
    request_id: context.requestId,
    retryable: isRetryableCode(code),
    ...(issues.length === 0 ? {} : { errors: issues }),
    // JSON omits an undefined sequence.
    ...(committed && { committed_count: committed.count, sequence: committed.sequence }),
  });
  const headers: Record<string, string> = {
    'content-type': 'application/problem+json; charset=utf-8',
    'cache-control': NO_STORE,
  };
  if (status === 429 || status === 503 || error.retryAfterSeconds !== undefined) {
    headers['retry-after'] = String(error.retryAfterSeconds ?? RETRY_AFTER_SECONDS_DEFAULT);
  }
  const challenge = challengeOf(error);
  if (challenge !== null) headers['www-authenticate'] = challenge;
  return { status, headers, body };
}

/** Puts the pointer in front of the detail of the first issue, but not of a summary of all issues. */
function describeError({ message, issues }: SagittaError, pointer: string | undefined): string {
  const isOfFirstIssue = pointer && message.startsWith(issues[0]!.detail);
  return isOfFirstIssue ? `${pointer}: ${message}` : message;
}

/** A JSON pointer (RFC 6901) into the body, or `?name` for a parameter, followed by a pointer into its JSON. */
function renderLocation(location: IssueLocation, { rows, parameters }: IssueLayout): string {
  if (location.kind === 'parameter') return `?${location.name}${renderPointer(location.path)}`;
  const { row, path } = location;
  if (row !== undefined) return renderPointer(rows === null ? path : [rows, row, ...path]);
  const [name, ...rest] = path;
  const isParameter = parameters === 'all' || parameters.includes(String(name));
  return name !== undefined && isParameter ? `?${name}${renderPointer(rest)}` : renderPointer(path);
}

function renderPointer(path: FieldPath): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** The header WWW-Authenticate of RFC 6750. */
function challengeOf({ code, scope }: SagittaError): string | null {
  const realm = 'Bearer realm="sagitta"';
  if (code === 'credentials_missing') return realm;
  if (code === 'credentials_invalid') return `${realm}, error="invalid_token"`;
  if (code === 'insufficient_scope')
    return `${realm}, error="insufficient_scope", scope="${scope}"`;
  return null;
}

/** The error shown to the client in place of an unexpected one, which goes to the log. */
export function internalError(cause: unknown): SagittaError {
  return new SagittaError(
    'internal',
    'An internal error occurred; the server log has the details under the request id.',
    { cause, committed: cause instanceof SagittaError ? cause.committed : undefined },
  );
}
