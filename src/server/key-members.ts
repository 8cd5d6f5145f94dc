// The wire form of an API key's record and of a new key, also for commands that work without a server.

import type { ApiKeyInput, ApiKeyRecord } from '../database/api-keys.js';

export function apiKeyMembers(record: ApiKeyRecord) {
  return {
    id: record.id,
    owner: record.owner,
    scopes: record.scopes,
    allowed_origins: record.allowedOrigins,
    rate_limit: record.rateLimit && {
      per_second: record.rateLimit.perSecond,
      burst: record.rateLimit.burst,
    },
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    rotated_at: record.rotatedAt,
    revoked_at: record.revokedAt,
  };
}

interface InputMembers {
  readonly owner: string;
  readonly scopes: readonly string[];
  readonly expires_at?: string | null | undefined;
  readonly allowed_origins?: readonly string[] | null | undefined;
  readonly rate_limit?:
    | { readonly per_second: number; readonly burst?: number | undefined }
    | null
    | undefined;
}

/** What `apiKeyMembers` is for a record, in the other direction, for the members of a new key. */
export function apiKeyInput(members: InputMembers): ApiKeyInput {
  const { owner, scopes, expires_at, allowed_origins, rate_limit } = members;
  return {
    owner,
    scopes,
    expiresAt: expires_at ?? null,
    allowedOrigins: allowed_origins ?? null,
    rateLimit: rate_limit ? { perSecond: rate_limit.per_second, burst: rate_limit.burst } : null,
  };
}
