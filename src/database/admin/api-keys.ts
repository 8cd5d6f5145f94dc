// Creates, lists, rotates, revokes and verifies API keys. All keys are in memory; a change is on disk before
// it takes effect. A secret appears in the reply that created it and nowhere else, since only its digest is
// stored. It has 256 random bits and cannot be guessed, so that plain SHA-256 protects it as well as a slow hash.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  type Grant,
  hasAdminScope,
  type Principal,
  parseGrant,
  type RateLimit,
  SCOPES,
} from '../../common/access.js';
import type { Clock } from '../../common/clock.js';
import {
  type ErrorCode,
  type FieldPath,
  field,
  SagittaError,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import { Lock } from '../../common/lock.js';
import { describeBadOrigin, isOrigin } from '../../common/origin.js';
import { type CommitLog, logsOfStore } from '../../storage/commit-log.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import { changesUnder, keys } from '../layout/keys.js';
import { type ApiKeyEntry, decodeEntry, encodeEntry } from './api-key-entry.js';

/** Bounds memory, and the reply that lists all keys. */
export const API_KEYS_MAX = 10_000;
/** Owners are names for people to read. */
export const OWNER_CHARACTERS_MAX = 256;
/** Every request checks the scopes of its key in turn. */
export const KEY_SCOPES_MAX = 64;
/** Every request compares its origin with those of its key in turn. */
export const KEY_ORIGINS_MAX = 32;
/** One request in 17 minutes; a lower rate would make a key almost useless. */
export const KEY_RATE_MIN = 0.001;
/** The same bound as for the rate limits of the service. */
export const KEY_RATE_MAX = 1e9;
const DAY_MS = 24 * 60 * 60 * 1000;
/** An old secret that stayed valid for longer would defeat the rotation. */
export const GRACE_MS_MAX = 30 * DAY_MS;
/** Leaves time to rotate the last administrator key again if the reply with the new secret is lost. */
const LAST_GRACE_MS_MIN = 60_000;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_CHARACTERS = 16;
/** 62^43 is more than 2^256. */
const SECRET_CHARACTERS = 43;
export const API_KEY_ID_PATTERN = new RegExp(`^[0-9A-Za-z]{${ID_CHARACTERS}}$`);
const KEY_PATTERN = new RegExp(
  `^sk_([0-9A-Za-z]{${ID_CHARACTERS}})_([0-9A-Za-z]{${SECRET_CHARACTERS}})$`,
);
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u;
/** Stands in for the digest of an unknown key, so that response times do not reveal which keys exist. */
const NO_DIGEST = Buffer.alloc(32);

export interface ApiKeyRecord {
  /** Also part of the key itself: `sk_<id>_<secret>`. */
  readonly id: string;
  /** The person or program that the key was made for, as its creator named it. */
  readonly owner: string;
  /** Scopes as sent, such as `vectors:read` or `vectors:write:catalog-*`. */
  readonly scopes: readonly string[];
  /** The origins of the only web pages that may use the key; null for no restriction. */
  readonly allowedOrigins: readonly string[] | null;
  /** Replaces the rate limits of the service; null keeps them. */
  readonly rateLimit: RateLimit | null;
  /** ISO 8601, UTC, like all times in this record. */
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly rotatedAt: string | null;
  readonly revokedAt: string | null;
}

export interface ApiKeyInput {
  readonly owner: string;
  readonly scopes: readonly string[];
  /** ISO 8601; null for never. */
  readonly expiresAt: string | null;
  readonly allowedOrigins?: readonly string[] | null;
  /** The burst is by default the number of requests allowed per second, rounded up. */
  readonly rateLimit?: { readonly perSecond: number; readonly burst?: number | undefined } | null;
}

/** A key in the form in which it is verified. */
interface LiveKey {
  readonly entry: ApiKeyEntry;
  readonly principal: Principal;
  readonly digest: Buffer;
  readonly previousDigest: Buffer;
  readonly previousUntilMs: number;
  readonly expiresAtMs: number;
}

export interface ApiKeysOptions {
  readonly store: Store;
  /** The log of the catalogue; by default that of the store. */
  readonly log?: CommitLog;
  readonly clock: Clock;
}

export class ApiKeys {
  readonly #log: CommitLog;
  readonly #clock: Clock;
  /** By id, in the order of creation. */
  readonly #keys = new Map<string, LiveKey>();
  /** Serializes changes, because each depends on the result of the previous one. */
  readonly #lock = new Lock();

  /** Throws `data_corrupt` naming a key that cannot be read. */
  constructor({ store, clock, log = logsOfStore(store).catalogue }: ApiKeysOptions) {
    this.#log = log;
    this.#clock = clock;
    const entries: ApiKeyEntry[] = [];
    for (const { key, value } of store.list(keys.apiKeys)) {
      entries.push(decodeEntry(value, key[1] ?? ''));
    }
    entries.sort((left, right) => left.number - right.number);
    for (const entry of entries) this.#keys.set(entry.id, toLiveKey(entry));
  }

  /** Whether any key exists, even a revoked or expired one. */
  get isInUse(): boolean {
    return this.#keys.size > 0;
  }

  /** Throws the same `credentials_invalid` for an unknown, wrong, revoked or expired key. */
  verify(key: string): Principal {
    const [, id = '', secret = ''] = KEY_PATTERN.exec(key) ?? [];
    const found = this.#keys.get(id);
    const digest = hash('sha256', secret, 'buffer');
    const now = this.#clock.now();
    // Both are always compared, so that the time taken does not reveal the first result.
    const isCurrent = timingSafeEqual(digest, found?.digest ?? NO_DIGEST);
    const isPrevious = timingSafeEqual(digest, found?.previousDigest ?? NO_DIGEST);
    const isValid =
      found !== undefined &&
      (isCurrent || (isPrevious && now < found.previousUntilMs)) &&
      found.entry.revokedAtMs === null &&
      now < found.expiresAtMs;
    if (isValid) return found.principal;
    throw new SagittaError(
      'credentials_invalid',
      'The API key is not valid: there is no such key, or it has expired or was revoked.',
    );
  }

  /**
   * `byAnyone` means that the caller has no credential, since none is required before the first key exists. The key
   * must then be the first, and able to create others forever. Throws `invalid_request` with an issue for each wrong
   * field, `limit_exceeded`, `would_lock_out` and `credentials_missing`.
   */
  async create(
    input: ApiKeyInput,
    { byAnyone = false }: { byAnyone?: boolean } = {},
  ): Promise<{ record: ApiKeyRecord; key: string }> {
    const now = this.#clock.now();
    checkInput(input, now);
    if (byAnyone) requireAdministrator(input);
    return this.#lock.run(async () => {
      // Another first key may have been created since the request was admitted.
      if (byAnyone && this.isInUse) {
        throw new SagittaError('credentials_missing', 'Another key was made first; use that one.');
      }
      const id = this.#freshId();
      const secret = randomText(SECRET_CHARACTERS);
      const last = [...this.#keys.values()].at(-1);
      const entry: ApiKeyEntry = {
        number: (last?.entry.number ?? 0) + 1,
        id,
        owner: input.owner,
        scopes: [...input.scopes],
        allowedOrigins: input.allowedOrigins ?? null,
        rateLimit: rateLimitOf(input),
        createdAtMs: now,
        expiresAtMs: input.expiresAt === null ? null : Date.parse(input.expiresAt),
        rotatedAtMs: null,
        revokedAtMs: null,
        digest: digestOf(secret),
        previous: null,
      };
      const removedId = this.#makeRoom(now);
      await this.#commit(entry, removedId);
      return { record: toRecord(entry), key: `sk_${id}_${secret}` };
    });
  }

  /** All keys in the order of creation, including revoked and expired ones. */
  list(): readonly ApiKeyRecord[] {
    return [...this.#keys.values()].map(({ entry }) => toRecord(entry));
  }

  /** Throws `key_not_found`. */
  get(id: string): ApiKeyRecord {
    return toRecord(this.#require(id));
  }

  /**
   * Gives the key a new secret. The old secret stays valid for `graceMs`; 0 ends it at once. With
   * `keepsAdministrator`, the old secret of the last key that can create others must stay valid for a while, because
   * the reply with the new one may be lost. Throws `key_not_found`, also for a revoked or expired key,
   * `limit_exceeded` and `would_lock_out`.
   */
  rotate(
    id: string,
    { graceMs, keepsAdministrator = false }: { graceMs: number; keepsAdministrator?: boolean },
  ): Promise<{ record: ApiKeyRecord; key: string }> {
    if (graceMs > GRACE_MS_MAX) {
      throw new SagittaError(
        'limit_exceeded',
        `The old secret can stay valid for at most ${GRACE_MS_MAX / DAY_MS} days; found ${Math.round(graceMs / DAY_MS)}.`,
      );
    }
    return this.#lock.run(async () => {
      const old = this.#require(id);
      const now = this.#clock.now();
      if (isEnded(old, now)) {
        throw new SagittaError(
          'key_not_found',
          `The key ${id} ${old.revokedAtMs === null ? 'has expired' : 'was revoked'}; create a new one.`,
        );
      }
      const isTooShort = graceMs < LAST_GRACE_MS_MIN;
      if (keepsAdministrator && isTooShort && this.#isLastAdministrator(old, now)) {
        throw new SagittaError(
          'would_lock_out',
          `The key ${id} is the last one that can manage this service, and the reply with its new secret may be lost. Set grace_seconds to at least ${LAST_GRACE_MS_MIN / 1000}; found ${graceMs / 1000}. To end the old secret at once, first make another key with the scope admin and without an expiry, origins or a rate limit; then rotate or revoke this one.`,
        );
      }
      const secret = randomText(SECRET_CHARACTERS);
      const entry: ApiKeyEntry = {
        ...old,
        rotatedAtMs: now,
        digest: digestOf(secret),
        previous: graceMs > 0 ? { digest: old.digest, untilMs: now + graceMs } : null,
      };
      await this.#commit(entry);
      return { record: toRecord(entry), key: `sk_${id}_${secret}` };
    });
  }

  /**
   * Once the promise resolves, the key is refused, also on open connections. Revoking twice changes nothing. With
   * `keepsAdministrator`, the last key that can create others is not revoked. Throws `key_not_found` and
   * `would_lock_out`.
   */
  revoke(
    id: string,
    { keepsAdministrator = false }: { keepsAdministrator?: boolean } = {},
  ): Promise<ApiKeyRecord> {
    return this.#lock.run(async () => {
      const old = this.#require(id);
      if (old.revokedAtMs !== null) return toRecord(old);
      const now = this.#clock.now();
      if (keepsAdministrator && this.#isLastAdministrator(old, now)) {
        throw new SagittaError(
          'would_lock_out',
          `The key ${id} is the last one that can manage this service over the network. First make another key with the scope admin and without an expiry, origins or a rate limit, or rotate this one to replace its secret. On the host of the service, "sagitta keys revoke ${id}" revokes it anyway.`,
        );
      }
      const entry: ApiKeyEntry = { ...old, revokedAtMs: now, previous: null };
      await this.#commit(entry);
      return toRecord(entry);
    });
  }

  async #commit(entry: ApiKeyEntry, removedId?: string): Promise<void> {
    const operations: StoreOperation[] = [
      { kind: 'put', key: keys.apiKey(entry.id), value: encodeEntry(entry) },
    ];
    if (removedId !== undefined) operations.push({ kind: 'remove', key: keys.apiKey(removedId) });
    await this.#log.commit(operations);
    this.follow(operations);
  }

  /** Applies operations that this or another node committed and this node stored. Throws `data_corrupt`. */
  follow(operations: readonly StoreOperation[]): void {
    for (const { key, value } of changesUnder(keys.apiKeys, operations)) {
      const id = key[1]!;
      if (value === null) this.#keys.delete(id);
      else this.#keys.set(id, toLiveKey(decodeEntry(value, id)));
    }
  }

  #require(id: string): ApiKeyEntry {
    const found = this.#keys.get(id);
    if (found !== undefined) return found.entry;
    throw new SagittaError('key_not_found', `There is no key with the id "${id}".`);
  }

  /** Whether no other key can manage the service equally well and for as long. */
  #isLastAdministrator(entry: ApiKeyEntry, now: number): boolean {
    const valid = [...this.#keys.values()]
      .map((key) => key.entry)
      .filter((each) => !isEnded(each, now) && hasAdminScope(each.scopes));
    const unbound = valid.filter(isUnbound);
    const lasting = unbound.filter(({ expiresAtMs }) => expiresAtMs === null);
    const [managing = []] = [lasting, unbound, valid].filter((some) => some.length > 0);
    return managing.length === 1 && managing[0]!.id === entry.id;
  }

  #freshId(): string {
    while (true) {
      const id = randomText(ID_CHARACTERS);
      if (!this.#keys.has(id)) return id;
    }
  }

  /** The id of the oldest invalid key if a new key needs its place. Throws `limit_exceeded` when all keys are valid. */
  #makeRoom(now: number): string | undefined {
    if (this.#keys.size < API_KEYS_MAX) return undefined;
    for (const { entry } of this.#keys.values()) {
      if (isEnded(entry, now)) return entry.id;
    }
    throw new SagittaError(
      'limit_exceeded',
      `Expected at most ${API_KEYS_MAX} valid API keys; found ${API_KEYS_MAX + 1}. Revoke some first.`,
    );
  }
}

