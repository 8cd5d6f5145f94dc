// The reply about the caller itself.

import { z } from 'zod';
import { SCOPES } from '../../common/access.js';
import { KEY_EXAMPLE, keySchemas } from './keys.js';

const KINDS = ['anonymous', 'operator', 'key', 'token', 'certificate'] as const;
export type PrincipalKind = (typeof KINDS)[number];

const example = {
  id: `key:${KEY_EXAMPLE.id}`,
  kind: 'key',
  grants: [{ scope: 'vectors:read', collections: 'catalog-*' }],
  credentials_required: true,
  backups_configured: true,
  key: KEY_EXAMPLE,
} as const;

export const principalSchemas = {
  record: z
    .object({
      id: z.string().meta({
        description: 'The id in the audit log: the kind and, for credentials, `:` and their name.',
      }),
      kind: z.enum(KINDS).meta({
        description:
          '`anonymous` if no credential is required; `operator` on the socket in the data directory.',
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
              description: 'A scope and the collections that it applies to.',
              examples: [{ scope: 'vectors:read', collections: 'catalog-*' }],
            }),
        )
        .meta({ description: 'What the caller may do, in no particular order.' }),
      credentials_required: z.boolean().meta({
        description: 'Whether requests need a credential, which is the case once there is one.',
      }),
      backups_configured: z.boolean().meta({
        description:
          'Whether the server has a directory for backups, without which `/backups` answers with an error.',
      }),
      key: keySchemas.record.nullable().meta({
        description:
          'The record of the API key that the caller presents; null for other credentials.',
      }),
    })
    .meta({
      id: 'Principal',
      description: 'The caller, as identified by its credential.',
      examples: [example],
    }),
};
