// Reads the nearest neighbours of a sample of the collection, from which a threshold is chosen.

import type { CollectionRecord, JoinRow } from '@sagitta/client';
import type { UseQueryResult } from '@tanstack/react-query';
import { useApi } from '../../api/queries.js';
import { type SearchSettings, selectionOf } from './duplicate-search.js';
import { NEIGHBORS_PER_ROW, type ScoreSample, sampleOf, sampleRowsOf } from './score-sample.js';

export function useScoreSample(
  { id, vector_count }: CollectionRecord,
  settings: Pick<SearchSettings, 'vectors' | 'using' | 'metric' | 'filter'>,
): UseQueryResult<ScoreSample> {
  const { vectors, using, metric, filter } = settings;
  const { dimension } = vectors.find(({ name }) => name === using)!;
  return useApi(
    ['collection', id, 'scores', using, metric, filter],
    async (client, signal) => {
      const collection = client.collection(id);
      const request = {
        ...selectionOf(settings),
        topK: NEIGHBORS_PER_ROW,
        sample: sampleRowsOf(vector_count, dimension),
      };
      const rows: JoinRow[] = [];
      for await (const row of collection.join(request, { signal })) rows.push(row);
      const isWhole = rows.length < request.sample;
      const count = () => collection.count(filter === undefined ? {} : { filter }, { signal });
      return sampleOf(rows, isWhole ? rows.length : await count());
    },
    // A write changes the distribution little, and reading it again would move the threshold.
    { staleTime: Number.POSITIVE_INFINITY },
  );
}
