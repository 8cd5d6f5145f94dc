// The wire form of an API key's record, also for commands that work without a server.

import type { ApiKeyRecord } from '../database/api-keys.js';

export function apiKeyMembers(record: ApiKeyRecord) {
  return {
    id: record.id,
    owner: record.owner,
    scopes: record.scopes,
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    rotated_at: record.rotatedAt,
    revoked_at: record.revokedAt,
  };
}
