// Checks by compiling that a declared metadata type applies to filters, writes and replies. Where an error is expected,
// the conditional type `Fits` is false.

import type { Filter, MetadataPatch, Vectors } from '@sagitta/client';
import { exportBatches } from '@sagitta/client/arrow';

interface Article {
  title: string;
  year: number;
  draft?: boolean;
  tags: readonly string[];
  author: { name: string; address?: { city: string } };
}

type Articles = Vectors<Article>;
type Fits<Given, Wanted> = [Given] extends [Wanted] ? true : false;
type Same<Left, Right> = [Left, Right] extends [Right, Left] ? true : false;

declare const articles: Articles;
type Found = Awaited<ReturnType<typeof articles.query<false, true>>>['matches'][number]['metadata'];
type Fetched = Awaited<
  ReturnType<typeof articles.fetch<true, true>>
>['vectors'][number]['metadata'];
type Listed = Awaited<ReturnType<typeof articles.list<false, true>>>['vectors'][number]['metadata'];
type Written = Parameters<Articles['upsert']>[0][number]['metadata'];
type Untyped = Awaited<ReturnType<Vectors['query']>>['matches'][number]['metadata'];

export const METADATA_AGREES: readonly true[] = [
  true satisfies Same<NonNullable<Found>, Article>,
  true satisfies Same<NonNullable<Fetched>, Article>,
  true satisfies Same<NonNullable<Listed>, Article>,
  true satisfies Same<NonNullable<Written>, Article>,
  true satisfies Fits<{ [name: string]: string }, NonNullable<Untyped>>,
];

/** The functions for Arrow infer the type from the collection. */
export const exportRecent = (all: Articles) =>
  exportBatches(all, { filter: { year: { $gte: 2020 } } });
export const exportAny = (vectors: Vectors) => exportBatches(vectors, { filter: { anything: 1 } });

export const FILTERS_AGREE: readonly true[] = [
  true satisfies Fits<{ year: { $gte: 2020; $ne: null }; title: 'On whales' }, Filter<Article>>,
  true satisfies Fits<
    { tags: { $contains: 'sea'; $contains_only: ['sea']; $size: 2 } },
    Filter<Article>
  >,
  true satisfies Fits<{ 'author.address.city': { $prefix: 'B' } }, Filter<Article>>,
  true satisfies Fits<{ $or: [{ draft: true }, { $not: { $id: 'a' } }] }, Filter<Article>>,
  true satisfies Fits<{ anything: [1] }, Filter>,
  true satisfies Fits<{ title: null; author: { name: 'Ada' } }, MetadataPatch<Article>>,
];

export const MISTAKES_ARE_FOUND: readonly false[] = [
  false satisfies Fits<{ year: '2020' }, Filter<Article>>,
  false satisfies Fits<{ year: { $gte: '2020' } }, Filter<Article>>,
  false satisfies Fits<{ tags: { $contains: 1 } }, Filter<Article>>,
  false satisfies Fits<{ tags: { $contains_only: [1] } }, Filter<Article>>,
  false satisfies Fits<{ $and: [{ title: 3 }] }, Filter<Article>>,
  false satisfies Fits<{ 'author.name': { $in: [1] } }, Filter<Article>>,
  false satisfies Fits<{ year: 'x' }, MetadataPatch<Article>>,
];

/** A misspelt path does not compile. Only literals are checked for excess names. */
export type PathsOfArticles = Exclude<keyof Filter<Article>, `$${string}`>;
export const PATHS: Record<PathsOfArticles, true> = {
  title: true,
  year: true,
  draft: true,
  tags: true,
  author: true,
  'author.name': true,
  'author.address': true,
  'author.address.city': true,
};
