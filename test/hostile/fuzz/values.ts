// Values for the schemas of the document. What a schema leaves open (the dimension of a vector, existing ids) comes
// from the known state of the service, so that most requests pass validation.

import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/common/types.js';
import type { Schema } from './document.js';
import { DECLARED_SCHEMA, makeFilter, makeMetadata, PATHS } from './filters.js';
import {
  makeExpiry,
  makeFusion,
  makeId,
  makeNamed,
  makeNumbers,
  makeRanking,
  makeRecord,
  makeSparse,
  makeSparseVectors,
  makeValues,
  makeVector,
  type Target,
} from './rows.js';

type Schemas = Readonly<Record<string, Schema>>;

/** Share of the optional members of an object that are sent. */
const OPTIONAL_SHARE = 0.25;
/** Maximum length of lists, whatever the schema allows. */
const ITEMS_MAX = 3;
const DEPTH_MAX = 6;
/** Length of texts that are not words. */
const SHORT = 40;
const KEYS_REMEMBERED_MAX = 32;

export function makeValue(schemas: Schemas, schema: Schema, target: Target): Json {
  return new Maker(schemas, target).make(schema, '', 0);
}

class Maker {
  readonly #schemas: Schemas;
  readonly #target: Target;

  constructor(schemas: Schemas, target: Target) {
    this.#schemas = schemas;
    this.#target = target;
  }

  /** `place` is the name of an object and of its member. */
  make(schema: Schema, place: string, depth: number): Json {
    const name = schema.$ref?.split('/').at(-1) ?? '';
    const member = place.replace(/^.*\./, '.');
    const own = KNOWN_VALUES[place] ?? KNOWN_VALUES[member] ?? KNOWN_VALUES[name];
    if (own !== undefined) return own(this.#target);
    if (name !== '') {
      const made = this.make(this.#schemas[name]!, name, depth);
      const fit = FITS[name];
      return fit === undefined ? made : fit(made as JsonObject, this.#target);
    }
    return this.#makeUnnamed(schema, place, depth);
  }

  #makeUnnamed(schema: Schema, place: string, depth: number): Json {
    const { random } = this.#target;
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return random.draw(fc.constantFrom(...schema.enum));
    const choices = schema.anyOf ?? schema.oneOf;
    if (choices !== undefined) return this.make(random.pick(choices), place, depth);
    const { type: types = 'null' } = schema;
    const type = typeof types === 'string' ? types : random.pick(types);
    switch (type) {
      case 'object':
        return this.#object(schema, place, depth + 1);
      case 'array': {
        const least = schema.minItems ?? 0;
        const count = random.between(least, Math.max(least, ITEMS_MAX));
        return random.list(count, () => this.make(schema.items ?? {}, `${place}[]`, depth + 1));
      }
      default:
        return random.draw(leafOf(schema, type));
    }
  }

  #object(schema: Schema, place: string, depth: number): JsonObject {
    const { random } = this.#target;
    const { properties = {}, required = [], additionalProperties } = schema;
    const made: JsonObject = {};
    for (const [name, member] of Object.entries(properties)) {
      const isWanted = depth < DEPTH_MAX && random.chance(OPTIONAL_SHARE);
      if (!required.includes(name) && !isWanted) continue;
      made[name] = this.make(member, `${place}.${name}`, depth);
    }
    if (typeof additionalProperties === 'object' && Object.keys(properties).length === 0) {
      for (let count = random.below(3); count > 0; count--) {
        made[random.word()] = this.make(additionalProperties, `${place}.*`, depth);
      }
    }
    return made;
  }
}

/** Any value of a type without parts, within the bounds of its schema; mostly small ones, because they cost less. */
function leafOf(schema: Schema, type: string): fc.Arbitrary<Json> {
  const { minimum, exclusiveMinimum, maximum, minLength = 0, maxLength = SHORT } = schema;
  switch (type) {
    case 'integer': {
      const min = minimum ?? 0;
      const small = fc.integer({ min, max: Math.max(min, Math.min(maximum ?? 20, 20)) });
      const bounds = fc.constantFrom(min, Math.min(maximum ?? 1_000, 1_000));
      return fc.oneof({ weight: 9, arbitrary: small }, { weight: 1, arbitrary: bounds });
    }
    case 'number': {
      const min = minimum ?? exclusiveMinimum ?? 0;
      const max = Math.min(maximum ?? min + 1, min + 1);
      return fc.double({ min, minExcluded: minimum === undefined, max, noNaN: true });
    }
    case 'boolean':
      return fc.boolean();
    case 'string': {
      const word = fc.nat({ max: 39 }).map((number) => `w${number}`);
      const any = fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, SHORT) });
      return fc.oneof({ weight: 4, arbitrary: word }, { weight: 1, arbitrary: any });
    }
    default:
      return fc.constant(null);
  }
}