/** Whether any program can use the key, at the rate of the service. */
function isUnbound({ allowedOrigins, rateLimit }: ApiKeyEntry): boolean {
  return allowedOrigins === null && rateLimit === null;
}

function isEnded({ revokedAtMs, expiresAtMs }: ApiKeyEntry, now: number): boolean {
  return revokedAtMs !== null || (expiresAtMs !== null && expiresAtMs <= now);
}

function toLiveKey(entry: ApiKeyEntry): LiveKey {
  const { id, scopes, allowedOrigins, rateLimit, digest, previous, expiresAtMs } = entry;
  const grants = scopes.map((scope) => parseGrant(scope) as Grant);
  return {
    entry,
    principal: { id: `key:${id}`, grants, allowedOrigins, rateLimit },
    digest: Buffer.from(digest, 'hex'),
    previousDigest: previous === null ? NO_DIGEST : Buffer.from(previous.digest, 'hex'),
    previousUntilMs: previous?.untilMs ?? 0,
    expiresAtMs: expiresAtMs ?? Number.POSITIVE_INFINITY,
  };
}

function toRecord(entry: ApiKeyEntry): ApiKeyRecord {
  const time = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    id: entry.id,
    owner: entry.owner,
    scopes: entry.scopes,
    allowedOrigins: entry.allowedOrigins,
    rateLimit: entry.rateLimit,
    createdAt: new Date(entry.createdAtMs).toISOString(),
    expiresAt: time(entry.expiresAtMs),
    rotatedAt: time(entry.rotatedAtMs),
    revokedAt: time(entry.revokedAtMs),
  };
}

