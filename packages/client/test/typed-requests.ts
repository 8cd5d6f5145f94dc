// Programs with declared metadata types that the compiler must accept or reject. `Fits` must be false for each mistake.

import type {
  AggregateRequest,
  Client,
  ListRequest,
  Match,
  MetadataChange,
  PatchInput,
  QueryRequest,
  StoredVector,
  VectorInput,
  VectorSelection,
  Vectors,
} from '../src/client.js';

interface Sense {
  lemma: string;
  year: number;
  author?: { name: string };
  tags: string[];
}

type Fits<Given, Wanted> = [Given] extends [Wanted] ? true : false;
type WithMetadata = readonly { readonly metadata: Sense }[];

/** Only compiled, never called. */
export async function compiled(client: Client, senses: Vectors<Sense>): Promise<unknown[]> {
  const vector = [1, 2];
  const { matches } = await senses.query({ vector, include_metadata: true });
  const kept: Match<Sense>[] = [...matches];
  const lemmas: string[] = matches.map(({ metadata }) => metadata.lemma);
  const bare = (await senses.query({ vector })).matches;
  // Whether metadata is requested is known only at run time.
  const some = (await senses.query({ vector, include_metadata: lemmas.length > 1 })).matches;
  const floats: (Float32Array | undefined)[] = [
    (await senses.query({ vector, include_values: 'float32' })).matches[0]?.values,
    (await senses.get('a', { include_values: 'float32' })).values,
  ];
  const numbers: number = (await senses.get('a')).values.length;
  const rows: StoredVector<Sense>[] = [...(await senses.list()).vectors];
  const years: number[] = (await senses.list()).vectors.map(({ metadata }) => metadata.year);
  const listed = (await senses.list({ include_metadata: false })).vectors;

  const part = (await senses.query({ vector, include_metadata: ['lemma', 'author.name'] })).matches;
  const parts: (string | undefined)[] = part.map(({ metadata }) => metadata.lemma);
  const names = (await senses.get('a', { include_metadata: ['author.name'] })).metadata.author
    ?.name;

  await senses.query({
    vector,
    group_by: 'author.name',
    facets: [{ path: 'tags' }, { path: 'year', limit: 2 }],
  });
  await senses.query({ vector, top_k: 5, sort: [{ field: 'year' }, { field: 'score' }] });
  await senses.aggregate({ facets: [{ path: 'lemma' }], stats: [{ path: 'year' }] });
  await senses.list({ sort: [{ field: 'author.name' }, { field: '$id' }] });

  const docs = client.collection('docs');
  await docs.query({ vector, group_by: 'any.path', facets: [{ path: 'x' }] });
  await docs.query({ id: 'a' });
  await docs.query({ text: { query: 'a' }, limit: 5 });
  await docs.query({ cursor: 'a', include_values: true });
  await docs.query({ vector, cursor: 'a' });
  const patch = { id: 'a', vectors: { title: null }, metadata: { year: null } } as const;
  await senses.upsert([patch, { id: 'b' }], { mode: 'patch' });
  await senses.writeAll([patch], { mode: 'patch' });
  await client.collections.update('docs', {
    vectors: { summary: { dimension: 3 }, title: null },
    sparse_vectors: { words: {}, terms: null },
  });
  const mistakes: readonly false[] = [
    false satisfies Fits<typeof bare, WithMetadata>,
    false satisfies Fits<typeof some, WithMetadata>,
    false satisfies Fits<typeof listed, WithMetadata>,
    // If only some paths are requested, any member may be missing.
    false satisfies Fits<typeof part, WithMetadata>,
  ];
  return [mistakes, parts, names, kept, lemmas, floats, numbers, rows, years];
}

type Query = QueryRequest<Sense>;
interface ByVector {
  vector: number[];
}
interface ByText {
  text: { query: 'a' };
}
interface ByBoth {
  parts: [ByVector, ByText];
}
interface Lemma {
  lemma: 'a';
}
interface Lema {
  lemma: 1;
}

