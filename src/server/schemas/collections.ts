// Requests and replies about collections.

import { z } from 'zod';
import { ELEMENT_TYPES, ELEMENTS } from '../../common/elements.js';
import type { Violation } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { isJsonObject, METADATA_PATH_CHARACTERS_MAX } from '../../common/metadata-path.js';
import { DECLARED_TYPES, type DeclaredTypes } from '../../common/types.js';
import { findVectorsViolations } from '../../database/collection/vector-changes.js';
import { BUILTIN, EMBEDDING_NAME } from '../../platform/config.js';
import { describeKind } from '../bodies/value-kinds.js';
import type { LocatedViolation } from '../bodies/vector-rules.js';
import { type BasicSchemas, count, deleted, page, upTo } from './basics.js';
import { refineWith } from './rules.js';
import { textSchemas } from './text.js';
import { findVectorViolations, toFieldShapes } from './vector-fields.js';

/** More than any cluster has nodes. */
const REPLICATION_FACTOR_MAX = 1_000;
const NODE_NAME_CHARACTERS_MAX = 64;
/** 100 years. */
const TTL_SECONDS_MAX = 100 * 366 * 86_400;

const SEGMENT_EXAMPLE = {
  number: 1,
  state: 'stored',
  row_count: 32768,
  vector_count: 32001,
  memory: { host_bytes: 310000, mapped_bytes: 102000000, device_bytes: 0 },
  file_bytes: 102000000,
};
const COLLECTION_EXAMPLE = {
  id: 'articles',
  dimension: 768,
  metric: 'cosine',
  description: null,
  labels: {},
  status: 'ready',
  vector_count: 12000,
  sequence: 31,
  created_at: '2026-11-21T08:00:00.000Z',
  updated_at: '2026-11-21T08:00:00.000Z',
  engine: { name: 'wasm', reason: 'no GPU was found' },
  memory: { host_bytes: 3100000, mapped_bytes: 49000000, device_bytes: 0 },
  disk_bytes: 51000000,
};

