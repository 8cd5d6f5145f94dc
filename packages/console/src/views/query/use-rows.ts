// Stored vectors for the box of a query: suggestions by id and title, the vector with an id, and one at random.

import type { CollectionRecord, JsonObject } from '@sagitta/client';
import { useMemo } from 'react';
import { queryClient, useApi, useFoundPaths } from '../../api/queries.js';
import { session } from '../../api/session.js';
import type { Suggestion } from '../../ui/suggest-input.js';
import { useDebounced } from '../../ui/use-debounced.js';
import { containing } from '../filter/use-suggestions.js';
import { previewText, previewTitle, titlePathOf } from '../vectors/preview.js';

const TYPING_MS = 150;
/** The suggestions of each kind; more are not looked at. */
const SHOWN_MAX = 8;
const TYPED_CHARACTERS_MAX = 512;
const STALE_MS = 30_000;

/** The metadata path that names the vectors of the collection, if there is one. */
export function useTitlePath(collectionId: string): string | undefined {
  const { data } = useFoundPaths(collectionId);
  return useMemo(() => titlePathOf(data ?? []), [data]);
}

interface NamedRow {
  readonly id: string;
  readonly metadata?: JsonObject;
}

async function findRows(
  collectionId: string,
  titlePath: string | undefined,
  text: string,
  signal?: AbortSignal,
): Promise<readonly NamedRow[]> {
  const vectors = session.get().client.collection(collectionId);
  const list = async (filter: JsonObject | undefined): Promise<readonly NamedRow[]> => {
    const request = { limit: SHOWN_MAX, ...(filter !== undefined && { filter }) };
    return (await vectors.list(request, signal ? { signal } : {})).vectors;
  };
  if (text === '') return list(undefined);
  const ids = { $id: { $prefix: text } };
  if (titlePath === undefined) return list(ids);
  const found = await Promise.all([
    list({ $or: [{ [titlePath]: text }, ids] }),
    list(containing(titlePath, text, 'start')),
    list(containing(titlePath, text)),
  ]);
  return [...new Map(found.flat().map((row) => [row.id, row])).values()];
}

/** The vector whose title fits the words best; undefined if there is none. */
export async function rowWithTitle(
  collectionId: string,
  titlePath: string | undefined,
  words: string,
): Promise<string | undefined> {
  if (titlePath === undefined || words.length > TYPED_CHARACTERS_MAX) return undefined;
  return (await findRows(collectionId, titlePath, words).catch(() => []))[0]?.id;
}

/** Vectors whose id or title begins with the input, then those whose title contains it. */
export function useRowSuggestions(
  collection: CollectionRecord,
  typed: string,
  isActive: boolean,
): Suggestion[] {
  const text = useDebounced(typed.trim(), TYPING_MS);
  const titlePath = useTitlePath(collection.id);
  const { data: rows = [] } = useApi(
    ['collection', collection.id, 'rows', titlePath, text],
    (_client, signal) => findRows(collection.id, titlePath, text, signal),
    { enabled: isActive && text.length <= TYPED_CHARACTERS_MAX, staleTime: STALE_MS },
  );
  return useMemo(
    () => rows.slice(0, SHOWN_MAX).map((row) => suggestionOf(collection, row, titlePath)),
    [collection, rows, titlePath],
  );
}

function suggestionOf(
  collection: CollectionRecord,
  { id, metadata }: NamedRow,
  titlePath: string | undefined,
): Suggestion {
  const title = previewTitle(metadata, titlePath);
  const text = previewText(metadata, collection);
  return { value: id, title, detail: text === title ? undefined : text };
}

/** The vector with this id, with its metadata; null if there is none. */
async function fetchStored(
  collectionId: string,
  id: string,
  signal?: AbortSignal,
): Promise<NamedRow | null> {
  if (id === '' || id.length > TYPED_CHARACTERS_MAX) return null;
  const vectors = session.get().client.collection(collectionId);
  const reply = await vectors.fetch([id], { include_values: false }, signal ? { signal } : {});
  return reply.vectors[0] ?? null;
}

const storedKey = (collectionId: string, id: string) => ['collection', collectionId, 'stored', id];

/** The vector whose id the input is; undefined until that is known, and null if there is none. */
export function useStored(collectionId: string, input: string): NamedRow | null | undefined {
  const id = useDebounced(input.trim(), TYPING_MS);
  const { data } = useApi(
    storedKey(collectionId, id),
    (_client, signal) => fetchStored(collectionId, id, signal),
    { staleTime: STALE_MS },
  );
  return id === input.trim() ? data : undefined;
}

/** Whether the input is the id of a stored vector. Without permission to read, it counts as none. */
export async function isStoredId(collectionId: string, input: string): Promise<boolean> {
  const id = input.trim();
  const found = queryClient.fetchQuery({
    queryKey: storedKey(collectionId, id),
    queryFn: ({ signal }) => fetchStored(collectionId, id, signal),
    staleTime: STALE_MS,
  });
  return (await found.catch(() => null)) !== null;
}

/** The id of a vector at a random position; undefined in an empty collection. */
export async function randomId({
  id,
  vector_count,
}: CollectionRecord): Promise<string | undefined> {
  const offset = Math.floor(Math.random() * vector_count);
  const { vectors } = await session
    .get()
    .client.collection(id)
    .list({ limit: 1, offset, include_metadata: false });
  return vectors[0]?.id;
}
