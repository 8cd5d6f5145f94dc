// The addresses of the views. They are in the hash of the URL, because the server serves a single document.

import type { CollectionRecord, QueryMembers, QueryRequest } from '@sagitta/client';
import { encodeQuery, newDraft, newOptions } from './query/query-draft.js';
import { buildRequest } from './query/query-request.js';
import { wordsKind } from './query/searchable.js';

/** The views of one collection, in the order of their tabs. */
export const COLLECTION_VIEWS = [
  { name: 'schema', label: 'Schema' },
  { name: 'browse', label: 'Browse' },
  { name: 'query', label: 'Query' },
  { name: 'map', label: 'Map' },
  { name: 'duplicates', label: 'Duplicates' },
  { name: 'join', label: 'Join' },
] as const;

export type CollectionView = (typeof COLLECTION_VIEWS)[number]['name'];

/** The views of the server, in the order of the navigation. */
export const SERVICE_VIEWS = [
  { path: '/', label: 'Overview' },
  { path: '/import', label: 'Import' },
  { path: '/keys', label: 'API keys' },
  { path: '/audit', label: 'Audit' },
  { path: '/backups', label: 'Backups' },
] as const;

export function collectionPath(id: string, view: CollectionView = 'schema'): string {
  return `/collections/${encodeURIComponent(id)}/${view}`;
}

/** The address of the query view with a ranking such as `{ id }` or `{ recommend: { positive: ids } }`. */
export function queryPath(
  collection: CollectionRecord,
  ranking: Pick<QueryMembers, 'id' | 'vector' | 'recommend' | 'using'>,
): string {
  const request = { ...ranking, ...newOptions(collection) } as QueryRequest;
  return `${collectionPath(collection.id, 'query')}/${encodeQuery({ request })}`;
}

/** The address of the query view with a search for words; undefined if the collection cannot be searched by them. */
export function wordsPath(collection: CollectionRecord, words: string): string | undefined {
  const by = wordsKind(collection);
  if (by === undefined) return undefined;
  const draft = { ...newDraft(collection), rankings: [{ by, input: words }] };
  const { request } = buildRequest(collection, draft);
  return request && `${collectionPath(collection.id, 'query')}/${encodeQuery({ request })}`;
}
