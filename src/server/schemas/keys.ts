// Requests and replies about API keys.

import { z } from 'zod';
import { SCOPE_MEANINGS, SCOPES } from '../../common/access.js';
import {
  API_KEYS_MAX,
  GRACE_MS_MAX,
  KEY_ORIGINS_MAX,
  KEY_RATE_MAX,
  KEY_RATE_MIN,
  KEY_SCOPES_MAX,
  OWNER_CHARACTERS_MAX,
} from '../../database/admin/api-keys.js';
import { upTo } from './basics.js';

const id = z
  .string()
  .min(1)
  .meta({
    id: 'ApiKeyId',
    description: 'The id of a key, which is the part of the key between the two `_`.',
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
const allowedOrigins = z
  .array(z.string())
  .min(1)
  .max(KEY_ORIGINS_MAX)
  .nullable()
  .meta({
    description:
      'Origins of the only web pages that may use the key: the header `Origin` of a request must be one of them; null for no restriction. Browsers set the header, and other programs can send any.',
    examples: [['https://app.example.org']],
  });
const perSecond = z
  .number()
  .min(KEY_RATE_MIN)
  .max(KEY_RATE_MAX)
  .meta({
    description:
      'Reads and writes per second, each. A request counts as the number of its queries, or of the vectors that it reads or writes, but at least 1.',
    examples: [20],
  });
const burst = upTo(KEY_RATE_MAX).meta({
  description: 'How many reads or writes are allowed at once.',
  examples: [40],
});
const rateLimit = z.object({ per_second: perSecond, burst }).meta({
  id: 'ApiKeyRateLimit',
  description:
    'The rate limit of a key, instead of that of the service. All users of the key share it.',
  examples: [{ per_second: 20, burst: 40 }],
});
const rateLimitInput = z.strictObject({ per_second: perSecond, burst: burst.optional() }).meta({
  id: 'ApiKeyRateLimitInput',
  description: 'By default, `burst` is the number per second.',
  examples: [{ per_second: 20, burst: 40 }],
});

export const KEY_EXAMPLE = {
  id: '3kTMd9xQ7bZr2LfW',
  owner: 'search frontend',
  scopes: ['vectors:read:catalog-*'],
  allowed_origins: ['https://app.example.org'],
  rate_limit: { per_second: 20, burst: 40 },
  created_at: '2026-11-21T08:00:00.000Z',
  expires_at: null,
  rotated_at: null,
  revoked_at: null,
};
const members = {
  id,
  owner,
  scopes: z.array(z.string()).meta({ description: 'What the key allows.' }),
  allowed_origins: allowedOrigins,
  rate_limit: rateLimit
    .nullable()
    .meta({ description: 'Null if the limits of the service apply.' }),
  created_at: z.iso.datetime().meta({ description: 'When the key was created.' }),
  expires_at: z.iso.datetime().nullable().meta({ description: 'Null if the key does not expire.' }),
  rotated_at: z.iso.datetime().nullable().meta({
    description: 'When the key was last rotated; null if it never was.',
  }),
  revoked_at: z.iso
    .datetime()
    .nullable()
    .meta({ description: 'When the key was revoked; null if it is not revoked.' }),
};
const record = z.object(members).meta({
  id: 'ApiKey',
  description: 'A key without its secret, which only the reply that created the key contains.',
  examples: [KEY_EXAMPLE],
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
    examples: [{ ...KEY_EXAMPLE, key: `sk_${KEY_EXAMPLE.id}_…` }],
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
      allowed_origins: allowedOrigins.default(null),
      rate_limit: rateLimitInput.nullable().default(null).meta({
        description: 'A rate limit instead of that of the service; absent or null for none.',
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
    .meta({ id: 'ApiKeyList', description: 'All keys.', examples: [{ keys: [KEY_EXAMPLE] }] }),
};
