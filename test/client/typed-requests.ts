// What the compiler accepts and refuses of programs that declare their metadata: a line below `@ts-expect-error` that
// compiles is an error of the build.

import type { Client, Match, StoredVector, Vectors } from '../../src/client/client.js';

interface Sense {
  lemma: string;
  year: number;
  author?: { name: string };
  tags: string[];
}

/** Not called: it is compiled. */
export async function compiled(client: Client, senses: Vectors<Sense>): Promise<unknown[]> {
  const vector = [1, 2];
  const { matches } = await senses.query({ vector, include_metadata: true });
  const kept: Match<Sense>[] = [...matches];
  const lemmas: string[] = matches.map(({ metadata }) => metadata.lemma);
  // @ts-expect-error: it was not asked for
  const without: Sense[] = (await senses.query({ vector })).matches.map(({ metadata }) => metadata);
  const some = (await senses.query({ vector, include_metadata: lemmas.length > 1 })).matches[0];
  // @ts-expect-error: whether it was asked for is known when the program runs
  const perhaps: string | undefined = some?.metadata.lemma;
  const floats: (Float32Array | undefined)[] = [
    (await senses.query({ vector, include_values: 'float32' })).matches[0]?.values,
    (await senses.get('a', { include_values: 'float32' })).values,
  ];
  const numbers: number = (await senses.get('a')).values.length;
  const rows: StoredVector<Sense>[] = [...(await senses.list()).vectors];
  const years: number[] = (await senses.list()).vectors.map(({ metadata }) => metadata.year);
  const bare = (await senses.list({ include_metadata: false })).vectors[0];
  // @ts-expect-error: it was not asked for
  const listed: number | undefined = bare?.metadata.year;

  const part = (await senses.query({ vector, include_metadata: ['lemma', 'author.name'] })).matches;
  const parts: (string | undefined)[] = part.map(({ metadata }) => metadata.lemma);
  const names = (await senses.get('a', { include_metadata: ['author.name'] })).metadata.author
    ?.name;
  // @ts-expect-error: of a request for paths any member may be missing
  const certain: string[] = part.map(({ metadata }) => metadata.lemma);
  // @ts-expect-error: a misspelt path
  await senses.query({ vector, include_metadata: ['lema'] });
  // @ts-expect-error: a misspelt path
  await senses.list({ include_metadata: ['lema'] });

  await senses.query({
    vector,
    group_by: 'author.name',
    facets: [{ path: 'tags' }, { path: 'year', limit: 2 }],
  });
  await senses.query({
    vector,
    top_k: 5,
    sort: [{ field: 'year', order: 'desc' }, { field: 'score' }],
  });
  await senses.aggregate({ facets: [{ path: 'lemma' }], stats: [{ path: 'year' }] });
  await senses.list({ sort: [{ field: 'author.name' }, { field: '$id' }] });
  // @ts-expect-error: a misspelt path
  await senses.query({ vector, group_by: 'lema' });
  // @ts-expect-error: a misspelt path
  await senses.query({ vector, facets: [{ path: 'lema' }] });
  // @ts-expect-error: a misspelt path
  await senses.query({ vector, stats: [{ path: 'yaer' }] });
  // @ts-expect-error: a misspelt path
  await senses.query({ vector, sort: [{ field: 'author.nam' }] });
  // @ts-expect-error: lists have no scores
  await senses.list({ sort: [{ field: 'score' }] });
  // @ts-expect-error: a misspelt path
  await senses.aggregate({ facets: [{ path: 'lema' }] });

  const docs = client.collection('docs');
  await docs.query({
    vector,
    group_by: 'any.path',
    sort: [{ field: 'other' }],
    facets: [{ path: 'x' }],
  });
  await docs.query({ id: 'a' });
  await docs.query({ text: { query: 'a' }, limit: 5 });
  await docs.query({ cursor: 'a', include_values: true });
  await docs.query({ vector, cursor: 'a' });
  // @ts-expect-error: nothing to search by
  await docs.query({});
  // @ts-expect-error: nothing to search by
  await docs.query({ top_k: 5 });
  // @ts-expect-error: two things to search by
  await docs.query({ vector, id: 'a' });
  const both = { text: { query: 'a' }, sparse: { indices: [1], values: [1] } };
  // @ts-expect-error: two things to search by
  await docs.queryBatch([both]);
  // @ts-expect-error: a misspelt member
  await docs.query({ vector, topK: 5 });
  return [
    parts,
    names,
    certain,
    kept,
    lemmas,
    without,
    perhaps,
    floats,
    numbers,
    rows,
    years,
    listed,
  ];
}
