// The colours of the points by a metadata path, whose values are read from the server, and which of
// the points are hidden by the legend.

import { useMemo } from 'react';
import type { CollectionRecord, FoundPath, Vectors } from '../../../client/client.js';
import { resolvePath } from '../../../common/metadata-path.js';
import type { Json } from '../../../common/types.js';
import { fetchMetadata } from '../../api/fetch-metadata.js';
import { useApi } from '../../api/queries.js';
import { type ColumnColours, colourColumn } from './column-colours.js';
import type { MapData } from './map-state.js';

const IDS_PER_REQUEST = 1_000;

export interface PointColours {
  /** The value of each point; undefined until they have arrived, and without a path. */
  readonly values: readonly (Json | undefined)[] | undefined;
  readonly colours: ColumnColours | undefined;
  readonly isLoading: boolean;
  readonly error: Error | null;
}

export function usePointColours(
  { id }: CollectionRecord,
  { request, ids }: MapData,
  path: string,
): PointColours {
  const { data, error, isFetching } = useApi(
    ['collection', id, 'column', path, request, ids.length],
    (client, signal) => fetchColumn(client.collection(id), ids, path, signal),
    { enabled: path !== '', staleTime: 60_000 },
  );
  const values = path === '' ? undefined : data;
  const colours = useMemo(() => values && colourColumn(values), [values]);
  return { values, colours, isLoading: isFetching && data === undefined, error };
}

/** Only the values of the path are kept: the metadata of 200 000 vectors may be gigabytes. */
async function fetchColumn(
  vectors: Vectors,
  ids: readonly string[],
  path: string,
  signal: AbortSignal,
): Promise<readonly (Json | undefined)[]> {
  const values: (Json | undefined)[] = [];
  for (let from = 0; from < ids.length; from += IDS_PER_REQUEST) {
    const some = ids.slice(from, from + IDS_PER_REQUEST);
    const metadata = await fetchMetadata(vectors, some, { signal });
    for (const id of some) {
      const document = metadata.get(id);
      values.push(document && resolvePath(document, path));
    }
  }
  return values;
}

const LABELS = /(^|[._])(label|class|category|type|kind|topic|group|cluster|lang|language)$/i;
/** More values than that are no categories. */
const DISTINCT_MAX = 100;

/** The path that most probably tells kinds of vectors apart; empty when there is none. */
export function defaultColourPath(paths: readonly FoundPath[]): string {
  const candidates = paths.filter(
    ({ types, distinct_count: distinct }) =>
      types.string + types.number + types.boolean > 0 && distinct >= 2 && distinct <= DISTINCT_MAX,
  );
  candidates.sort(
    (a, b) => Number(LABELS.test(b.path)) - Number(LABELS.test(a.path)) || b.count - a.count,
  );
  return candidates[0]?.path ?? '';
}
