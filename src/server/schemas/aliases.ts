// Requests and replies about aliases of collections.

import { z } from 'zod';
import { type BasicSchemas, page } from './basics.js';

/** Changes in one request: more than deployments switch at once. */
const CHANGES_MAX = 100;

export function aliasSchemas(basics: BasicSchemas) {
  const name = basics.collectionId.meta({
    id: 'AliasName',
    description: 'The name of an alias: as the id of a collection, which it must not be.',
    examples: ['articles'],
  });
  const target = basics.collectionId.meta({
    description: 'The collection to point to. An alias stands for the collection behind it.',
    examples: ['articles-2025'],
  });
  const time = z.iso.datetime();
  const record = z
    .object({ name, collection: basics.collectionId, created_at: time, updated_at: time })
    .meta({
      id: 'Alias',
      examples: [
        {
          name: 'articles',
          collection: 'articles-2025',
          created_at: '2026-11-21T08:00:00.000Z',
          updated_at: '2026-11-21T08:00:00.000Z',
        },
      ],
    });
  return {
    name,
    record,
    set: z
      .strictObject({ collection: target })
      .meta({ id: 'AliasSet', examples: [{ collection: 'articles-2025' }] }),
    change: z
      .strictObject({
        aliases: z
          .array(
            z.strictObject({
              name,
              collection: target.nullable().meta({
                description: 'The collection to point to; null for no alias of this name.',
              }),
            }),
          )
          .min(1)
          .max(CHANGES_MAX),
      })
      .meta({
        id: 'AliasesChange',
        description: 'All changes take effect at the same moment, or none. Each name occurs once.',
        examples: [
          {
            aliases: [
              { name: 'articles', collection: 'articles-2025' },
              { name: 'articles-next', collection: null },
            ],
          },
        ],
      }),
    changed: z
      .object({
        aliases: z.array(record).meta({ description: 'The aliases that were made or moved.' }),
      })
      .meta({ id: 'AliasesChanged' }),
    list: z
      .object({ aliases: z.array(record), ...page, total: z.int() })
      .meta({ id: 'AliasList', description: 'In the order of their names.' }),
    deleted: z
      .object({ name, deleted: z.literal(true) })
      .meta({ id: 'AliasDeleted', examples: [{ name: 'articles', deleted: true }] }),
  };
}