const DEFAULT_METRIC = {
  description: '`cosine` by default; `hamming` for elements of `bit`.',
} as const;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of schemas that share the limits
export function collectionSchemas(limits: Limits, basics: BasicSchemas) {
  const description = z
    .string()
    .max(limits.descriptionCharactersMax)
    .nullable()
    .meta({
      description: 'Text for people.',
      examples: ['Articles of the public site'],
    });
  const labels = z
    .custom<Record<string, string>>()
    .superRefine(refineWith((value) => findLabelsViolation(value, limits)))
    .meta({
      id: 'Labels',
      type: 'object',
      additionalProperties: { type: 'string', maxLength: limits.labelCharactersMax },
      maxProperties: limits.labelsMax,
      description: `Text by name, for people and tools: at most ${limits.labelsMax} labels, whose names and texts have at most ${limits.labelCharactersMax} characters each.`,
      examples: [{ team: 'search' }],
    });
  const ttl = upTo(TTL_SECONDS_MAX)
    .nullable()
    .meta({
      description:
        'Seconds from the write of a vector without `expires_at` to its expiry; null for never. A change applies to later writes.',
      examples: [86_400],
    });
  const types = z
    .custom<DeclaredTypes>()
    .superRefine(refineWith((value) => findTypesViolation(value, limits)))
    .meta({
      id: 'DeclaredSchema',
      type: 'object',
      additionalProperties: { type: 'string', enum: DECLARED_TYPES },
      maxProperties: limits.metadataColumnsMax,
      description:
        'Types of metadata by path, in the notation of filters. A vector whose metadata has another type at one of them is rejected. Absent and null values pass, and so does everything at other paths. `date` is a string with a date or time of RFC 3339.',
      examples: [{ year: 'integer', 'author.name': 'string', tags: 'string[]' }],
    });
  const text = textSchemas(limits, basics);
  const dimension = upTo(limits.dimensionMax).meta({
    description: 'The length of the vector.',
    examples: [384],
  });
  const elementType = z.enum(ELEMENT_TYPES).meta({
    id: 'ElementType',
    description: `The type of the elements of a vector, by default \`float32\`. Vectors are stored and compared as values of the type: \`float16\` and \`bfloat16\` round to the nearest, \`int8\` accepts ${ELEMENTS.int8.values}, \`bit\` ${ELEMENTS.bit.values}.`,
    examples: ['float16'],
  });
  const namedVector = z
    .strictObject({
      dimension,
      metric: basics.metric.optional().meta(DEFAULT_METRIC),
      element_type: elementType.optional(),
      multi: z.boolean().optional().meta({
        description:
          'Whether a record has a list of vectors under this name, which `multi_vector` compares by MaxSim. For `cosine` and `dot`.',
      }),
    })
    .superRefine(refineWith(findVectorViolations))
    .meta({
      id: 'NamedVectorInput',
      description: 'A named vector to create.',
      examples: [{ dimension: 384, metric: 'cosine' }],
    });
  const findExcess = (added: Parameters<typeof toFieldShapes>[0]) =>
    findVectorsViolations(toFieldShapes(added), limits).map(({ violation }) => violation);
  const vectors = z
    .record(basics.vectorName, namedVector)
    .superRefine(refineWith((value) => findExcess({ vectors: value })))
    .meta({
      description: `Named vectors, in addition to or instead of the unnamed one. Each record may have any of them. At most ${limits.namedVectorsMax}, with at most ${limits.recordValuesMax} dimensions in total. Others can be added later.`,
      examples: [{ title: { dimension: 384, metric: 'cosine' } }],
    });
  const sparseSettings = z.strictObject({}).meta({
    id: 'SparseVectorSettings',
    description: 'Sparse vectors have no settings.',
    examples: [{}],
  });
  const sparseVectors = z
    .record(basics.vectorName, sparseSettings)
    .superRefine(refineWith((value) => findExcess({ sparseVectors: value })))
    .meta({
      description: `Sparse vectors, compared by the dot product. Each record may have any of them. Their settings are empty objects. At most ${limits.sparseVectorsMax}, with names that do not occur in \`vectors\`. Others can be added later.`,
      examples: [{ words: {} }],
    });
  const embedding = z
    .strictObject({
      endpoint: z.string().regex(EMBEDDING_NAME).meta({
        description:
          'The name of an endpoint in the configuration of the server, or `builtin` for the built-in model.',
      }),
      model: z.string().min(1).max(limits.labelCharactersMax).meta({
        description: 'The model to use; that of `builtin` with its version.',
      }),
      sends_dimension: z.boolean().default(false).meta({
        description:
          'Whether to request vectors of the dimension of the collection (`dimensions`), which some models support.',
      }),
    })
    .meta({
      id: 'Embedding',
      description:
        'Turns texts into vectors: vectors and queries may contain `embed`, a text, in place of values.',
      examples: [{ endpoint: 'local', model: 'bge-small-en-v1.5' }],
    });
  const embed = z
    .union([z.literal(BUILTIN), embedding])
    .meta({
      id: 'EmbeddingModel',
      description:
        'What turns texts into unnamed vectors: `builtin` for the built-in English model, whose vectors have 512 elements, or a model of an endpoint.',
      examples: ['builtin'],
    })
    .nullable();
  const replicationFactor = upTo(REPLICATION_FACTOR_MAX).nullable();
  const nodeName = z.string().min(1).max(NODE_NAME_CHARACTERS_MAX);
  const create = z
    .strictObject({
      id: basics.collectionId.optional().meta({ description: 'By default generated.' }),
      dimension: dimension.optional().meta({
        description:
          'The length of the unnamed vector, which every record has. Without it, records have only the named and sparse vectors and the text that the collection defines, of which it needs at least one.',
        examples: [768],
      }),
      metric: basics.metric.optional().meta({
        ...DEFAULT_METRIC,
        description: `The metric of the unnamed vector; only with \`dimension\`. ${DEFAULT_METRIC.description}`,
      }),
      element_type: elementType.optional().meta({
        description:
          'The element type of the unnamed vector; only with `dimension`. `float32` by default.',
      }),
      vectors: vectors.optional(),
      sparse_vectors: sparseVectors.optional(),
      description: description.default(null),
      labels: labels.optional(),
      text: text.input.optional(),
      ttl_seconds: ttl.optional(),
      schema: types.nullable().optional().meta({
        description: 'Types of metadata by path; null or absent for none.',
      }),
      embed: embed.optional().meta({
        description:
          'The model that turns texts into unnamed vectors. Null or absent if the collection has none.',
      }),
      replication_factor: replicationFactor.optional().meta({
        description:
          'The number of nodes of a cluster that hold the collection; null or absent for all. Requests can be sent to any node. While the cluster has fewer nodes, fewer hold it. It has no effect outside a cluster, where it is only stored.',
        examples: [2],
      }),
      idempotency_key: basics.idempotencyKey,
    })
    .superRefine(
      refineWith((body) => [
        ...findUnnamedViolations(body),
        ...findVectorViolations(body),
        ...findRepeatedNames(body),
      ]),
    )
    .meta({
      id: 'CollectionCreate',
      description: 'A collection to create.',
      examples: [{ id: 'articles', dimension: 768, metric: 'cosine' }],
    });
  const update = z
    .strictObject({
      description: description.optional(),
      labels: labels.optional(),
      ttl_seconds: ttl.optional(),
      schema: types.nullable().optional().meta({
        description:
          'Replaces the whole schema; null for none. Every vector must match. The check takes a few seconds for a million vectors, during which writes wait.',
      }),
      embed: embed.optional().meta({
        description:
          'What turns texts into unnamed vectors from now on; null for nothing. Another model than the present one is refused while the collection has vectors, which would not be comparable.',
      }),
      replication_factor: replicationFactor.optional().meta({
        description:
          'The number of nodes of a cluster that hold the collection from now on; null for all. Nodes load it, or drop it, one after another. It has no effect outside a cluster, where it is only stored.',
        examples: [3],
      }),
      vectors: z
        .record(basics.vectorName, namedVector.nullable())
        .optional()
        .meta({
          description:
            'Named vectors to add or, with null, to drop; the others are unchanged. Records lack an added vector until a write sets it, such as one with `mode` `patch`. A dropped vector disappears from all records at once, and its name becomes available.',
          examples: [{ summary: { dimension: 384, metric: 'cosine' }, title: null }],
        }),
      sparse_vectors: z
        .record(basics.vectorName, sparseSettings.nullable())
        .optional()
        .meta({
          description: 'The same for sparse vectors.',
          examples: [{ words: {} }],
        }),
    })
    .meta({
      id: 'CollectionUpdate',
      description: 'Absent members are unchanged. `labels` replaces all labels.',
      examples: [{ description: 'Articles, rebuilt weekly' }],
    });
  const clone = z
    .strictObject({
      id: basics.collectionId.optional().meta({ description: 'By default generated.' }),
      description: description.optional(),
      labels: labels.optional(),
      idempotency_key: basics.idempotencyKey,
    })
    .meta({
      id: 'CollectionClone',
      description: 'Absent members other than the id are copied from the collection.',
      examples: [{ id: 'articles-copy' }],
    });
  const rename = z
    .strictObject({ id: basics.collectionId, idempotency_key: basics.idempotencyKey })
    .meta({
      id: 'CollectionRename',
      description: 'The new id of a collection.',
      examples: [{ id: 'articles-2025' }],
    });
  const move = z
    .strictObject({
      from: nodeName.meta({ description: 'The name of a node that holds the collection.' }),
      to: nodeName.meta({
        description: 'The name of a serving node that does not hold it and is not drained.',
      }),
    })
    .meta({
      id: 'CollectionMove',
      description: 'The node that gives up the collection, and the node that takes its place.',
      examples: [{ from: 'sagitta-0', to: 'sagitta-1' }],
    });
  const memory = z
    .object({
      host_bytes: count('Bytes of the main memory.'),
      mapped_bytes: count(
        'Bytes of mapped files, whose memory the system can reclaim; not part of `host_bytes`.',
      ),
      device_bytes: count('Bytes of the memory of GPUs.'),
    })
    .meta({
      id: 'MemoryUse',
      description: 'Memory in use.',
      examples: [{ host_bytes: 310000, mapped_bytes: 102000000, device_bytes: 0 }],
    });
  const segment = z
    .object({
      number: count('The number of the segment in its collection, from 1.'),
      state: z.enum(['active', 'sealed', 'stored']).meta({
        description: '`active` takes new rows, `sealed` waits for its file, `stored` has one.',
      }),
      row_count: count('Rows, including those that only snapshots see.'),
      vector_count: count('Rows that are neither deleted nor replaced.'),
      memory,
      file_bytes: count('The size of its file; 0 without one.'),
    })
    .meta({
      id: 'Segment',
      description: 'Consecutive rows of a collection, which are stored together.',
      examples: [SEGMENT_EXAMPLE],
    });
  const record = z
    .object({
      id: basics.collectionId,
      dimension: count(
        'The length of the unnamed vector; absent, like `metric`, if there is none.',
      ).optional(),
      metric: basics.metric.optional(),
      element_type: elementType.optional(),
      vectors: z
        .record(
          z.string(),
          z
            .object({
              dimension: count('The length of the vector.'),
              metric: basics.metric,
              element_type: elementType.optional(),
              multi: z.literal(true).optional().meta({
                description: 'Records have a list of vectors under this name.',
              }),
            })
            .meta({
              id: 'NamedVectorSettings',
              description: 'The settings of a named vector.',
              examples: [{ dimension: 384, metric: 'cosine' }],
            }),
        )
        .optional()
        .meta({ description: 'The named vectors; absent if there are none.' }),
      sparse_vectors: z
        .record(z.string(), sparseSettings)
        .optional()
        .meta({ description: 'The sparse vectors; absent if there are none.' }),
      description: z.string().nullable().meta({ description: 'Text for people.' }),
      labels: z
        .record(z.string(), z.string())
        .meta({ description: 'Text by name, for people and tools.' }),
      text: text.record.optional(),
      ttl_seconds: count(
        'Seconds from the write of a vector without `expires_at` to its expiry; absent for never.',
      ).optional(),
      schema: types
        .optional()
        .meta({ description: 'The declared types; absent if there are none.' }),
      embed: embedding
        .optional()
        .meta({ description: 'What turns texts into unnamed vectors; absent if nothing does.' }),
      replication_factor: count(
        'The intended number of nodes that hold it; absent for all.',
      ).optional(),
      nodes: z
        .array(z.string())
        .optional()
        .meta({
          description:
            'The names of the nodes that hold it; absent if all nodes do, and outside a cluster.',
          examples: [['sagitta-0', 'sagitta-2']],
        }),
      move: z
        .object({
          to: z.string().meta({ description: 'The node that is loading the collection.' }),
          from: z
            .string()
            .optional()
            .meta({ description: 'The node that it replaces; absent for an additional node.' }),
        })
        .optional()
        .meta({
          id: 'CollectionMoveUnderWay',
          description:
            'A move in progress: the node that joins `nodes`, or replaces one of them, when it has loaded the collection; absent if there is none.',
          examples: [{ from: 'sagitta-0', to: 'sagitta-1' }],
        }),
      status: z.enum(['loading', 'ready', 'failed', 'elsewhere']).meta({
        description:
          '`loading`: it has not been loaded since the start; its counts and bytes are 0, and requests for it wait. `failed`: the data of this collection is damaged; other collections are available. `elsewhere`: other nodes of the cluster hold it and did not report its counts, which are 0.',
      }),
      vector_count: count('The number of vectors.'),
      sequence: count('The sequence of the last visible write.'),
      created_at: z.iso.datetime().meta({ description: 'When it was created.' }),
      updated_at: z.iso
        .datetime()
        .meta({ description: 'The time of the last write or the last change of settings.' }),
      engine: z
        .object({
          name: z.string().meta({ description: 'The name of the engine.' }),
          reason: z.string().meta({ description: 'Why this engine was chosen.' }),
        })
        .meta({
          id: 'EngineChoice',
          description: 'The engine that searches the collection.',
          examples: [{ name: 'wasm', reason: 'no GPU was found' }],
        }),
      memory,
      disk_bytes: count(
        'The size of segment files and the log. Clones share files with their originals if the file system supports links.',
      ),
    })
    .meta({
      id: 'Collection',
      description: 'A collection, its settings and its state.',
      examples: [COLLECTION_EXAMPLE],
    });
  return {
    create,
    embedding,
    update,
    clone,
    rename,
    move,
    record,
    segments: z
      .object({
        segments: z.array(segment).meta({ description: 'In the order of their numbers.' }),
        ...page,
        total: count('The number of segments.'),
        file_bytes: count('The total size of segment files.'),
        log_bytes: count(
          'The size of writes that are only in the log, from which the next start reads them.',
        ),
      })
      .meta({
        id: 'SegmentList',
        description: 'A page of the segments of a collection.',
        examples: [
          {
            segments: [SEGMENT_EXAMPLE],
            has_more: false,
            total: 1,
            file_bytes: 102000000,
            log_bytes: 0,
          },
        ],
      }),
    list: z
      .object({
        collections: z.array(record).meta({ description: 'In the order of their ids.' }),
        ...page,
        total: count('The number of collections.'),
      })
      .meta({
        id: 'CollectionList',
        description: 'A page of the collections.',
        examples: [{ collections: [COLLECTION_EXAMPLE], has_more: false, total: 1 }],
      }),
    deleted: z
      .object({
        id: basics.collectionId,
        deleted,
        vector_count: count('The number of vectors that were deleted with it.'),
      })
      .meta({
        id: 'CollectionDeleted',
        description: 'The collection is deleted.',
        examples: [{ id: 'articles', deleted: true, vector_count: 12000 }],
      }),
  };
}