function rateLimitOf({ rateLimit }: ApiKeyInput): RateLimit | null {
  if (rateLimit == null) return null;
  const { perSecond, burst = Math.ceil(perSecond) } = rateLimit;
  return { perSecond, burst };
}

type Report = (path: FieldPath, detail: string, code?: ErrorCode) => void;

/** Throws `invalid_request` or `limit_exceeded`, with an issue for each wrong field. */
function checkInput(input: ApiKeyInput, now: number): void {
  const { owner, scopes, expiresAt } = input;
  const issues: ValidationIssue[] = [];
  const report: Report = (path, detail, code = 'invalid_request') =>
    issues.push({ location: field(...path), code, detail });
  if (owner.length < 1 || owner.length > OWNER_CHARACTERS_MAX || UNPRINTABLE.test(owner)) {
    const found = UNPRINTABLE.test(owner) ? 'one that is not' : `${owner.length}`;
    report(
      ['owner'],
      `Expected 1 to ${OWNER_CHARACTERS_MAX} printable characters; found ${found}.`,
    );
  }
  if (scopes.length === 0) report(['scopes'], 'Expected at least one scope; found none.');
  if (scopes.length > KEY_SCOPES_MAX) {
    const detail = `Expected at most ${KEY_SCOPES_MAX} scopes; found ${scopes.length}.`;
    report(['scopes'], detail, 'limit_exceeded');
  } else {
    for (const [at, scope] of scopes.entries()) {
      if (parseGrant(scope) === null) report(['scopes', at], describeBadScope(scope));
    }
  }
  if (expiresAt !== null && !(Date.parse(expiresAt) > now)) {
    const found = Number.isNaN(Date.parse(expiresAt)) ? 'no time' : expiresAt;
    report(['expires_at'], `Expected a time in the future; found ${found}.`);
  }
  checkRestrictions(input, report);
  const [first] = issues;
  if (first !== undefined) throw validationError(issues, first.code);
}

