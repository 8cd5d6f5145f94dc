// Writes a projection as NDJSON, with a first line about all rows and then a line per row, or as a table with the
// content of that line in the metadata of its schema.

import { wireNames } from '../../common/wire-names.js';
import type {
  ProjectedRows,
  Projection,
  ProjectionChunk,
} from '../../database/projection/projection.js';
import { NDJSON_TABLE } from './ndjson-table.js';
import type { Admit } from './sent-rows.js';
import { type Table, type TableColumn, tableOf } from './table.js';

export interface ProjectionOptions {
  readonly dimensions: number;
  readonly hasNeighbors: boolean;
  readonly admit: Admit;
}

export async function* projectionLines(
  projection: Projection,
  options: ProjectionOptions,
): AsyncGenerator<Uint8Array> {
  const projected = await projection.project();
  const head = headOf(projection, projected, options.hasNeighbors);
  yield Buffer.from(`${JSON.stringify(head)}\n`);
  const { admit } = options;
  // Written on this thread, since the pool could refuse a reply that has begun.
  yield* NDJSON_TABLE.write(tableOf(columnsOf(options), projected.chunks(), { admit }), null);
}

export async function projectionTable(
  projection: Projection,
  options: ProjectionOptions,
): Promise<Table> {
  const projected = await projection.project();
  const head = Object.entries(headOf(projection, projected, options.hasNeighbors));
  const metadata = new Map(
    head.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
  const { admit } = options;
  return tableOf(columnsOf(options), projected.chunks(), { metadata, admit });
}

function headOf(
  { sequence, rowCount, neighborMetric }: Projection,
  { varianceRatios }: ProjectedRows,
  hasNeighbors: boolean,
) {
  return wireNames({
    sequence,
    rowCount,
    varianceRatios,
    ...(hasNeighbors && { neighborMetric }),
  });
}

function columnsOf({ dimensions, hasNeighbors }: ProjectionOptions) {
  const columns: TableColumn<ProjectionChunk>[] = [
    { name: 'id', type: 'utf8', of: ({ ids }) => ({ leaf: ids }) },
    {
      name: 'coordinates',
      type: { vectorOf: dimensions },
      of: ({ coordinates }) => ({ vectors: coordinates }),
    },
  ];
  if (!hasNeighbors) return columns;
  columns.push(
    {
      name: 'neighbors',
      type: { listOf: 'uint32' },
      of: ({ neighbors }) => ({ starts: neighbors!.starts, elements: neighbors!.rows }),
    },
    {
      name: 'distances',
      type: { listOf: 'float32' },
      of: ({ neighbors }) => ({ starts: neighbors!.starts, elements: neighbors!.distances }),
    },
  );
  return columns;
}
