// Projections of a collection, as bytes or as columns.

import type { JsonObject } from '../../../src/common/types.js';
import { SagittaClientError } from './error.js';
import type { Filter } from './filter.js';
import { type CallOptions, callOptions, type ProgressOptions, type Requests } from './requests.js';
import { decodeLines, openStream, type StreamReply } from './stream-reply.js';

/** By default 20 000 rows, two dimensions and no neighbours. */
export interface ProjectionRequest<Metadata extends object = JsonObject> {
  /** The named vector to project, instead of the unnamed one. */
  readonly using?: string;
  readonly filter?: Filter<Metadata>;
  /** The number of rows, chosen by hashes of their ids. */
  readonly sample?: number;
  /** Selects a different sample; 0 when absent. */
  readonly seed?: number;
  /** The number of coordinates per row. */
  readonly dimensions?: number;
  /** The number of nearest rows to return per row, within the sample. */
  readonly neighbors?: number;
}

/** Rows as columns, in insertion order. */
export interface ProjectionReply {
  /** Sequence of the snapshot. */
  readonly sequence: number;
  /** The share of the variance that each component explains. */
  readonly varianceRatios: readonly number[];
  readonly ids: readonly string[];
  /** Row-major [ids.length, dimensions]. */
  readonly coordinates: Float32Array;
  /** Only with `neighbors`. */
  readonly neighbors?: ProjectionNeighbors;
}

/** The neighbours of row i are at `starts[i]..starts[i + 1]`, nearest first. */
export interface ProjectionNeighbors {
  /** Metric of the distances. */
  readonly metric: 'cosine' | 'euclidean';
  readonly starts: Uint32Array;
  /** Row indexes. */
  readonly rows: Uint32Array;
  readonly distances: Float32Array;
}

export interface Projections<Metadata extends object = JsonObject> {
  /** The coordinates of a sample along its principal components, as bytes. */
  projectionStream(
    request: ProjectionRequest<Metadata>,
    options: CallOptions & { readonly format: 'arrow' | 'ndjson' },
  ): Promise<StreamReply>;
  /** The coordinates of a sample along its principal components, and its neighbours, as columns. */
  project(
    request?: ProjectionRequest<Metadata>,
    options?: ProgressOptions,
  ): Promise<ProjectionReply>;
}

export function createProjections({ transport }: Requests, root: string): Projections {
  const projections: Projections = {
    async projectionStream(request, { format, ...options }) {
      const { body, sequence } = await openStream(transport, format, {
        method: 'POST',
        path: `${root}/projection`,
        body: request,
        ...callOptions(options, ['format']),
      });
      return { body, sequence };
    },
    async project(request = {}, { onProgress, ...options } = {}) {
      const { body } = await projections.projectionStream(request, {
        ...options,
        format: 'ndjson',
      });
      return readProjection(decodeLines(body, transport.parse), onProgress);
    },
  };
  return projections;
}

interface ProjectionHead {
  readonly sequence: number;
  readonly row_count: number;
  readonly variance_ratios: readonly number[];
  readonly neighbor_metric?: ProjectionNeighbors['metric'];
}

interface ProjectionRow {
  readonly id: string;
  readonly coordinates: readonly number[];
  readonly neighbors?: readonly number[];
  readonly distances?: readonly number[];
}

/** Throws SagittaClientError: the error in the last line, or `unexpected_reply`. */
async function readProjection(
  lines: AsyncGenerator<ProjectionHead | ProjectionRow, void, undefined>,
  onProgress: ProgressOptions['onProgress'],
): Promise<ProjectionReply> {
  const first = await lines.next();
  if (first.done === true || !('row_count' in first.value)) {
    const detail = 'expected a first line with row_count, found none';
    throw new SagittaClientError('unexpected_reply', detail);
  }
  const { sequence, row_count, variance_ratios: varianceRatios, neighbor_metric } = first.value;
  const ids: string[] = [];
  const coordinates = new Float32Array(row_count * varianceRatios.length);
  const starts = new Uint32Array(row_count + 1);
  const rows: number[] = [];
  const distances: number[] = [];
  onProgress?.(0, row_count);
  for await (const row of lines as AsyncIterable<ProjectionRow>) {
    coordinates.set(row.coordinates, ids.length * varianceRatios.length);
    ids.push(row.id);
    rows.push(...(row.neighbors ?? []));
    distances.push(...(row.distances ?? []));
    starts[ids.length] = rows.length;
    onProgress?.(ids.length, row_count);
  }
  if (ids.length !== row_count) {
    const detail = `expected ${row_count} rows, found ${ids.length}`;
    throw new SagittaClientError('unexpected_reply', detail);
  }
  const neighbors = neighbor_metric && {
    metric: neighbor_metric,
    starts,
    rows: Uint32Array.from(rows),
    distances: Float32Array.from(distances),
  };
  return { sequence, varianceRatios, ids, coordinates, ...(neighbors && { neighbors }) };
}
