// The reply about the caller itself.

import { z } from 'zod';
import { SCOPES } from '../../common/access.js';
import { keySchemas } from './keys.js';

const KINDS = ['anonymous', 'operator', 'key', 'token', 'certificate'] as const;
export type PrincipalKind = (typeof KINDS)[number];

const example = {
  id: 'key:3kTMd9xQ7bZr2LfW',
  kind: 'key',
  grants: [{ scope: 'vectors:read', collections: 'catalog-*' }],
  credentials_required: true,
  key: {
    id: '3kTMd9xQ7bZr2LfW',
    owner: 'search frontend',
    scopes: ['vectors:read:catalog-*'],
    allowed_origins: null,
    rate_limit: null,
    created_at: '2026-11-21T08:00:00.000Z',
    expires_at: '2027-11-21T08:00:00.000Z',
    rotated_at: null,
    revoked_at: null,
  },
} as const;

export const principalSchemas = {
  record: z
    .object({
      id: z.string().meta({
        description: 'As in the audit log: the kind, and for credentials `:` and their name.',
      }),
      kind: z.enum(KINDS).meta({
        description:
          '`anonymous` where no credential is required; `operator` on the socket in the data directory.',
      }),
      grants: z
        .array(
          z
            .object({
              scope: z.enum(SCOPES).meta({ description: '`admin` includes all others.' }),
              collections: z.string().meta({
                description: 'A glob of collection ids: `*` matches any characters, `?` one.',
              }),
            })
            .meta({
              id: 'Grant',
              description: 'A scope, and the collections that it is for.',
              examples: [{ scope: 'vectors:read', collections: 'catalog-*' }],
            }),
        )
        .meta({ description: 'What the caller may do; no order.' }),
      credentials_required: z.boolean().meta({
        description: 'Whether requests need a credential: always, once there is one.',
      }),
      key: keySchemas.record.nullable().meta({
        description: 'The record of the API key that the caller presents; null for others.',
      }),
    })
    .meta({
      id: 'Principal',
      description: 'The caller: who its credential says that it is.',
      examples: [example],
    }),
};