function checkRestrictions({ allowedOrigins, rateLimit }: ApiKeyInput, report: Report): void {
  const originCount = allowedOrigins?.length;
  if (originCount === 0) {
    report(['allowed_origins'], 'Expected at least one origin, or null for no restriction.');
  }
  if (originCount !== undefined && originCount > KEY_ORIGINS_MAX) {
    const detail = `Expected at most ${KEY_ORIGINS_MAX} origins; found ${originCount}.`;
    report(['allowed_origins'], detail, 'limit_exceeded');
  } else {
    for (const [at, origin] of (allowedOrigins ?? []).entries()) {
      if (!isOrigin(origin)) report(['allowed_origins', at], describeBadOrigin(origin));
    }
  }
  if (rateLimit == null) return;
  const { perSecond, burst = 1 } = rateLimit;
  if (!(perSecond >= KEY_RATE_MIN && perSecond <= KEY_RATE_MAX)) {
    const detail = `Expected a number from ${KEY_RATE_MIN} to ${KEY_RATE_MAX}; found ${perSecond}.`;
    report(['rate_limit', 'per_second'], detail);
  }
  if (!(Number.isInteger(burst) && burst >= 1 && burst <= KEY_RATE_MAX)) {
    const detail = `Expected an integer from 1 to ${KEY_RATE_MAX}; found ${burst}.`;
    report(['rate_limit', 'burst'], detail);
  }
}

