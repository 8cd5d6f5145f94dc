// Opens the query view to search for vectors similar to some others: with these as examples or, if they are too many
// for a query, with the mean of their values.

import type { CollectionRecord, Vectors } from '@sagitta/client';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { fetchByIds } from '../../api/by-ids.js';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import { EXAMPLES_MAX } from '../query/query-draft.js';
import { queryPath } from '../routes.js';
import { meanOf } from './mean.js';

/** More vectors would hardly change the mean, so their values are not read. */
const MEAN_MAX = 10_000;

export function useFindSimilar(collection: CollectionRecord, using: string) {
  const { client } = useStore(session);
  const [, navigate] = useLocation();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const named = using === '' ? {} : { using };
  const find = async (ids: readonly string[]) => {
    if (ids.length <= EXAMPLES_MAX) {
      navigate(queryPath(collection, { recommend: { positive: ids }, ...named }));
      return;
    }
    setBusy(true);
    setError(undefined);
    try {
      const values = await readValues(
        client.collection(collection.id),
        ids.slice(0, MEAN_MAX),
        using,
      );
      navigate(queryPath(collection, { vector: meanOf(values), ...named }));
    } catch (cause) {
      setError(cause);
    } finally {
      setBusy(false);
    }
  };
  return { find, isBusy, error };
}

async function readValues(
  vectors: Vectors,
  ids: readonly string[],
  using: string,
): Promise<(readonly number[])[]> {
  const found: (readonly number[])[] = [];
  const include = { include_values: true, include_metadata: false } as const;
  for await (const vector of fetchByIds(vectors, ids, include)) {
    const values = using === '' ? vector.values : vector.vectors?.[using];
    if (values !== undefined) found.push(values as readonly number[]);
  }
  return found;
}
