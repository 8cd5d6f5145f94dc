// Opens the query view with what is like some vectors: by themselves as examples, or, when they are
// more than a query takes, by the mean of their values.

import { useState } from 'react';
import { useLocation } from 'wouter';
import type { CollectionRecord, Vectors } from '../../../client/client.js';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import { queryPath } from '../../routes.js';
import { meanOf } from './mean.js';

/** Examples that one query takes. */
const EXAMPLES_MAX = 64;
/** The mean of more changes no more, and their values are not worth reading. */
const MEAN_MAX = 10_000;
const IDS_PER_REQUEST = 500;

export function useFindSimilar({ id }: CollectionRecord, using: string) {
  const { client } = useStore(session);
  const [, navigate] = useLocation();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const named = using === '' ? {} : { using };
  const find = async (ids: readonly string[]) => {
    if (ids.length <= EXAMPLES_MAX) {
      navigate(
        queryPath(id, { by: 'examples', positive: ids, strategy: 'average_vector', ...named }),
      );
      return;
    }
    setBusy(true);
    setError(undefined);
    try {
      const values = await readValues(client.collection(id), ids.slice(0, MEAN_MAX), using);
      const vector = JSON.stringify(meanOf(values));
      navigate(queryPath(id, { by: 'vector', vector, ...named }));
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
  for (let from = 0; from < ids.length; from += IDS_PER_REQUEST) {
    const some = ids.slice(from, from + IDS_PER_REQUEST);
    const reply = await vectors.fetch(some, { include_values: true, include_metadata: false });
    for (const vector of reply.vectors) {
      const values = using === '' ? vector.values : vector.vectors?.[using];
      if (values !== undefined) found.push(values as readonly number[]);
    }
  }
  return found;
}