/** Throws `would_lock_out` unless the first key can create others forever. */
function requireAdministrator({ scopes, expiresAt, allowedOrigins, rateLimit }: ApiKeyInput): void {
  const issues: ValidationIssue[] = [];
  const report = (name: string, detail: string) =>
    issues.push({ location: field(name), code: 'would_lock_out', detail });
  if (!hasAdminScope(scopes)) {
    report(
      'scopes',
      `The first key must have the scope admin, for all collections; found ${scopes.join(', ')}. Once it exists, every request needs a key, and only a key with admin can make others. First make a key with admin, then make this one with it.`,
    );
  }
  if (expiresAt !== null) {
    report(
      'expires_at',
      `The first key must not expire; found ${expiresAt}. Otherwise the service could not be managed over the network after that. First make a key that does not expire, then make this one with it.`,
    );
  }
  if (allowedOrigins != null) {
    report(
      'allowed_origins',
      'The first key must not be bound to web pages, because commands and programs could not manage the service with it. First make a key without origins, then make this one with it.',
    );
  }
  if (rateLimit != null) {
    report(
      'rate_limit',
      'The first key must have no rate limit of its own, because a client that exhausts it would block the management of the service. First make a key without a rate limit, then make this one with it.',
    );
  }
  if (issues.length > 0) throw validationError(issues, 'would_lock_out');
}

function describeBadScope(scope: string): string {
  const shown = scope.length <= 64 ? JSON.stringify(scope) : `${scope.length} characters`;
  return `Expected one of ${SCOPES.join(', ')}, each except metrics:read optionally with a pattern of collections, as in vectors:read:catalog-*; found ${shown}.`;
}

const digestOf = (secret: string): string => hash('sha256', secret, 'hex');

/** Every character is equally likely, because bytes that would favour some characters are skipped. */
function randomText(length: number): string {
  const usable = 256 - (256 % ALPHABET.length);
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < usable && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}
