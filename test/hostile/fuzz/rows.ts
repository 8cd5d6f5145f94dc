// Vectors, records and rankings that fit a collection: its dimension, its named and sparse vectors, its ids.

import type { Json, JsonObject } from '../../../src/common/types.js';
import { makeMetadata } from './filters.js';
import type { Random } from './random.js';
import type { KnownCollection, World } from './world.js';

const YEAR_MS = 31_536_000_000;
/** Number of distinct ids, small enough that writes replace, conflict and delete. */
const ID_COUNT = 400;

/** What a value is made for. */
export interface Target {
  readonly world: World;
  readonly random: Random;
  readonly collection: KnownCollection | undefined;
}

/** Usually a known id. */
export function makeId({ random, collection }: Target): string {
  const known = random.chance(0.9) ? random.pickAny(collection?.ids ?? []) : undefined;
  return known ?? `v${random.below(ID_COUNT)}`;
}

function numbers(random: Random, dimension: number): number[] {
  return random.list(dimension, () => Math.fround(random.next() - 0.5));
}

export function makeNumbers({ random, collection }: Target): number[] {
  return numbers(random, collection?.dimension ?? 3);
}

export function makeValues(target: Target): Json {
  const made = makeNumbers(target);
  if (!target.random.chance(0.2)) return made;
  return Buffer.from(new Uint8Array(Float32Array.from(made).buffer)).toString('base64');
}

export function makeNamed({ random, collection }: Target): JsonObject {
  const chosen = [...(collection?.named ?? [])].filter(() => random.chance(0.7));
  return Object.fromEntries(
    chosen.map(([name, { dimension, isMulti }]) => {
      const one = () => numbers(random, dimension);
      return [name, isMulti ? random.list(random.between(1, 4), one) : one()];
    }),
  );
}

export function makeSparse({ random }: Target): JsonObject {
  const indices = [...new Set(random.list(random.between(1, 6), () => random.below(50)))];
  return { indices, values: indices.map(() => random.next() + 0.1) };
}

export function makeSparseVectors(target: Target): JsonObject {
  const chosen = (target.collection?.sparse ?? []).filter(() => target.random.chance(0.7));
  return Object.fromEntries(chosen.map((name) => [name, makeSparse(target)]));
}

export function makeExpiry({ random }: Target): Json {
  const atMs = Date.now() + YEAR_MS * (1 + random.next());
  return random.chance(0.2) ? null : new Date(atMs).toISOString();
}

/** Values, a text to embed, or neither, depending on the collection. */
export function makeVector(target: Target): JsonObject {
  const { random, collection } = target;
  if (collection?.dimension === null) return {};
  const isText = collection?.embeds === true && random.chance(0.3);
  return isText ? { embed: random.sentence() } : { values: makeValues(target) };
}

export function makeRecord(target: Target): JsonObject {
  const { random, collection } = target;
  const record = makeVector(target);
  if (random.chance(0.95))
    record.id = random.chance(0.3) ? makeId(target) : `v${random.below(ID_COUNT)}`;
  if (random.chance(0.8)) record.metadata = makeMetadata(random);
  if ((collection?.named.size ?? 0) > 0) record.vectors = makeNamed(target);
  if ((collection?.sparse.length ?? 0) > 0) record.sparse_vectors = makeSparseVectors(target);
  if (random.chance(0.05)) record.expires_at = makeExpiry(target);
  if (random.chance(0.02)) record.if_sequence = random.below(3);
  return record;
}

function example(target: Target): Json {
  return target.random.chance(0.7) ? makeId(target) : makeNumbers(target);
}

/** What a query ranks by, by kind; undefined if the collection lacks what it needs. */
const RANKINGS: Readonly<Record<string, (target: Target) => JsonObject | undefined>> = {
  vector: (target) =>
    target.collection?.dimension === null ? undefined : { vector: makeValues(target) },
  id: (target) => ({ id: makeId(target) }),
  named(target) {
    const { random, collection } = target;
    const found = random.pickAny([...(collection?.named ?? [])]);
    if (found === undefined) return undefined;
    const [using, { dimension, isMulti }] = found;
    const one = () => numbers(random, dimension);
    return isMulti ? { using, multi_vector: [one(), one()] } : { using, vector: one() };
  },
  embed: ({ random, collection }) =>
    collection?.embeds === true ? { embed: random.sentence() } : undefined,
  recommend: (target) => ({
    recommend: {
      positive: target.random.list(target.random.between(1, 3), () => example(target)),
      ...(target.random.chance(0.5) && { negative: [example(target)] }),
      ...(target.random.chance(0.5) && {
        strategy: target.random.pick(['average_vector', 'best_score', 'sum_scores']),
      }),
    },
  }),
  discover: (target) => ({
    discover: {
      target: example(target),
      context: [{ positive: example(target), negative: example(target) }],
    },
  }),
  text: ({ random, collection }) =>
    collection?.hasText === true
      ? { text: { query: random.sentence(), match: random.pick(['any', 'all']) } }
      : undefined,
  sparse(target) {
    const using = target.random.pickAny(target.collection?.sparse ?? []);
    return using === undefined ? undefined : { using, sparse: makeSparse(target) };
  },
};

export function makeRanking(target: Target): JsonObject {
  const kinds = Object.values(RANKINGS);
  for (let attempt = 0; attempt < 20; attempt++) {
    const made = target.random.pick(kinds)(target);
    if (made !== undefined) return made;
  }
  return { id: makeId(target) };
}

export function makeFusion(target: Target): JsonObject {
  const { random } = target;
  const parts = random.list(random.between(2, 3), () => ({
    ...makeRanking(target),
    ...(random.chance(0.3) && { weight: random.next() + 0.1 }),
    ...(random.chance(0.3) && { limit: random.between(1, 50) }),
  }));
  return { ...(random.chance(0.5) && { kind: random.pick(['rrf', 'weighted']) }), parts };
}
