// Requests and replies about vectors. Bodies that write vectors are checked by `json-rows.ts`,
// which is faster and keeps metadata as sent; their schemas here describe them, and a test holds
// the two together.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import { type BasicSchemas, page, sequence } from './basics.js';

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of schemas that share the limits
export function vectorSchemas(limits: Limits, basics: BasicSchemas) {
  const { vectorId, values, metadata, filter, idempotencyKey, collection } = basics;
  const includeValues = z.boolean().meta({ description: 'Whether to return `values`.' });
  const includeMetadata = z.boolean().meta({ description: 'Whether to return `metadata`.' });

  const input = z
    .strictObject({
      id: vectorId.optional().meta({ description: 'Generated (a ULID) and returned when absent.' }),
      values,
      metadata: metadata.optional(),
    })
    .meta({
      id: 'VectorInput',
      examples: [{ id: 'article-17', values: [0.12, -0.5, 0.33], metadata: { year: 2024 } }],
    });
  const mode = z.enum(['upsert', 'insert', 'update']).optional().meta({
    default: 'upsert',
    description:
      '`upsert` writes every vector; `insert` refuses ids that exist (409), `update` ids that do not (404).',
  });
  const write = z
    .union([
      z
        .strictObject({
          vectors: z.array(input).min(1).max(limits.batchRowsMax),
          mode,
          idempotency_key: idempotencyKey,
        })
        .meta({
          id: 'VectorBatchWrite',
          description: 'Atomic: one bad vector, and nothing is written. Each id at most once.',
          examples: [{ vectors: [{ id: 'article-17', values: [0.12, -0.5, 0.33] }] }],
        }),
      z
        .strictObject({ ...input.shape, mode, idempotency_key: idempotencyKey })
        .meta({ id: 'VectorSingleWrite' }),
    ])
    .meta({ id: 'VectorWrite' });
  const putMembers = {
    id: vectorId.optional().meta({ description: 'Equal to the id in the path, if sent.' }),
    values,
    metadata: metadata.optional(),
  };
  const putExample = { values: [0.12, -0.5, 0.33], metadata: { year: 2024 } };
  const patch = z
    .strictObject({ metadata: metadata.optional(), values: values.optional() })
    .refine((body) => body.metadata !== undefined || body.values !== undefined, {
      error: 'Expected metadata, values or both; found neither.',
    })
    .meta({
      id: 'VectorPatch',
      description:
        '`metadata` is a JSON merge patch (RFC 7396): null removes a member. `values` replaces the values.',
      examples: [{ metadata: { year: 2025, draft: null } }],
    });

  const listMembers = {
    limit: basics.limit,
    offset: basics.offset,
    cursor: basics.cursor,
    filter: filter.optional(),
    include_metadata: includeMetadata.optional().meta({ default: true }),
    include_values: includeValues.optional().meta({ default: false }),
  };

  const record = z
    .object({
      id: vectorId,
      values: values.optional(),
      metadata: metadata.optional(),
    })
    .meta({
      id: 'Vector',
      examples: [{ id: 'article-17', values: [0.12, -0.5, 0.33], metadata: { year: 2024 } }],
    });
  return {
    write,
    writeQuery: z.strictObject({
      mode: mode.meta({ description: 'Of a stream; a JSON body has it in itself.' }),
      id_column: z.string().optional().meta({
        description: 'Of an Arrow stream: the column of ids, instead of `id`.',
      }),
      vector_column: z.string().optional().meta({
        description:
          'Of an Arrow stream: the column of vectors, instead of `values`, `vector` or `embedding`.',
      }),
    }),
    put: z
      .strictObject({ ...putMembers, collection })
      .meta({ id: 'VectorPut', examples: [{ collection: 'articles', ...putExample }] }),
    putInCollection: z
      .strictObject(putMembers)
      .meta({ id: 'VectorPutInCollection', examples: [putExample] }),
    patch,
    record,
    getQuery: z.strictObject({
      include_values: includeValues.default(true),
      include_metadata: includeMetadata.default(true),
    }),
    listQuery: z.strictObject(listMembers).refine(isOnePlace, ONE_PLACE),
    listQueryAnywhere: z.strictObject({ collection, ...listMembers }).refine(isOnePlace, ONE_PLACE),
    fetch: z
      .strictObject({
        ids: basics.vectorIds(limits.pageLimitMax),
        include_values: includeValues.default(true),
        include_metadata: includeMetadata.default(true),
      })
      .meta({ id: 'VectorFetch', examples: [{ ids: ['article-17', 'article-18'] }] }),
    delete: z
      .strictObject({
        ids: basics.vectorIds(limits.batchRowsMax).optional(),
        filter: filter.optional(),
        all: z.literal(true).optional().meta({ description: 'Every vector of the collection.' }),
        dry_run: z.boolean().default(false).meta({ description: 'Count only, delete nothing.' }),
        idempotency_key: idempotencyKey,
      })
      .refine(
        (body) => [body.ids, body.filter, body.all].filter((by) => by !== undefined).length === 1,
        { error: 'Expected exactly one of ids, filter and all.' },
      )
      .meta({
        id: 'VectorDelete',
        description: 'Exactly one of `ids`, `filter` and `all`.',
        examples: [{ ids: ['article-17'] }, { filter: { draft: true }, dry_run: true }],
      }),
    count: z
      .strictObject({ filter: filter.optional() })
      .meta({ id: 'VectorCount', examples: [{ filter: { year: 2024 } }] }),

    written: z
      .object({
        upserted_count: z.int(),
        inserted_count: z.int(),
        updated_count: z.int(),
        ids: z.array(vectorId).optional().meta({
          description:
            'All ids in the order of the body, when at least one was generated. Not of a stream.',
        }),
        batch_count: z.int().optional().meta({
          description: 'Of a stream: the writes that it took. Each was atomic.',
        }),
        resumed_count: z.int().optional().meta({
          description:
            'Of a stream: rows that an earlier attempt with the same key had made durable.',
        }),
        sequence,
      })
      .meta({
        id: 'VectorsWritten',
        description:
          'The write is durable on disk and visible to every later read when this is sent.',
        examples: [{ upserted_count: 2, inserted_count: 1, updated_count: 1, sequence: 32 }],
      }),
    replaced: z
      .object({
        id: vectorId,
        collection: basics.collectionId,
        created: z.boolean(),
        sequence,
      })
      .meta({
        id: 'VectorReplaced',
        examples: [{ id: 'article-17', collection: 'articles', created: true, sequence: 33 }],
      }),
    patched: z
      .object({ id: vectorId, sequence })
      .meta({ id: 'VectorPatched', examples: [{ id: 'article-17', sequence: 34 }] }),
    deleted: z.object({ id: vectorId, deleted: z.literal(true), sequence }).meta({
      id: 'VectorDeleted',
      examples: [{ id: 'article-17', deleted: true, sequence: 35 }],
    }),
    deletedMany: z
      .object({ deleted_count: z.int(), sequence })
      .meta({ id: 'VectorsDeleted', examples: [{ deleted_count: 1, sequence: 36 }] }),
    fetched: z
      .object({
        vectors: z.array(record).meta({ description: 'In the order of the ids asked for.' }),
        not_found: z.array(vectorId),
      })
      .meta({ id: 'VectorsFetched' }),
    list: z
      .object({
        vectors: z.array(record),
        ...page,
        total: z.int().optional().meta({ description: 'With the offset model only.' }),
      })
      .meta({ id: 'VectorList', description: 'In the order of arrival.' }),
    counted: z
      .object({ count: z.int() })
      .meta({ id: 'VectorsCounted', examples: [{ count: 12000 }] }),
  };
}

const ONE_PLACE = { error: 'Expected offset or cursor; found both.', path: ['cursor'] };

function isOnePlace(page: { offset?: number | undefined; cursor?: string | undefined }): boolean {
  return page.offset === undefined || page.cursor === undefined;
}