/** The entries of an object. Not a zod record, which would drop the name `__proto__`. */
function entriesOf(
  value: unknown,
  { contents, countMax, names }: { contents: string; countMax: number; names: string },
): readonly [string, unknown][] | Violation {
  if (!isJsonObject(value)) {
    const detail = `Expected an object ${contents}; found ${describeKind(value)}.`;
    return { code: 'invalid_request', detail };
  }
  const entries = Object.entries(value);
  if (entries.length <= countMax) return entries;
  const detail = `Expected at most ${countMax} ${names}; found ${entries.length}.`;
  return { code: 'limit_exceeded', detail, expected: countMax, actual: entries.length };
}

function findTypesViolation(
  value: unknown,
  { metadataColumnsMax: countMax }: Limits,
): LocatedViolation | null {
  const entries = entriesOf(value, { contents: 'of types by path', countMax, names: 'paths' });
  if ('code' in entries) return entries;
  for (const [path, type] of entries) {
    const wrong = findPathViolation(path) ?? findTypeNameViolation(type);
    if (wrong !== null) return { ...wrong, path: [path] };
  }
  return null;
}

function findPathViolation(path: string): Violation | null {
  const charactersMax = METADATA_PATH_CHARACTERS_MAX;
  if (!path.startsWith('$') && path.length <= charactersMax) return null;
  const detail = `A path has at most ${charactersMax} characters and does not begin with "$".`;
  return { code: 'invalid_request', detail };
}

