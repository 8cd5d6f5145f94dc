// The suggestions of the filter editor for the user's input: paths, values at a path and ids.

import type { CollectionRecord, FoundPath, JsonObject } from '@sagitta/client';
import { useMemo } from 'react';
import { ID_PATH, TEXT_PATH } from '../../../../../src/common/filter-operators.js';
import { useApi, useFoundPaths } from '../../api/queries.js';
import { formatCount } from '../../ui/format.js';
import type { Suggestion } from '../../ui/suggest-input.js';
import { useDebounced } from '../../ui/use-debounced.js';
import { hasOnlyStrings, typesAt } from './filter-operators.js';
import { formatScalar } from './filter-values.js';

const TYPING_MS = 150;
const SHOWN_MAX = 30;
/** The number of values to request: more than are shown, because facets of arrays include elements that do not match. */
const FACET_VALUES = 100;

/** The paths that contain the input, with their most frequent type. */
export function usePathSuggestions(collection: CollectionRecord, typed: string): Suggestion[] {
  const { data: paths = [] } = useFoundPaths(collection.id);
  return useMemo(() => {
    const all: Suggestion[] = [
      ...paths.map((found) => ({ value: found.path, note: typesAt(found)[0] })),
      { value: ID_PATH, note: 'id of the vector' },
      ...(collection.text ? [{ value: TEXT_PATH, note: 'indexed text' }] : []),
    ];
    const text = typed.toLowerCase();
    return all.filter(({ value }) => value.toLowerCase().includes(text)).slice(0, SHOWN_MAX);
  }, [paths, collection.text, typed]);
}

/** The most frequent values at a path that contain the input; for ids, those that begin with it. */
export function useValueSuggestions(
  collection: CollectionRecord,
  path: string,
  found: FoundPath | undefined,
  { typed, isActive }: { readonly typed: string; readonly isActive: boolean },
): Suggestion[] {
  const text = useDebounced(typed, TYPING_MS);
  const ids = useIdSuggestions(collection.id, text, isActive && path === ID_PATH);
  const onlyStrings = hasOnlyStrings(path, found);
  const { data: values = [] } = useApi(
    ['collection', collection.id, 'values', path, onlyStrings ? text : ''],
    async (client, signal) => {
      const request = {
        ...(onlyStrings && text !== '' && { filter: containing(path, text) }),
        facets: [{ path, limit: FACET_VALUES }],
      };
      const { facets } = await client.collection(collection.id).aggregate(request, { signal });
      return facets![0]!.values;
    },
    { enabled: isActive && found !== undefined, staleTime: 30_000 },
  );
  return useMemo(() => {
    if (path === ID_PATH) return ids;
    const lower = typed.toLowerCase();
    return values
      .map(({ value, count }) => ({
        value: formatScalar(value, onlyStrings),
        note: formatCount(count),
      }))
      .filter(({ value }) => value.toLowerCase().includes(lower))
      .slice(0, SHOWN_MAX);
  }, [path, ids, values, typed, onlyStrings]);
}

/** Ids that begin with the input, in insertion order. */
export function useIdSuggestions(
  collectionId: string,
  typed: string,
  isActive: boolean,
): Suggestion[] {
  const prefix = useDebounced(typed, TYPING_MS);
  const { data } = useApi(
    ['collection', collectionId, 'ids', prefix],
    async (client, signal) => {
      const { vectors } = await client.collection(collectionId).list(
        {
          limit: SHOWN_MAX,
          include_metadata: false,
          ...(prefix !== '' && { filter: { $id: { $prefix: prefix } } }),
        },
        { signal },
      );
      return vectors.map(({ id }) => ({ value: id }));
    },
    {
      enabled: isActive,
      staleTime: 30_000,
      // Ids that still fit stay until the new ones are found, so that the list does not flicker.
      placeholderData: (before, query) =>
        query?.queryKey[1] === collectionId ? before : undefined,
    },
  );
  return useMemo(() => (data ?? []).filter(({ value }) => value.startsWith(typed)), [data, typed]);
}

/** The vectors whose string at the path contains the text, or begins with it. */
export function containing(
  path: string,
  text: string,
  where: 'start' | 'anywhere' = 'anywhere',
): JsonObject {
  const escaped = text.replace(/[\\%_]/g, '\\$&');
  const $like = `${where === 'start' ? '' : '%'}${escaped}%`;
  return { [path]: { $like, $case: 'insensitive' } };
}
