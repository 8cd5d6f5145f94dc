// The colours of the points by the values at a metadata path, which are read from the server.

import type { CollectionRecord, ExportOptions, Vectors } from '@sagitta/client';
import { useMemo } from 'react';
import { resolvePath } from '../../../../../src/common/metadata-path.js';
import type { Json } from '../../../../../src/common/types.js';
import { useApi, useFoundPaths } from '../../api/queries.js';
import { useStore } from '../../api/store.js';
import { type ColumnColours, colourColumn, defaultColourPath } from './column-colours.js';
import { type MapData, type MapRequest, mapDraftOf } from './map-state.js';

export interface PointColours {
  /** The value of each point; undefined until they have arrived, or if there is no path. */
  readonly values: readonly (Json | undefined)[] | undefined;
  readonly colours: ColumnColours | undefined;
  readonly isLoading: boolean;
  readonly error: Error | null;
}

/** The path that the user has chosen, or the one that most likely distinguishes kinds of vectors; empty for none. */
export function useColourPath({ id }: CollectionRecord): string {
  const { colourPath } = useStore(mapDraftOf(id));
  const { data: found = [] } = useFoundPaths(id);
  return colourPath ?? defaultColourPath(found);
}

export function usePointColours(
  { id }: CollectionRecord,
  data: MapData,
  path: string,
): PointColours {
  const {
    data: column,
    error,
    isFetching,
  } = useApi(
    ['collection', id, 'column', path, data.request, data.sequence, data.ids.length],
    (client, signal) => readColumn(client.collection(id), data, path, signal),
    { enabled: path !== '', staleTime: 60_000 },
  );
  const values = path === '' ? undefined : column;
  const colours = useMemo(() => values && colourColumn(values), [values]);
  return { values, colours, isLoading: isFetching && column === undefined, error };
}

/**
 * The values come from an export of the same sample, which is cheaper than fetching by id. Other metadata is
 * discarded. Points whose vectors have since been deleted get no value.
 */
async function readColumn(
  vectors: Vectors,
  { request, ids }: MapData,
  path: string,
  signal: AbortSignal,
): Promise<readonly (Json | undefined)[]> {
  const pointOf = new Map(ids.map((id, point) => [id, point]));
  const values: (Json | undefined)[] = new Array(ids.length).fill(undefined);
  const rows = vectors.exportAll({ ...sampleExport(request), signal });
  for await (const { id, metadata } of rows) {
    const point = pointOf.get(id);
    if (point === undefined) continue;
    values[point] = metadata && resolvePath(metadata, path);
    pointOf.delete(id);
    if (pointOf.size === 0) break;
  }
  return values;
}

/** An export of the metadata of a sample, which may contain other rows. */
export function sampleExport({ using, sample, seed, filter }: MapRequest): ExportOptions {
  return {
    includeValues: false,
    // An export cannot sample only the records that have a named vector.
    ...(using === '' && { sample, seed }),
    ...(filter !== undefined && { filter }),
  };
}
