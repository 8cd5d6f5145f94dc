// Requests and replies about aliases of collections.

import { z } from 'zod';
import { type BasicSchemas, count, deleted, page } from './basics.js';

/** Changes in one request: more than deployments switch at once. */
const CHANGES_MAX = 100;

export function aliasSchemas(basics: BasicSchemas) {
  const name = basics.collectionId.meta({
    id: 'AliasName',
    description:
      'The name of an alias, with the same rules as the id of a collection, but different from all of them.',
    examples: ['articles-live'],
  });
  const target = basics.collectionId.meta({
    description: 'The collection to point to. An alias stands for the collection behind it.',
    examples: ['articles-2025'],
  });
  const example = {
    name: 'articles-live',
    collection: 'articles-2025',
    created_at: '2026-11-21T08:00:00.000Z',
    updated_at: '2026-11-21T08:00:00.000Z',
  };
  const record = z
    .object({
      name,
      collection: basics.collectionId,
      created_at: z.iso.datetime().meta({ description: 'When the alias was created.' }),
      updated_at: z.iso.datetime().meta({ description: 'When the alias was last set.' }),
    })
    .meta({ id: 'Alias', description: 'Another name of a collection.', examples: [example] });
  return {
    name,
    record,
    set: z.strictObject({ collection: target }).meta({
      id: 'AliasSet',
      description: 'Where to point the alias.',
      examples: [{ collection: 'articles-2025' }],
    }),
    change: z
      .strictObject({
        aliases: z
          .array(
            z
              .strictObject({
                name,
                collection: target.nullable().meta({
                  description: 'The collection to point to; null to delete the alias.',
                }),
              })
              .meta({
                id: 'AliasChange',
                description: 'An alias to create, move or delete.',
                examples: [{ name: 'articles-live', collection: 'articles-2025' }],
              }),
          )
          .min(1)
          .max(CHANGES_MAX)
          .meta({ description: 'The changes.' }),
      })
      .meta({
        id: 'AliasesChange',
        description: 'All changes take effect at the same moment, or none. Each name occurs once.',
        examples: [
          {
            aliases: [
              { name: 'articles-live', collection: 'articles-2025' },
              { name: 'articles-next', collection: null },
            ],
          },
        ],
      }),
    changed: z
      .object({
        aliases: z.array(record).meta({ description: 'The aliases that were created or moved.' }),
      })
      .meta({
        id: 'AliasesChanged',
        description: 'The changes took effect.',
        examples: [{ aliases: [example] }],
      }),
    list: z
      .object({
        aliases: z.array(record).meta({ description: 'In the order of their names.' }),
        ...page,
        total: count('The number of aliases.'),
      })
      .meta({
        id: 'AliasList',
        description: 'A page of the aliases.',
        examples: [{ aliases: [example], has_more: false, total: 1 }],
      }),
    deleted: z.object({ name, deleted }).meta({
      id: 'AliasDeleted',
      description: 'The alias is deleted.',
      examples: [{ name: 'articles-live', deleted: true }],
    }),
  };
}
