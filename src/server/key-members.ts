// A record of an API key by the names of the wire, for replies and for commands that answer alike
// without a server.

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
