// Idempotent writes: reads the key of a request, computes the digest of its payload, and decides which replies are
// stored. The database stores them in the transaction of the write.

import { createHash } from 'node:crypto';
import {
  type ErrorCode,
  field,
  fromErrorMessage,
  SagittaError,
  validationError,
} from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { AttachReply } from '../../database/admin/idempotency.js';
import type { IdempotencyRequest } from '../../database/api/database-api.js';
import type { ParsedBody } from '../bodies/json-body.js';
import { problemReply, STATUS_OF_CODE } from '../wire/problem.js';
import type { StoredReply } from '../wire/reply.js';
import type { RequestContext } from './request-context.js';
import type { RouteServices } from './route.js';

/** Errors that another attempt with the same payload may avoid, so that they are not stored. */
const STATUSES_NOT_STORED: readonly number[] = [401, 403, 408, 413, 429];
const CODES_NOT_STORED: readonly ErrorCode[] = [
  'idempotency_in_flight',
  'idempotency_key_reused',
  'idempotency_key_mismatch',
];

/** Whether the request has a key in its header. A key may also be in the body. */
export function hasIdempotencyKeyHeader(request: RequestContext<unknown>): boolean {
  return request.headers['idempotency-key'] !== undefined;
}

/**
 * Runs a write, at most once if the request has a key; `attach` is undefined if it has none. `write` must not throw
 * after it has had an effect. An error in the body is a reply that is stored too.
 */
export async function runWrite<Value>(
  services: RouteServices,
  request: RequestContext<unknown>,
  parsed: ParsedBody<Value>,
  write: (value: Value, attach: AttachReply<StoredReply> | undefined) => Promise<StoredReply>,
): Promise<StoredReply> {
  const key = findKey(request, parsed.idempotencyKey, services.limits);
  if (key === undefined) return write(bodyOf(parsed), undefined);
  const { database } = services;
  const { writtenCollection } = request;
  const { reply, isReplay } = await database.runIdempotent<StoredReply>(
    {
      ...idempotencyRequest(request, key, (params, query) => [params, query, parsed.digest ?? '']),
      incarnation:
        writtenCollection === undefined ? undefined : database.incarnationOf(writtenCollection),
    },
    async (attach) => {
      try {
        return await write(bodyOf(parsed), attach);
      } catch (error) {
        if (error instanceof SagittaError && isStored(error)) {
          return problemReply(error, request.problemContext);
        }
        throw error;
      }
    },
  );
  return isReplay ? asReplay(reply) : reply;
}

/** Marks a stored reply as a replay. */
export function asReplay(reply: StoredReply): StoredReply {
  return { ...reply, headers: { ...reply.headers, 'idempotent-replayed': 'true' } };
}

/** The key of a request whose body cannot carry one. */
export function idempotencyKeyInHeader(
  request: RequestContext<unknown>,
  limits: Limits,
): string | undefined {
  return findKey(request, undefined, limits);
}

/** The value of a parsed body; throws its error. */
export function bodyOf<Value>(parsed: ParsedBody<Value>): Value {
  if (!parsed.outcome.ok) throw fromErrorMessage(parsed.outcome.error);
  return parsed.outcome.value;
}

function isStored(error: SagittaError): boolean {
  const status: number = STATUS_OF_CODE[error.code];
  const isClientError = status >= 400 && status < 500;
  return (
    isClientError && !STATUSES_NOT_STORED.includes(status) && !CODES_NOT_STORED.includes(error.code)
  );
}

function findKey(
  request: RequestContext<unknown>,
  inBody: unknown,
  limits: Limits,
): string | undefined {
  const header = request.headers['idempotency-key'];
  // Node decodes headers as latin1; non-ASCII keys are UTF-8, as in the body.
  const inHeader =
    typeof header === 'string' ? Buffer.from(header, 'latin1').toString() : undefined;
  for (const key of [inHeader, inBody]) {
    if (key !== undefined) checkKey(key, key === inHeader ? 'header' : 'body', limits);
  }
  if (inHeader !== undefined && inBody !== undefined && inHeader !== inBody) {
    throw validationError([
      {
        location: field('idempotency_key'),
        code: 'idempotency_key_mismatch',
        detail: 'The idempotency_key in the body differs from the header Idempotency-Key.',
      },
    ]);
  }
  return inHeader ?? (inBody as string | undefined);
}

function checkKey(key: unknown, place: 'header' | 'body', limits: Limits): void {
  const { idempotencyKeyCharactersMax } = limits;
  const isPrintable = typeof key === 'string' && !/[\p{Cc}\p{Cs}]/u.test(key);
  if (isPrintable && key.length >= 1 && key.length <= idempotencyKeyCharactersMax) return;
  const isTooLong = isPrintable && key.length > idempotencyKeyCharactersMax;
  throw validationError([
    {
      location: place === 'body' ? field('idempotency_key') : field(),
      code: isTooLong ? 'limit_exceeded' : 'invalid_request',
      ...(isTooLong ? { actual: key.length } : {}),
      detail: `The idempotency key in the ${place} is not valid; expected 1 to ${idempotencyKeyCharactersMax} printable characters.`,
      expected: idempotencyKeyCharactersMax,
    },
  ]);
}

/**
 * The identity of a request with a key, which the database compares. `payloadOf` returns everything that the reply
 * depends on. Its elements and their order must not change, since their digests are on disk.
 */
export function idempotencyRequest(
  request: RequestContext<unknown>,
  key: string,
  payloadOf: (
    params: RequestContext['params'],
    query: readonly (readonly [name: string, value: unknown])[],
  ) => readonly unknown[],
): IdempotencyRequest {
  const query = Object.entries(request.rawQuery).sort(([a], [b]) => (a < b ? -1 : 1));
  const payload = JSON.stringify(payloadOf(request.rawParams, query));
  return {
    scope: `${request.principal.id} ${request.operation}`,
    key,
    payloadDigest: createHash('sha256').update(payload).digest('hex'),
  };
}
