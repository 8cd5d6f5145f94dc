// Requests and replies about vectors. `json-rows.ts` checks bodies that write vectors: it is faster and
// keeps metadata as sent. Their schemas here document them, and a test checks that the two agree.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import type { JsonObject } from '../../common/types.js';
import { type BasicSchemas, isObject, page, sequence, wantObject } from './basics.js';

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of schemas that share the limits
export function vectorSchemas(limits: Limits, basics: BasicSchemas) {
  const { vectorId, values, embed, namedValues, sparseVectors } = basics;
  const { metadata, filter, idempotencyKey, collection } = basics;
  const includeValues = z.boolean().meta({
    description: 'Whether to return `values`, and `vectors` and `sparse_vectors` if there are any.',
  });
  const includeSequence = z.boolean().meta({ description: 'Whether to return `sequence`.' });
  const includeMetadata = z.boolean().meta({ description: 'Whether to return `metadata`.' });

  const ifSequence = z.int().min(0).optional().meta({
    description:
      'Writes only if the vector was last written at this sequence, or with 0 if it does not exist; otherwise 412 `precondition_failed`, and nothing of the request is written.',
  });
  const expiresAt = z.iso
    .datetime({ offset: true })
    .nullable()
    .optional()
    .meta({
      description:
        'When the vector expires (RFC 3339); it is deleted within about a second then. Null: never. Absent: after `ttl_seconds` of the collection, if it has them.',
      examples: ['2027-01-31T12:00:00Z'],
    });
  const rowMembers = {
    id: vectorId.optional().meta({ description: 'Generated (a ULID) and returned when absent.' }),
    vectors: namedValues.optional(),
    sparse_vectors: sparseVectors.optional(),
    metadata: metadata.optional(),
    if_sequence: ifSequence,
    expires_at: expiresAt,
  };
  const input = z.strictObject({ ...rowMembers, values }).meta({
    id: 'VectorInput',
    examples: [{ id: 'article-17', values: [0.12, -0.5, 0.33], metadata: { year: 2024 } }],
  });
  const textInput = z.strictObject({ ...rowMembers, embed }).meta({ id: 'TextInput' });
  const recordInput = z.strictObject(rowMembers).meta({
    id: 'RecordInput',
    description: 'For collections without the unnamed vector.',
    examples: [{ id: 'article-17', vectors: { title: [0.7, -0.2] } }],
  });
  const mode = z.enum(['upsert', 'insert', 'update']).optional().meta({
    default: 'upsert',
    description:
      '`upsert` writes every vector, `insert` rejects ids that exist (409), `update` rejects ids that do not exist (404).',
  });
  const write = z
    .union([
      z
        .strictObject({
          vectors: z
            .array(z.union([input, textInput, recordInput]))
            .min(1)
            .max(limits.batchRowsMax),
          mode,
          idempotency_key: idempotencyKey,
        })
        .meta({
          id: 'VectorBatchWrite',
          description:
            'Atomic: if one vector is invalid, nothing is written. Each id may occur once.',
          examples: [{ vectors: [{ id: 'article-17', values: [0.12, -0.5, 0.33] }] }],
        }),
      z
        .strictObject({ ...input.shape, mode, idempotency_key: idempotencyKey })
        .meta({ id: 'VectorSingleWrite' }),
      z
        .strictObject({ ...textInput.shape, mode, idempotency_key: idempotencyKey })
        .meta({ id: 'TextSingleWrite' }),
      z
        .strictObject({ ...recordInput.shape, mode, idempotency_key: idempotencyKey })
        .meta({ id: 'RecordSingleWrite' }),
    ])
    .meta({ id: 'VectorWrite' });
  const putMembers = {
    id: vectorId.optional().meta({ description: 'If present, equal to the id in the path.' }),
    vectors: namedValues.optional(),
    sparse_vectors: sparseVectors.optional(),
    metadata: metadata.optional(),
    if_sequence: ifSequence,
    expires_at: expiresAt,
  };
  const putExample = { values: [0.12, -0.5, 0.33], metadata: { year: 2024 } };
  const patch = z
    .strictObject({
      metadata: metadata.optional(),
      values: values.optional(),
      embed: embed.optional(),
      vectors: z
        .custom<Record<string, unknown>>(isObject, { error: wantObject })
        .optional()
        .meta({
          type: 'object',
          additionalProperties: {
            anyOf: [
              { $ref: '#/$defs/Values' },
              { type: 'array', items: { $ref: '#/$defs/Values' }, minItems: 1 },
              { type: 'null' },
            ],
          },
          description: 'Named vectors to set, or with null to remove; the others stay.',
        }),
      sparse_vectors: z
        .custom<Record<string, unknown>>(isObject, { error: wantObject })
        .optional()
        .meta({
          type: 'object',
          additionalProperties: { anyOf: [{ $ref: '#/$defs/SparseVector' }, { type: 'null' }] },
          description: 'The same for sparse vectors.',
        }),
      expires_at: expiresAt.meta({
        description: 'When the vector expires (RFC 3339); null for never. Absent: as it is.',
      }),
      if_sequence: ifSequence,
    })
    .refine(
      ({ metadata, values, embed, vectors, sparse_vectors, expires_at }) =>
        (metadata ?? values ?? embed ?? vectors ?? sparse_vectors ?? expires_at) !== undefined,
      {
        error:
          'Expected metadata, values, embed, vectors, sparse_vectors or expires_at; found none of them.',
      },
    )
    .refine(({ values, embed }) => values === undefined || embed === undefined, {
      error: 'Expected values or embed; found both.',
    })
    .meta({
      id: 'VectorPatch',
      description:
        '`metadata` is a JSON merge patch (RFC 7396): null removes a member. `values` replaces the values.',
      examples: [{ metadata: { year: 2025, draft: null } }],
    });

  const listMembers = {
    limit: basics.limit,
    offset: basics.offset.meta({
      description:
        'The number of records to skip. Pages shift when data changes between requests, except together with a `cursor`, of whose snapshot it is then the page.',
    }),
    cursor: basics.cursor.meta({
      description:
        'The `next_cursor` of another page, whose snapshot it names. Send it alone or with the same fields as for the first page; with an `offset` for any page.',
    }),
    filter: filter.optional(),
    sort: basics
      .sortKeys('A path in the metadata, or `$id` for the id.')
      .refine((keys) => keys.every(({ field }) => !field.startsWith('$') || field === '$id'), {
        error: 'Expected a path in the metadata or $id; found another name that begins with $.',
      })
      .optional()
      .meta({
        description: `The order of the list, for at most ${limits.sortedRowsMax} vectors: numbers before strings before booleans before vectors without any of them at the path, in both directions; ties in insertion order. By default insertion order.`,
      }),
    include_metadata: includeMetadata.optional().meta({ default: true }),
    include_values: includeValues.optional().meta({ default: false }),
  };

  const record = z
    .object({
      id: vectorId,
      values: values.optional(),
      vectors: namedValues.optional().meta({
        description:
          'The named vectors that it has, with `values`; only in a collection with named vectors.',
      }),
      sparse_vectors: sparseVectors
        .optional()
        .meta({ description: 'The same for sparse vectors.' }),
      metadata: metadata.optional(),
      sequence: z.int().optional().meta({
        description:
          'The sequence at which the vector was last written, for `if_sequence`; if requested.',
      }),
      expires_at: z.iso.datetime().optional().meta({
        description: 'Only where one vector is read or several are fetched, if it expires.',
      }),
    })
    .meta({
      id: 'Vector',
      examples: [{ id: 'article-17', values: [0.12, -0.5, 0.33], metadata: { year: 2024 } }],
    });
  const selectionMembers = {
    ids: basics.vectorIds(limits.batchRowsMax).optional(),
    filter: filter.optional(),
    all: z.literal(true).optional().meta({ description: 'Every vector of the collection.' }),
  };
  return {
    write,
    writeQuery: z.strictObject({
      mode: mode.meta({ description: 'For streams. A JSON body has its own member `mode`.' }),
      id_column: z.string().optional().meta({
        description: 'For Arrow streams: the column of ids, instead of `id`.',
      }),
      vector_column: z.string().optional().meta({
        description:
          'For Arrow streams: the column of vectors, instead of `values`, `vector` or `embedding`.',
      }),
    }),
    put: z
      .union([
        z.strictObject({ ...putMembers, values, collection }),
        z.strictObject({ ...putMembers, embed, collection }),
        z.strictObject({ ...putMembers, collection }),
      ])
      .meta({ id: 'VectorPut', examples: [{ collection: 'articles', ...putExample }] }),
    putInCollection: z
      .union([
        z.strictObject({ ...putMembers, values }),
        z.strictObject({ ...putMembers, embed }),
        z.strictObject(putMembers),
      ])
      .meta({ id: 'VectorPutInCollection', examples: [putExample] }),
    patch,
    record,
    deleteQuery: z.strictObject({
      if_sequence: ifSequence.meta({
        description: 'Deletes only if the vector was last written at this sequence.',
      }),
    }),
    getQuery: z.strictObject({
      include_values: includeValues.default(true),
      include_metadata: includeMetadata.default(true),
      include_sequence: includeSequence.default(false),
    }),
    listQuery: z.strictObject(listMembers),
    listQueryAnywhere: z.strictObject({ collection, ...listMembers }),
    fetch: z
      .strictObject({
        ids: basics.vectorIds(limits.pageLimitMax),
        include_values: includeValues.default(true),
        include_metadata: includeMetadata.default(true),
        include_sequence: includeSequence.default(false),
      })
      .meta({ id: 'VectorFetch', examples: [{ ids: ['article-17', 'article-18'] }] }),
    delete: z
      .strictObject({
        ...selectionMembers,
        dry_run: z
          .boolean()
          .default(false)
          .meta({ description: 'Only count the vectors that would be deleted.' }),
        idempotency_key: idempotencyKey,
      })
      .refine(isOneSelection, ONE_SELECTION)
      .meta({
        id: 'VectorDelete',
        description: 'Exactly one of `ids`, `filter` and `all`.',
        examples: [{ ids: ['article-17'] }, { filter: { draft: true }, dry_run: true }],
      }),
    update: z
      .strictObject({
        ...selectionMembers,
        patch: metadata.optional().meta({
          description: 'A JSON merge patch (RFC 7396) of the metadata: null removes a member.',
        }),
        metadata: metadata.optional().meta({ description: 'In place of the metadata.' }),
        limit: z.int().min(1).max(limits.batchRowsMax).optional().meta({
          description: 'Vectors to change at most, in insertion order.',
        }),
        idempotency_key: idempotencyKey,
      })
      .refine(isOneSelection, ONE_SELECTION)
      .refine((body) => (body.patch === undefined) !== (body.metadata === undefined), {
        error: 'Expected exactly one of patch and metadata.',
      })
      .meta({
        id: 'VectorUpdate',
        description: 'Exactly one of `ids`, `filter` and `all`, and one of `patch` and `metadata`.',
        examples: [{ filter: { lang: 'en' }, patch: { reviewed: true, draft: null } }],
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
            'All ids in the order of the body, when at least one was generated. Absent for streams.',
        }),
        batch_count: z.int().optional().meta({
          description: 'For streams: the number of atomic writes.',
        }),
        resumed_count: z.int().optional().meta({
          description:
            'For streams: the rows that an earlier attempt with the same idempotency key had written.',
        }),
        sequence,
      })
      .meta({
        id: 'VectorsWritten',
        description: 'Sent when the write is durable on disk and visible to every later read.',
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
    updatedMany: z
      .object({
        updated_count: z.int().meta({
          description: 'The vectors that changed. Those that were as they should be do not count.',
        }),
        has_more: z.boolean().meta({ description: 'Whether `limit` left vectors to change.' }),
        sequence,
      })
      .meta({
        id: 'VectorsUpdated',
        examples: [{ updated_count: 120, has_more: false, sequence: 37 }],
      }),
    fetched: z
      .object({
        vectors: z.array(record).meta({ description: 'In the order of the requested ids.' }),
        not_found: z.array(vectorId),
      })
      .meta({ id: 'VectorsFetched' }),
    list: z
      .object({
        vectors: z.array(record),
        ...page,
        total: z
          .int()
          .optional()
          .meta({ description: 'Only when paging by `offset` or with `sort`.' }),
      })
      .meta({ id: 'VectorList', description: 'In insertion order, or as `sort` says.' }),
    counted: z
      .object({ count: z.int() })
      .meta({ id: 'VectorsCounted', examples: [{ count: 12000 }] }),
  };
}

const ONE_SELECTION = { error: 'Expected exactly one of ids, filter and all.' };

function isOneSelection(body: {
  ids?: readonly string[] | undefined;
  filter?: JsonObject | undefined;
  all?: true | undefined;
}): boolean {
  return [body.ids, body.filter, body.all].filter((by) => by !== undefined).length === 1;
}