const existing = ({ world, random }: Target): string => world.collection(random)?.id ?? 'none';
const own = ({ world, random, collection }: Target): string =>
  collection?.id ?? world.collection(random)?.id ?? 'none';
const fresh = ({ world }: Target): string => world.freshName();
const path = ({ random }: Target): string => random.pick(PATHS);
const aliasOrFresh = ({ world, random }: Target): string =>
  (random.chance(0.5) ? random.pickAny(world.aliases) : undefined) ?? world.freshName();

function idempotencyKey({ world, random }: Target): string {
  const known = random.chance(0.4) ? random.pickAny(world.idempotencyKeys) : undefined;
  if (known !== undefined) return known;
  const made = `key-${world.freshName()}`;
  world.idempotencyKeys.push(made);
  if (world.idempotencyKeys.length > KEYS_REMEMBERED_MAX) world.idempotencyKeys.shift();
  return made;
}

const LIMITABLE_SCOPES = ['collections:read', 'collections:write', 'vectors:read', 'vectors:write'];
const SCOPES = [
  'admin',
  'metrics:read',
  ...LIMITABLE_SCOPES.flatMap((name) => [name, `${name}:f*`]),
];

const batchOf = (target: Target): Json[] => {
  const records = target.random.list(target.random.between(1, 40), () => makeRecord(target));
  // An id occurs only once in a batch.
  return [...new Map(records.map((record, index) => [record.id ?? index, record])).values()];
};

/** A model of the test endpoint, whose name contains the dimension of its vectors. */
const embeddingOf = (dimension: number): JsonObject => ({
  endpoint: 'local',
  model: `d${dimension}`,
});

/** By the name of a schema, of an object and its member, or of a member with a leading dot. */
const KNOWN_VALUES: Readonly<Record<string, (target: Target) => Json>> = {
  CollectionId: own,
  AliasName: aliasOrFresh,
  VectorId: makeId,
  Values: makeValues,
  Numbers: makeNumbers,
  NamedValues: makeNamed,
  SparseVector: makeSparse,
  SparseVectors: makeSparseVectors,
  Metadata: ({ random }) => makeMetadata(random),
  Filter: ({ random }) => makeFilter(random),
  VectorName: ({ random, collection }) =>
    random.pickAny([...(collection?.named.keys() ?? [])]) ?? 'unknown',
  DeclaredSchema: () => DECLARED_SCHEMA,
  Embedding: ({ collection }) => embeddingOf(collection?.dimension ?? 2),
  Fusion: makeFusion,
  ValuesPut: putOf,
  TextPut: putOf,
  RecordPut: putOf,
  ValuesPutAnywhere: (target) => ({ ...putOf(target), collection: own(target) }),
  TextPutAnywhere: (target) => ({ ...putOf(target), collection: own(target) }),
  RecordPutAnywhere: (target) => ({ ...putOf(target), collection: own(target) }),
  'VectorBatchWrite.vectors': batchOf,
  'VectorPatch.vectors': makeNamed,
  'VectorPatch.sparse_vectors': makeSparseVectors,
  '.collection': existing,
  '.path': path,
  '.group_by': path,
  '.expires_at': makeExpiry,
  '.idempotency_key': idempotencyKey,
  '.min_sequence': ({ random, collection }) =>
    Math.max(0, (collection?.sequence ?? 0) - random.below(3)),
  '.if_sequence': ({ random, collection }) => random.pick([0, collection?.sequence ?? 1]),
  'CollectionCreate.id': fresh,
  'CollectionCreate.vectors': ({ random }) =>
    random.pick<Json>([
      { title: { dimension: 4 } },
      { title: { dimension: 2, metric: 'dot' }, words: { dimension: 3, multi: true } },
    ]),
  'CollectionCreate.sparse_vectors': ({ random }) => random.pick<Json>([{ terms: {} }, {}]),
  'CollectionClone.id': fresh,
  'CollectionRename.id': fresh,
  '.schema': ({ random }) => (random.chance(0.2) ? DECLARED_SCHEMA : null),
  '.ttl_seconds': ({ random }) => random.pick([null, 100_000, 3_000_000]),
  'AliasChange.collection': (target) => (target.random.chance(0.8) ? existing(target) : null),
  'SortKey.field': ({ random }) => random.pick([...PATHS, 'score', 'id']),
  'Join.with': existing,
  'TextQuery.query': ({ random }) => random.sentence(),
  'TextSettingsInput.fields': ({ random }) => random.pick([['text'], ['text', 'kind', 'tags']]),
  'ApiKeyCreate.scopes': ({ random }) =>
    random.list(random.between(1, 3), () => random.pick(SCOPES)),
  'ApiKeyCreate.allowed_origins': ({ random }) =>
    random.pick<Json>([null, ['https://app.example.org']]),
  'BackupCreate.name': ({ world, random }) =>
    (random.chance(0.2) ? random.pickAny(world.backups) : undefined) ?? world.freshName(),
};