function findTypeNameViolation(type: unknown): Violation | null {
  if (DECLARED_TYPES.some((name) => name === type)) return null;
  const found = typeof type === 'string' ? JSON.stringify(type.slice(0, 40)) : describeKind(type);
  const expected = DECLARED_TYPES.join(', ');
  return {
    code: 'invalid_request',
    detail: `A type is one of ${expected}; found ${found}.`,
    expected,
  };
}

/** A name must be unique among named and sparse vectors. */
function findRepeatedNames({
  vectors = {},
  sparse_vectors: sparseVectors = {},
}: Pick<UnnamedMembers, 'vectors' | 'sparse_vectors'>): readonly LocatedViolation[] {
  return Object.keys(sparseVectors)
    .filter((name) => Object.hasOwn(vectors, name))
    .map((name) => {
      const detail = 'Expected a name that does not occur in vectors; found the same name.';
      return { code: 'invalid_request', detail, path: ['sparse_vectors', name] };
    });
}

interface UnnamedMembers {
  readonly dimension?: unknown;
  readonly element_type?: unknown;
  readonly metric?: unknown;
  readonly embed?: unknown;
  readonly vectors?: object | undefined;
  readonly sparse_vectors?: object | undefined;
  readonly text?: unknown;
}

/** Whether the built-in model, which has a dimension of its own, makes the unnamed vectors. */
function isBuiltin(embed: unknown): boolean {
  return embed === BUILTIN || (embed as { endpoint?: unknown } | null)?.endpoint === BUILTIN;
}

