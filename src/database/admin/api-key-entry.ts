// The stored form of an API key, with a digest in place of its secret. It is JSON with a format version, and
// every member is checked when it is read, because a damaged entry must not grant access.

import { parseGrant, type RateLimit } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import { isOrigin } from '../../common/origin.js';

/** Changes when older readers would misread an entry or ignore a restriction. */
const FORMAT_VERSION = 1;

export interface ApiKeyEntry {
  /** Counts the created keys; keys are listed in this order. */
  readonly number: number;
  readonly id: string;
  readonly owner: string;
  readonly scopes: readonly string[];
  /** Null, as for `rateLimit`, means no restriction. */
  readonly allowedOrigins: readonly string[] | null;
  readonly rateLimit: RateLimit | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly rotatedAtMs: number | null;
  readonly revokedAtMs: number | null;
  /** SHA-256 of the secret, in hexadecimal. */
  readonly digest: string;
  /** The secret before the last rotation, while it is still valid. */
  readonly previous: { readonly digest: string; readonly untilMs: number } | null;
}

export function encodeEntry(entry: ApiKeyEntry): Uint8Array {
  return Buffer.from(JSON.stringify({ formatVersion: FORMAT_VERSION, ...entry }));
}

/** Throws `data_corrupt` naming the key. */
export function decodeEntry(bytes: Uint8Array, id: string): ApiKeyEntry {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString());
  } catch (cause) {
    throw damaged(id, 'it is not valid JSON', cause);
  }
  if (typeof value !== 'object' || value === null) throw damaged(id, 'it is not an object');
  const { formatVersion, ...entry } = value as Record<string, unknown>;
  if (formatVersion !== FORMAT_VERSION) {
    throw damaged(
      id,
      `its format version is ${formatVersion}, and this version reads ${FORMAT_VERSION}`,
    );
  }
  for (const [name, isValid] of Object.entries(CHECKS)) {
    if (!isValid(entry[name])) throw damaged(id, `its member ${name} is not valid`);
  }
  if (entry.id !== id) throw damaged(id, 'it has the id of another key');
  return entry as unknown as ApiKeyEntry;
}

const isTime = (value: unknown): boolean => Number.isSafeInteger(value);
const isTimeOrNull = (value: unknown): boolean => value === null || isTime(value);
const isDigest = (value: unknown): boolean =>
  typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);

const CHECKS: Readonly<Record<keyof ApiKeyEntry, (value: unknown) => boolean>> = {
  number: isTime,
  id: (value) => typeof value === 'string',
  owner: (value) => typeof value === 'string',
  scopes: (value) =>
    Array.isArray(value) &&
    value.every((scope) => typeof scope === 'string' && parseGrant(scope) !== null),
  allowedOrigins: (value) =>
    value === null ||
    (Array.isArray(value) &&
      value.length > 0 &&
      value.every((origin) => typeof origin === 'string' && isOrigin(origin))),
  rateLimit: (value) => {
    if (value === null) return true;
    if (typeof value !== 'object') return false;
    const { perSecond, burst } = value as Record<string, unknown>;
    return Number(perSecond) > 0 && Number.isSafeInteger(burst) && Number(burst) > 0;
  },
  createdAtMs: isTime,
  expiresAtMs: isTimeOrNull,
  rotatedAtMs: isTimeOrNull,
  revokedAtMs: isTimeOrNull,
  digest: isDigest,
  previous: (value) => {
    if (value === null) return true;
    if (typeof value !== 'object') return false;
    const { digest, untilMs } = value as Record<string, unknown>;
    return isDigest(digest) && isTime(untilMs);
  },
};

function damaged(id: string, what: string, cause?: unknown): SagittaError {
  return new SagittaError('data_corrupt', `The stored API key ${id} is damaged: ${what}.`, {
    cause,
  });
}