function putOf(target: Target): JsonObject {
  const { id: _, ...record } = makeRecord(target);
  return record;
}

/** The object with only one of the members. */
function withOne(value: JsonObject, names: readonly string[], made: JsonObject): JsonObject {
  const others = Object.entries(value).filter(([name]) => !names.includes(name));
  return { ...Object.fromEntries(others), ...made };
}

const RANKING_MEMBERS = [
  ...['vector', 'id', 'multi_vector', 'embed', 'recommend', 'discover', 'text', 'sparse', 'using'],
  ...['fusion', 'prefetch', 'cursor', 'offset'],
];

/** Uses a single ranking, an offset in the list of pages, or a cursor of an earlier query. */
function fitQuery(query: JsonObject, target: Target): JsonObject {
  const { random, collection } = target;
  if (random.chance(0.15)) {
    const known = collection?.cursors.filter(({ operation }) => /^query/.test(operation)) ?? [];
    const found = random.pickAny(known);
    if (found !== undefined) return { cursor: found.cursor };
  }
  const isFusion = random.chance(0.15);
  const made = isFusion ? { fusion: makeFusion(target) } : makeRanking(target);
  if (random.chance(0.1)) made.prefetch = { ...makeRanking(target), limit: random.between(1, 50) };
  if (random.chance(0.1)) made.offset = random.below(30);
  const fitted = withOne(query, RANKING_MEMBERS, made);
  // Options that only some rankings have.
  const rare = [
    'metric',
    'mmr',
    'score_stats',
    'score_threshold',
    'sort',
    'group_by',
    'group_size',
  ];
  const kept = random.chance(0.5) ? random.pick(rare) : '';
  for (const name of rare) if (name !== kept) delete fitted[name];
  if (kept === 'group_size') fitted.group_by = random.pick(PATHS);
  return fitted;
}

function fitSelection(value: JsonObject, target: Target): JsonObject {
  const { random } = target;
  const made = random.weighted({ ids: 5, filter: 5, all: 0.2 });
  const ids = () => random.list(random.between(1, 5), () => makeId(target));
  return withOne(value, ['ids', 'filter', 'all'], {
    [made]: made === 'all' ? true : made === 'ids' ? ids() : makeFilter(random),
  });
}

/** How members exclude or require one another, which schemas describe only in words. */
const FITS: Readonly<Record<string, (value: JsonObject, target: Target) => JsonObject>> = {
  Query: fitQuery,
  QueryAnywhere: (query, target) => ({ ...fitQuery(query, target), collection: own(target) }),
  VectorDelete: fitSelection,
  VectorUpdate(value, target) {
    const name = target.random.pick(['patch', 'metadata']);
    const made = { [name]: makeMetadata(target.random) };
    return withOne(fitSelection(value, target), ['patch', 'metadata'], made);
  },
  VectorPatch(value, target) {
    const { random } = target;
    const made = random.chance(0.5) ? makeVector(target) : { metadata: makeMetadata(random) };
    return withOne(value, ['values', 'embed', 'if_sequence'], made);
  },
  VectorSingleWrite: fitSingle,
  TextSingleWrite: fitSingle,
  RecordSingleWrite: fitSingle,
  CollectionCreate(value, { random }) {
    const dimension = random.pick([1, 2, 3, 8, 33]);
    if (value.vectors !== undefined && random.chance(0.3)) {
      const { dimension: _, metric: _metric, embed: _embed, ...rest } = value;
      return rest;
    }
    const hasEmbedding = typeof value.embed === 'object' && value.embed !== null;
    const embedding = hasEmbedding ? { embed: embeddingOf(dimension) } : {};
    return { ...value, dimension, ...embedding };
  },
  HistogramRequest: (value) =>
    typeof value.min === 'number' && typeof value.max === 'number'
      ? { ...value, max: value.min + 1 + value.max }
      : value,
  Recall(value, target) {
    const { random } = target;
    const count = random.between(1, 3);
    const k = random.between(1, 3);
    return withOne(value, ['using'], {
      vectors: random.list(count, () => makeValues(target)),
      ids: random.list(count, () => [...new Set(random.list(k, () => makeId(target)))]),
    });
  },
  Join(value, { random }) {
    const { using: _, with_using: _withUsing, unordered_pairs: _pairs, ...rest } = value;
    return random.chance(0.9) ? { ...rest, top_k: random.between(1, 5) } : rest;
  },
  Projection: ({ using: _, ...rest }) => rest,
};

function fitSingle(value: JsonObject, target: Target): JsonObject {
  const names = ['id', 'values', 'embed', 'vectors', 'sparse_vectors', 'metadata', 'expires_at'];
  return withOne(value, [...names, 'if_sequence'], makeRecord(target));
}