/** Checks the members of a collection without the unnamed vector. */
function findUnnamedViolations(body: UnnamedMembers): readonly LocatedViolation[] {
  if (body.dimension !== undefined || isBuiltin(body.embed)) return [];
  const violations: LocatedViolation[] = [];
  const report = (name: string, detail: string) =>
    violations.push({ code: 'invalid_request', detail, path: [name] });
  const names = Object.keys({ ...body.vectors, ...body.sparse_vectors });
  if (names.length === 0 && body.text === undefined) {
    report(
      'dimension',
      'Expected an integer, since there are no vectors, sparse_vectors or text; found none.',
    );
  }
  if (body.metric !== undefined) report('metric', 'Expected dimension with metric; found none.');
  if (body.element_type !== undefined) {
    report('element_type', 'Expected dimension with element_type; found none.');
  }
  if (body.embed != null) {
    report(
      'embed',
      'Expected dimension with embed, since texts become unnamed vectors; found none.',
    );
  }
  return violations;
}

function findLabelsViolation(value: unknown, limits: Limits): Violation | null {
  const { labelsMax: countMax, labelCharactersMax } = limits;
  const entries = entriesOf(value, {
    contents: 'whose values are strings',
    countMax,
    names: 'labels',
  });
  if ('code' in entries) return entries;
  for (const text of entries.flat()) {
    if (typeof text !== 'string') {
      const detail = `A label is a string; found ${describeKind(text)}.`;
      return { code: 'invalid_request', detail };
    }
    if (text.length > labelCharactersMax) {
      const detail = `A label's name and text have at most ${labelCharactersMax} characters each; found ${text.length}.`;
      return { code: 'limit_exceeded', detail, expected: labelCharactersMax, actual: text.length };
    }
  }
  return null;
}
