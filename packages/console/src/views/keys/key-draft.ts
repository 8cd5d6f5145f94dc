// The form for a new API key: its scopes and their collections, its restrictions and its expiry.

import type { ApiKeyInput, ApiKeyRecord } from '@sagitta/client';
import {
  matchesGlob,
  parseGrant,
  SCOPES,
  type Scope,
  SERVICE_SCOPES,
} from '../../../../../src/common/access.js';
import { describeBadOrigin, isOrigin } from '../../../../../src/common/origin.js';

/** A scope, and the globs of the collections to which it is limited. */
export interface GrantDraft {
  readonly scope: Scope;
  /** Globs separated by commas or spaces; empty for all collections. */
  readonly globs: string;
}

export interface KeyDraft {
  readonly owner: string;
  readonly grants: readonly GrantDraft[];
  /** Days from now; empty for never. */
  readonly days: string;
  /** Origins of web pages, separated by commas or spaces; empty for no restriction. */
  readonly origins: string;
  /** Reads per second, and writes per second; empty for the limits of the server. */
  readonly rate: string;
  /** Reads, and writes, at once; empty for those of one second. */
  readonly burst: string;
}

export const EMPTY_DRAFT: KeyDraft = {
  owner: '',
  grants: [],
  days: '',
  origins: '',
  rate: '',
  burst: '',
};

export type ParsedKey =
  | { readonly kind: 'valid'; readonly input: ApiKeyInput }
  | { readonly kind: 'invalid'; readonly errors: KeyErrors };

/** Error messages by field. */
export type KeyErrors = { readonly [Name in keyof KeyDraft]?: string };

const DAY_MS = 86_400_000;
/** The server's minimum. */
const RATE_MIN = 0.001;

export function canBeLimited(scope: Scope): boolean {
  return !SERVICE_SCOPES.includes(scope);
}

/** The key after which requests need a credential. With fewer permissions, nobody could create others. */
export function firstKey(owner: string): KeyDraft {
  return { ...EMPTY_DRAFT, owner, grants: [{ scope: 'admin', globs: '' }] };
}

export function parseKey(
  { owner, grants, days, ...restrictions }: KeyDraft,
  nowMs: number,
): ParsedKey {
  const scopes = grants.flatMap(scopesOf);
  const wrong = scopes.find((scope) => parseGrant(scope) === null);
  const dayCount = days.trim() === '' ? undefined : Number(days);
  const errors = {
    ...(owner.trim() === '' && { owner: 'Enter who or what will use the key.' }),
    ...(scopes.length === 0 && { grants: 'Choose at least one scope.' }),
    ...(wrong !== undefined && {
      grants: `${wrong}: expected letters, digits, "_", ".", "-", "*" and "?" after the scope.`,
    }),
    ...(dayCount !== undefined &&
      !(dayCount > 0 && dayCount <= 36_500) && {
        days: `Found ${days}, expected a number of days.`,
      }),
    ...checkRestrictions(restrictions),
  };
  if (Object.keys(errors).length > 0) return { kind: 'invalid', errors };
  const input = {
    owner: owner.trim(),
    scopes,
    ...(dayCount !== undefined && {
      expires_at: new Date(nowMs + dayCount * DAY_MS).toISOString(),
    }),
    ...restrictionsOf(restrictions),
  };
  return { kind: 'valid', input };
}

type Restrictions = Pick<KeyDraft, 'origins' | 'rate' | 'burst'>;

function checkRestrictions({ origins, rate, burst }: Restrictions) {
  const wrong = partsOf(origins).find((origin) => !isOrigin(origin));
  const isMissing = rate.trim() === '';
  return {
    ...(wrong !== undefined && { origins: describeBadOrigin(wrong) }),
    ...(!isMissing &&
      !(Number(rate) >= RATE_MIN) && {
        rate: `Found ${rate}, expected a number of at least ${RATE_MIN}.`,
      }),
    ...(burst.trim() !== '' &&
      (isMissing
        ? { rate: 'Enter a rate as well.' }
        : !(Number.isInteger(Number(burst)) && Number(burst) > 0) && {
            burst: `Found ${burst}, expected a whole number above 0.`,
          })),
  };
}

function restrictionsOf({ origins, rate, burst }: Restrictions): Partial<ApiKeyInput> {
  const allowed_origins = partsOf(origins);
  return {
    ...(allowed_origins.length > 0 && { allowed_origins }),
    ...(rate.trim() !== '' && {
      rate_limit: {
        per_second: Number(rate),
        ...(burst.trim() !== '' && { burst: Number(burst) }),
      },
    }),
  };
}

/** The scopes to send, one per glob: `vectors:read:catalog-*`. */
function scopesOf({ scope, globs }: GrantDraft): readonly string[] {
  const given = partsOf(globs);
  if (given.length === 0 || !canBeLimited(scope)) return [scope];
  return given.map((glob) => `${scope}:${glob}`);
}

function partsOf(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((part) => part !== '');
}

/** The existing collections that match the globs. */
export function matchedBy(globs: string, ids: readonly string[]): readonly string[] {
  const given = partsOf(globs);
  if (given.length === 0) return ids;
  return ids.filter((id) => given.some((glob) => matchesGlob(glob, id)));
}

/** Adds or removes a scope, and keeps the documented order. */
export function toggleScope(
  grants: readonly GrantDraft[],
  scope: Scope,
  isChosen: boolean,
): readonly GrantDraft[] {
  const others = grants.filter((grant) => grant.scope !== scope);
  const changed = isChosen ? [...others, { scope, globs: '' }] : others;
  return [...changed].sort((a, b) => SCOPES.indexOf(a.scope) - SCOPES.indexOf(b.scope));
}

export type KeyStatus = 'active' | 'expires soon' | 'expired' | 'revoked';

const SOON_MS = 7 * DAY_MS;

export function statusOf(
  { expires_at: expiresAt, revoked_at: revokedAt }: ApiKeyRecord,
  nowMs: number,
): KeyStatus {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt === null) return 'active';
  const leftMs = Date.parse(expiresAt) - nowMs;
  if (leftMs <= 0) return 'expired';
  return leftMs < SOON_MS ? 'expires soon' : 'active';
}
