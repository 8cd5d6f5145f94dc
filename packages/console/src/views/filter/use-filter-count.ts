// Counts the vectors that pass a filter while it is edited. A request is sent when typing pauses, and aborted
// when it is outdated.

import type { CollectionRecord, JsonObject } from '@sagitta/client';
import { keepPreviousData } from '@tanstack/react-query';
import { useMemo } from 'react';
import { parseExactJson, stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { useApi } from '../../api/queries.js';
import { useDebounced } from '../../ui/use-debounced.js';

const TYPING_MS = 250;

export interface FilterCount {
  /** Undefined until the first reply. */
  readonly count: number | undefined;
  readonly error: unknown;
  /** Whether the count belongs to a previous filter. */
  readonly isOutdated: boolean;
}

export function useFilterCount(
  { id, vector_count, sequence }: CollectionRecord,
  filter: JsonObject | undefined,
): FilterCount {
  const wanted = filter === undefined ? undefined : stringifyExactJson(filter);
  const settled = useDebounced(wanted, TYPING_MS);
  const { data, error, isPlaceholderData } = useApi(
    ['collection', id, 'count', settled, sequence],
    (client, signal) =>
      client.collection(id).count({ filter: parseExactJson(settled!) as JsonObject }, { signal }),
    { enabled: settled !== undefined, placeholderData: keepPreviousData, retry: false },
  );
  return useMemo(
    () =>
      wanted === undefined
        ? { count: vector_count, error: undefined, isOutdated: false }
        : {
            count: data,
            error: settled === wanted ? (error ?? undefined) : undefined,
            isOutdated: isPlaceholderData || settled !== wanted,
          },
    [wanted, settled, data, error, isPlaceholderData, vector_count],
  );
}
