// Requests and replies about API keys.

import { z } from 'zod';
import { SCOPE_MEANINGS, SCOPES } from '../../common/access.js';
import {
  API_KEYS_MAX,
  GRACE_MS_MAX,
  KEY_SCOPES_MAX,
  OWNER_CHARACTERS_MAX,
} from '../../database/api-keys.js';

const id = z
  .string()
  .min(1)
  .meta({
    id: 'ApiKeyId',
    description: 'Identifier of a key; also the part of the key between the two `_`.',
    examples: ['3kTMd9xQ7bZr2LfW'],
  });
const owner = z
  .string()
  .min(1)
  .max(OWNER_CHARACTERS_MAX)
  .meta({ description: 'A description of who uses the key.', examples: ['search frontend'] });
const scopes = z
  .array(z.string())
  .min(1)
  .max(KEY_SCOPES_MAX)
  .meta({
    description: `What the key allows. Every scope but \`metrics:read\` may be limited to collections by a glob, as in \`vectors:read:catalog-*\` (\`*\` matches any characters, \`?\` one).\n\n${SCOPES.map(
      (scope) => `- \`${scope}\`: ${SCOPE_MEANINGS[scope]}.`,
    ).join('\n')}`,
    examples: [['vectors:read:catalog-*']],
  });
const time = z.iso.datetime({ offset: true });

const example = {
  id: '3kTMd9xQ7bZr2LfW',
  owner: 'search frontend',
  scopes: ['vectors:read:catalog-*'],
  created_at: '2026-11-21T08:00:00.000Z',
  expires_at: null,
  rotated_at: null,
  revoked_at: null,
};
const members = {
  id,
  owner,
  scopes: z.array(z.string()).meta({ description: 'What the key allows.' }),
  created_at: z.iso.datetime().meta({ description: 'When the key was created.' }),
  expires_at: z.iso.datetime().nullable().meta({ description: 'Null if the key does not expire.' }),
  rotated_at: z.iso.datetime().nullable().meta({
    description: 'When the key last got a new secret; null if it has its first one.',
  }),
  revoked_at: z.iso
    .datetime()
    .nullable()
    .meta({ description: 'When the key was revoked; null if it was not.' }),
};
const record = z.object(members).meta({
  id: 'ApiKey',
  description: 'A key without its secret, which only the reply that created the key contains.',
  examples: [example],
});
const secretRecord = z
  .object({
    ...members,
    key: z.string().meta({
      description: 'Send it as `Authorization: Bearer …`. It is returned only once.',
    }),
  })
  .meta({
    id: 'ApiKeyWithSecret',
    description: 'A key with its secret, which no other reply contains.',
    examples: [{ ...example, key: `sk_${example.id}_…` }],
  });

export const keySchemas = {
  id,
  create: z
    .strictObject({
      owner,
      scopes,
      expires_at: time
        .nullable()
        .default(null)
        .meta({
          description: 'When the key expires; absent or null for never.',
          examples: ['2027-01-01T00:00:00Z'],
        }),
    })
    .meta({
      id: 'ApiKeyCreate',
      description: 'A key to create.',
      examples: [{ owner: 'search frontend', scopes: ['vectors:read:catalog-*'] }],
    }),
  rotate: z
    .strictObject({
      grace_seconds: z
        .int()
        .min(0)
        .max(GRACE_MS_MAX / 1000)
        .default(0)
        .meta({ description: 'How long the old secret remains valid beside the new one.' }),
    })
    .meta({
      id: 'ApiKeyRotate',
      description: 'How to replace the secret.',
      examples: [{ grace_seconds: 3600 }],
    }),
  record,
  secretRecord,
  list: z
    .object({
      keys: z
        .array(record)
        .max(API_KEYS_MAX)
        .meta({ description: 'In the order of their creation.' }),
    })
    .meta({ id: 'ApiKeyList', description: 'All keys.', examples: [{ keys: [example] }] }),
};
