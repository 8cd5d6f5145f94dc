// Requests and replies about vectors. Bodies that write vectors are validated by `bodies/json-rows.ts`, which is
// faster and keeps metadata verbatim. Their schemas here are documentation, and a test checks that the two agree.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import { isJsonObject } from '../../common/metadata-path.js';
import type { Json, JsonObject } from '../../common/types.js';
import {
  type BasicSchemas,
  count,
  deleted,
  expectedObject,
  page,
  sequence,
  upTo,
  warnings,
} from './basics.js';

const EXAMPLE = { id: 'article-17', values: [0.12, -0.5, 0.33], metadata: { year: 2024 } };

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of schemas that share the limits
export function vectorSchemas(limits: Limits, basics: BasicSchemas) {
  const { vectorId, values, embed, namedValues, sparseVectors } = basics;
  const { metadata, filter, idempotencyKey, collection } = basics;
  const includeValues = z.boolean().meta({
    description: 'Whether to return `values`, and `vectors` and `sparse_vectors` if there are any.',
  });
  const includeSequence = z.boolean().meta({ description: 'Whether to return `sequence`.' });
  const aboutMetadata = {
    description:
      'Whether to return `metadata`; with a list of paths, only these, within their enclosing objects.',
  };
  const includeMetadata = basics.includeMetadataParameter.meta(aboutMetadata);
  const includeMetadataInBody = basics.includeMetadata.meta(aboutMetadata);

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
        'When the vector expires (RFC 3339); it is then deleted within about a second. Null: never. Absent: after `ttl_seconds` of the collection, if set.',
      examples: ['2027-01-31T12:00:00Z'],
    });
  const rowMembers = {
    id: vectorId.optional().meta({ description: 'If absent, a ULID is generated and returned.' }),
    vectors: namedValues.optional(),
    sparse_vectors: sparseVectors.optional(),
    metadata: metadata.optional(),
    if_sequence: ifSequence,
    expires_at: expiresAt,
  };
  /** A row given by its values, by a text, or without the unnamed vector. `ids` are those of the three schemas. */
  const bySource = <Members extends z.core.$ZodLooseShape>(
    members: Members,
    ids: readonly [values: string, text: string, record: string],
    example: object = {},
  ) =>
    [
      z.strictObject({ ...members, values }).meta({
        id: ids[0],
        description: 'A vector given by its values.',
        examples: [{ ...example, values: [0.12, -0.5, 0.33], metadata: { year: 2024 } }],
      }),
      z.strictObject({ ...members, embed }).meta({
        id: ids[1],
        description:
          'A vector given by a text, which the model of the collection turns into its values.',
        examples: [{ ...example, embed: 'On exactness' }],
      }),
      z.strictObject(members).meta({
        id: ids[2],
        description: 'A record of a collection without the unnamed vector.',
        examples: [{ ...example, vectors: { title: [0.7, -0.2] } }],
      }),
    ] as const;
  const named = { id: EXAMPLE.id };
  const inputs = bySource(rowMembers, ['VectorInput', 'TextInput', 'RecordInput'], named);
  const vectorsToSet = z
    .custom<Record<string, unknown>>(isJsonObject, { error: expectedObject })
    .meta({
      id: 'VectorsToSet',
      type: 'object',
      additionalProperties: {
        anyOf: [
          { $ref: '#/$defs/Values' },
          { type: 'array', items: { $ref: '#/$defs/Values' }, minItems: 1 },
          { type: 'null' },
        ],
      },
      description: 'Named vectors to set or, with null, to remove; the others are unchanged.',
      examples: [{ title: [0.7, -0.2], image: null }],
    });
  const changeMembers = {
    metadata: metadata.optional().meta({
      description: 'A JSON merge patch (RFC 7396): members replace others, and null removes them.',
    }),
    values: values.optional(),
    embed: embed.optional(),
    vectors: vectorsToSet.optional(),
    sparse_vectors: z
      .custom<Record<string, unknown>>(isJsonObject, { error: expectedObject })
      .optional()
      .meta({
        type: 'object',
        additionalProperties: { anyOf: [{ $ref: '#/$defs/SparseVector' }, { type: 'null' }] },
        description: 'The same for sparse vectors.',
      }),
    expires_at: expiresAt.meta({
      description: 'When the vector expires (RFC 3339); null for never. Absent: unchanged.',
    }),
    if_sequence: ifSequence,
  };
  const isOneSource = ({ values, embed }: { values?: unknown; embed?: unknown }) =>
    values === undefined || embed === undefined;
  const oneSource = { error: 'Expected values or embed; found both.' };
  const patchInput = z
    .strictObject({
      id: vectorId.meta({ description: 'The id of an existing vector.' }),
      ...changeMembers,
    })
    .refine(isOneSource, oneSource)
    .meta({
      id: 'PatchInput',
      description: 'The changes of a vector; the rest is unchanged.',
      examples: [{ id: 'article-17', vectors: { summary: [0.1, 0.9], title: null } }],
    });
  const writeMode = z.enum(['upsert', 'insert', 'update']).meta({
    id: 'WriteMode',
    description:
      '`upsert` writes every vector, `insert` rejects ids that exist (409), `update` rejects ids that do not exist (404).',
    examples: ['upsert'],
  });
  const mode = writeMode.optional().meta({
    default: 'upsert',
    description: 'Whether to write every vector, only new ones or only existing ones.',
  });
  const patchMode = z.literal('patch').meta({
    description:
      'Changes the members that the request contains and leaves the rest unchanged; rejects ids that do not exist (404).',
  });
  const write = z
    .union([
      z
        .strictObject({
          vectors: z
            .array(z.union(inputs))
            .min(1)
            .max(limits.batchRowsMax)
            .meta({ description: 'The vectors to write.' }),
          mode,
          idempotency_key: idempotencyKey,
        })
        .meta({
          id: 'VectorBatchWrite',
          description:
            'Atomic: if one vector is invalid, nothing is written. Each id may occur once.',
          examples: [{ vectors: [{ id: 'article-17', values: [0.12, -0.5, 0.33] }] }],
        }),
      ...bySource(
        { ...rowMembers, mode, idempotency_key: idempotencyKey },
        ['VectorSingleWrite', 'TextSingleWrite', 'RecordSingleWrite'],
        named,
      ),
      z
        .strictObject({
          vectors: z
            .array(patchInput)
            .min(1)
            .max(limits.batchRowsMax)
            .meta({ description: 'The vectors to change.' }),
          mode: patchMode,
          idempotency_key: idempotencyKey,
        })
        .meta({
          id: 'VectorBatchPatch',
          description:
            'Changes of vectors that exist. Atomic: if one is invalid, nothing is written. Each id may occur once.',
          examples: [
            { vectors: [{ id: 'article-17', vectors: { summary: [0.1, 0.9] } }], mode: 'patch' },
          ],
        }),
      z
        .strictObject({ ...patchInput.shape, mode: patchMode, idempotency_key: idempotencyKey })
        .refine(isOneSource, oneSource)
        .meta({
          id: 'VectorSinglePatch',
          description: 'The change of one vector.',
          examples: [{ id: 'article-17', vectors: { title: null }, mode: 'patch' }],
        }),
    ])
    .meta({
      id: 'VectorWrite',
      description: 'One or several vectors to write or change.',
      examples: [
        {
          vectors: [
            EXAMPLE,
            { id: 'article-18', values: [0.7, 0.2, -0.1], metadata: { year: 2025 } },
          ],
        },
      ],
    });
  const putMembers = {
    ...rowMembers,
    id: vectorId.optional().meta({ description: 'If present, equal to the id in the path.' }),
  };
  const putExample = { values: [0.12, -0.5, 0.33], metadata: { year: 2024 } };
  const inArticles = { collection: 'articles' };
  const patch = z
    .strictObject(changeMembers)
    .refine(
      ({ metadata, values, embed, vectors, sparse_vectors, expires_at }) =>
        (metadata ?? values ?? embed ?? vectors ?? sparse_vectors ?? expires_at) !== undefined,
      {
        error:
          'Expected metadata, values, embed, vectors, sparse_vectors or expires_at; found none of them.',
      },
    )
    .refine(isOneSource, oneSource)
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
        'The number of records to skip. Pages shift when data changes between requests, except together with a `cursor`, which fixes the snapshot.',
    }),
    cursor: basics.cursor.meta({
      description:
        'The `next_cursor` of another page, whose snapshot it names. Send it alone or with the same fields as for the first page; with an `offset` for any page.',
    }),
    filter: filter.optional().meta({ description: 'Only the vectors that pass.' }),
    sort: basics.sortKeys
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
      values: basics.numbers.optional(),
      vectors: namedValues.optional().meta({
        description:
          'The named vectors of the record, if `values` are requested; only in a collection with named vectors.',
      }),
      sparse_vectors: sparseVectors
        .optional()
        .meta({ description: 'The same for sparse vectors.' }),
      metadata: metadata.optional(),
      sequence: count(
        'The sequence at which the vector was last written, for `if_sequence`; if requested.',
      ).optional(),
      expires_at: z.iso.datetime().optional().meta({
        description: 'The expiry, if any; only if one vector is read or several are fetched.',
      }),
    })
    .meta({
      id: 'Vector',
      description: 'A stored vector, or the requested members of it.',
      examples: [EXAMPLE],
    });
  const selectionMembers = {
    ids: basics.vectorIds(limits.batchRowsMax).optional().meta({
      description: 'The vectors with these ids.',
    }),
    filter: filter
      .refine(hasCondition, {
        error:
          'Expected a condition; found none, which would select every vector. Send "all": true for that.',
      })
      .optional()
      .meta({ description: 'The vectors that pass. It has at least one condition.' }),
    all: z.literal(true).optional().meta({ description: 'Every vector of the collection.' }),
  };
  return {
    write,
    writeQuery: z.strictObject({
      mode: z
        .enum([...writeMode.options, 'patch'])
        .optional()
        .meta({
          default: 'upsert',
          description:
            'For streams; a JSON body has its own member `mode`. `upsert` writes every vector, `insert` rejects ids that exist (409), `update` and `patch` reject ids that do not exist (404). `patch` changes the members that the rows contain and leaves the rest unchanged.',
        }),
      id_column: z
        .string()
        .optional()
        .meta({
          description: 'For Arrow streams: the column of ids, instead of `id`.',
          examples: ['doc_id'],
        }),
      vector_column: z
        .string()
        .optional()
        .meta({
          description:
            'For Arrow streams: the column of vectors, instead of `values`, `vector` or `embedding`.',
          examples: ['emb'],
        }),
      bulk: z.boolean().optional().meta({
        default: false,
        description:
          'For streams in the mode `upsert` without an `Idempotency-Key`, about as long as a segment file (64 MiB of values). In a cluster, the node that receives the stream turns its rows into segment files itself, instead of forwarding them to the node that carries out the writes of the collection, so that several nodes can take streams at once. Each file is one write. A service without a cluster ignores this.',
      }),
    }),
    put: z
      .union(
        bySource(
          { ...putMembers, collection },
          ['ValuesPutAnywhere', 'TextPutAnywhere', 'RecordPutAnywhere'],
          inArticles,
        ),
      )
      .meta({
        id: 'VectorPut',
        description: 'A vector that replaces the one with the id, and its collection.',
        examples: [{ ...inArticles, ...putExample }],
      }),
    putInCollection: z.union(bySource(putMembers, ['ValuesPut', 'TextPut', 'RecordPut'])).meta({
      id: 'VectorPutInCollection',
      description: 'A vector that replaces the one with the id.',
      examples: [putExample],
    }),
    patch,
    record,
    deleteQuery: z.strictObject({
      if_sequence: ifSequence.meta({
        description: 'Deletes only if the vector was last written at this sequence.',
        examples: [33],
      }),
    }),
    getQuery: z.strictObject({
      include_values: includeValues.default(true),
      include_metadata: includeMetadata.default(true),
      include_sequence: includeSequence.default(false),
    }),
    listQuery: z.strictObject(listMembers),
    listQueryAnywhere: z.strictObject({ collection, ...listMembers }),
    listBody: z
      .strictObject({
        ...listMembers,
        include_metadata: includeMetadataInBody.optional().meta({ default: true }),
      })
      .meta({
        id: 'VectorListRequest',
        description: 'A page of a list; the members are the parameters of the same request by GET.',
        examples: [{ filter: { year: { $in: [2021, 2022] } }, limit: 2 }],
      }),
    listBodyAnywhere: z
      .strictObject({
        collection,
        ...listMembers,
        include_metadata: includeMetadataInBody.optional().meta({ default: true }),
      })
      .meta({
        id: 'VectorListRequestAnywhere',
        description: 'A page of a list, and its collection.',
        examples: [{ collection: 'articles', filter: { year: { $in: [2021, 2022] } }, limit: 2 }],
      }),
    fetch: z
      .strictObject({
        ids: basics.vectorIds(limits.pageLimitMax).meta({ description: 'The vectors to read.' }),
        include_values: includeValues.default(true),
        include_metadata: includeMetadataInBody.default(true),
        include_sequence: includeSequence.default(false),
      })
      .meta({
        id: 'VectorFetch',
        description: 'The vectors to read, and which of their members.',
        examples: [{ ids: ['article-17', 'article-18'] }],
      }),
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
        metadata: metadata.optional().meta({ description: 'Replaces the metadata.' }),
        limit: upTo(limits.batchRowsMax).optional().meta({
          description: 'The maximum number of vectors to change, in insertion order.',
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
      .strictObject({
        filter: filter.optional().meta({ description: 'The vectors to count; by default all.' }),
      })
      .meta({
        id: 'VectorCount',
        description: 'What to count.',
        examples: [{ filter: { year: 2024 } }],
      }),

    written: z
      .object({
        upserted_count: count('The number of written vectors.'),
        inserted_count: count('The number of those that are new.'),
        updated_count: count('The number of those that replaced another vector.'),
        ids: z.array(vectorId).optional().meta({
          description:
            'All ids in the order of the body, if at least one was generated. Absent for streams.',
        }),
        batch_count: count('For streams: the number of atomic writes.').optional(),
        resumed_count: count(
          'For streams: the rows that an earlier attempt with the same idempotency key had written.',
        ).optional(),
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
        created: z.boolean().meta({ description: 'Whether there was no vector with the id.' }),
        sequence,
      })
      .meta({
        id: 'VectorReplaced',
        description: 'The vector is written.',
        examples: [{ id: 'article-17', collection: 'articles', created: true, sequence: 33 }],
      }),
    patched: z.object({ id: vectorId, sequence }).meta({
      id: 'VectorPatched',
      description: 'The vector is changed.',
      examples: [{ id: 'article-17', sequence: 34 }],
    }),
    deleted: z.object({ id: vectorId, deleted, sequence }).meta({
      id: 'VectorDeleted',
      description: 'The vector is deleted.',
      examples: [{ id: 'article-17', deleted: true, sequence: 35 }],
    }),
    deletedMany: z
      .object({
        deleted_count: count(
          'The number of vectors that were deleted or, with `dry_run`, would be.',
        ),
        sequence,
        warnings,
      })
      .meta({
        id: 'VectorsDeleted',
        description: 'The number of deleted vectors.',
        examples: [{ deleted_count: 1, sequence: 36 }],
      }),
    updatedMany: z
      .object({
        updated_count: count(
          'The number of vectors that changed. Vectors that already had the new metadata do not count.',
        ),
        has_more: z.boolean().meta({
          description: 'Whether `limit` left vectors unchanged that still need the change.',
        }),
        sequence,
        warnings,
      })
      .meta({
        id: 'VectorsUpdated',
        description: 'The number of changed vectors.',
        examples: [{ updated_count: 120, has_more: false, sequence: 37 }],
      }),
    fetched: z
      .object({
        vectors: z.array(record).meta({ description: 'In the order of the requested ids.' }),
        not_found: z.array(vectorId).meta({ description: 'The ids that do not exist.' }),
      })
      .meta({
        id: 'VectorsFetched',
        description: 'The requested vectors.',
        examples: [{ vectors: [EXAMPLE], not_found: ['article-18'] }],
      }),
    list: z
      .object({
        vectors: z.array(record).meta({ description: 'In insertion order, or as `sort` says.' }),
        ...page,
        total: count(
          'The vectors that pass the filter; only when paging by `offset` or with `sort`.',
        ).optional(),
        warnings,
      })
      .meta({
        id: 'VectorList',
        description: 'A page of the vectors of a collection.',
        examples: [{ vectors: [EXAMPLE], has_more: false }],
      }),
    counted: z.object({ count: count('The vectors that pass the filter.'), warnings }).meta({
      id: 'VectorsCounted',
      description: 'The number of vectors.',
      examples: [{ count: 12000 }],
    }),
  };
}

const ONE_SELECTION = { error: 'Expected exactly one of ids, filter and all.' };

/** Whether a filter can exclude a vector. `{}` cannot, nor can an empty `$nin` or combinations of these. */
function hasCondition(filter: JsonObject): boolean {
  return !selects('all', filter);
}

/** Whether a filter selects all or no vectors regardless of their metadata. */
function selects(what: 'all' | 'none', filter: JsonObject): boolean {
  const isAll = what === 'all';
  const isSo = ([name, value]: [string, Json]): boolean => {
    if (name === '$not') return isJsonObject(value) && selects(isAll ? 'none' : 'all', value);
    if (name !== '$and' && name !== '$or') return isJsonObject(value) && isEmptyList(value, isAll);
    if (!Array.isArray(value) || !value.every(isJsonObject)) return false;
    const areSo = value.map((each) => selects(what, each));
    return isAll === (name === '$and') ? areSo.every(Boolean) : areSo.some(Boolean);
  };
  const entries = Object.entries(filter);
  return isAll ? entries.every(isSo) : entries.some(isSo);
}

function isEmptyList(operators: JsonObject, excludes: boolean): boolean {
  const operands = Object.entries(operators);
  const isOne = ([name, operand]: [string, Json]) =>
    name === (excludes ? '$nin' : '$in') && Array.isArray(operand) && operand.length === 0;
  return excludes ? operands.length > 0 && operands.every(isOne) : operands.some(isOne);
}

function isOneSelection(body: {
  ids?: readonly string[] | undefined;
  filter?: JsonObject | undefined;
  all?: true | undefined;
}): boolean {
  return [body.ids, body.filter, body.all].filter((by) => by !== undefined).length === 1;
}