export const REQUESTS_FIT: readonly true[] = [
  true satisfies Fits<{ id: string; vectors: { title: null } }, PatchInput>,
  true satisfies Fits<ByVector & { group_by: 'author.name'; sort: [{ field: 'score' }] }, Query>,
  true satisfies Fits<ByVector & { include_metadata: ['lemma'] }, Query>,
  true satisfies Fits<{ id: 'a'; facets: [{ path: 'tags'; ignore_own_filter: true }] }, Query>,
  true satisfies Fits<{ cursor: 'a' }, Query>,
  true satisfies Fits<{ fusion: { parts: [ByVector & { weight: 2 }, ByText] } }, Query>,
  true satisfies Fits<ByVector & { prefetch: ByText & { limit: 9; filter: Lemma } }, Query>,
  true satisfies Fits<ByVector & { prefetch: { fusion: ByBoth; limit: 9 } }, Query>,
  true satisfies Fits<{ ids: ['a'] }, VectorSelection>,
  true satisfies Fits<{ filter: Lemma }, VectorSelection<Sense>>,
  true satisfies Fits<{ all: true }, VectorSelection>,
  true satisfies Fits<{ patch: Lemma }, MetadataChange<Sense>>,
];

interface Removing {
  id: string;
  vectors: { title: null };
}

export const MISTAKES_ARE_FOUND: readonly false[] = [
  // Only a patch can remove a vector with null, and it must name the record.
  false satisfies Fits<readonly Removing[], Parameters<Vectors['upsert']>[0]>,
  false satisfies Fits<readonly Removing[], Parameters<Vectors['writeAll']>[0]>,
  false satisfies Fits<Removing, VectorInput>,
  false satisfies Fits<Omit<Removing, 'id'>, PatchInput>,
  // No member, or two members, to rank by.
  false satisfies Fits<Record<never, never>, Query>,
  false satisfies Fits<{ top_k: 5 }, Query>,
  false satisfies Fits<ByVector & { id: 'a' }, Query>,
  false satisfies Fits<ByVector & { text: { query: 'a' } }, QueryRequest>,
  // The same in a part of a fusion and in a prefetch.
  false satisfies Fits<{ fusion: { parts: [ByVector, ByVector & { id: 'a' }] } }, Query>,
  false satisfies Fits<{ fusion: { parts: [ByText, { weight: 2 }] } }, Query>,
  false satisfies Fits<{ fusion: { parts: [ByText, { fusion: ByBoth }] } }, Query>,
  false satisfies Fits<ByVector & { prefetch: { limit: 9 } }, Query>,
  false satisfies Fits<ByVector & { prefetch: ByVector & ByText & { limit: 9 } }, Query>,
  false satisfies Fits<ByVector & { prefetch: ByText & { fusion: ByBoth; limit: 9 } }, Query>,
  false satisfies Fits<
    ByVector & { prefetch: { fusion: { parts: [ByText, ByText & ByVector] }; limit: 9 } },
    Query
  >,
  false satisfies Fits<{ fusion: { parts: [ByText, ByText & { filter: Lema }] } }, Query>,
  // Two selections, or two changes.
  false satisfies Fits<{ ids: ['a']; all: true }, VectorSelection>,
  false satisfies Fits<{ ids: ['a']; filter: Lemma }, VectorSelection<Sense>>,
  false satisfies Fits<Record<never, never>, VectorSelection>,
  false satisfies Fits<{ patch: Lemma; metadata: Sense }, MetadataChange<Sense>>,
  // Misspelt paths.
  false satisfies Fits<ByVector & { group_by: 'lema' }, Query>,
  false satisfies Fits<ByVector & { facets: [{ path: 'lema' }] }, Query>,
  false satisfies Fits<ByVector & { stats: [{ path: 'yaer' }] }, Query>,
  false satisfies Fits<ByVector & { sort: [{ field: 'author.nam' }] }, Query>,
  false satisfies Fits<ByVector & { include_metadata: ['lema'] }, Query>,
  false satisfies Fits<{ facets: [{ path: 'lema' }] }, AggregateRequest<Sense>>,
  false satisfies Fits<{ include_metadata: ['lema'] }, ListRequest<Sense>>,
  // Lists have no scores.
  false satisfies Fits<{ sort: [{ field: 'score' }] }, ListRequest<Sense>>,
];
