// A projection as NDJSON, with a first line about all rows and then one line per row, or as an Arrow stream
// with the same in the metadata of its schema.

import type {
  ProjectedRows,
  Projection,
  ProjectionChunk,
} from '../../database/projection/projection.js';
import {
  type ColumnToWrite,
  encodeBatch,
  encodeEnd,
  encodeSchema,
  type FieldToWrite,
} from '../../formats/arrow/ipc-writer.js';
import { JsonWriter } from '../../formats/json/json-writer.js';
import type { Admit } from './sent-rows.js';

export interface ProjectionOptions {
  readonly dimensions: number;
  readonly hasNeighbors: boolean;
  readonly admit: Admit;
}

export async function* projectionLines(
  projection: Projection,
  { dimensions, hasNeighbors, admit }: ProjectionOptions,
): AsyncGenerator<Uint8Array> {
  const projected = await projection.project();
  yield Buffer.from(`${JSON.stringify(headOf(projection, projected, hasNeighbors))}\n`);
  for await (const chunk of projected.chunks()) {
    await admit(chunk.count);
    yield linesOf(chunk, dimensions);
  }
}

export async function* projectionArrowStream(
  projection: Projection,
  { dimensions, hasNeighbors, admit }: ProjectionOptions,
): AsyncGenerator<Uint8Array> {
  const projected = await projection.project();
  const fields: FieldToWrite[] = [
    { name: 'id', type: 'utf8' },
    { name: 'coordinates', type: { vectorOf: dimensions } },
  ];
  if (hasNeighbors) {
    fields.push({ name: 'neighbors', type: { listOf: 'uint32' } });
    fields.push({ name: 'distances', type: { listOf: 'float32' } });
  }
  const head = Object.entries(headOf(projection, projected, hasNeighbors));
  const texts = head.map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  yield encodeSchema(fields, new Map(texts));
  for await (const chunk of projected.chunks()) {
    await admit(chunk.count);
    yield* encodeBatch(chunk.count, arrowColumns(chunk));
  }
  yield encodeEnd();
}

function headOf(
  { sequence, rowCount, neighborMetric }: Projection,
  { varianceRatios }: ProjectedRows,
  hasNeighbors: boolean,
) {
  return {
    sequence,
    row_count: rowCount,
    variance_ratios: varianceRatios,
    ...(hasNeighbors ? { neighbor_metric: neighborMetric } : {}),
  };
}

/** Of a coordinate or a neighbour with its distance. */
const NUMBER_BYTES = 12;
const LINE_BYTES = 64;

function linesOf(
  { count, ids, coordinates, neighbors }: ProjectionChunk,
  dimensions: number,
): Uint8Array {
  const numberCount = coordinates.length + 2 * (neighbors?.rows.length ?? 0);
  const json = new JsonWriter(ids.bytes.length + count * LINE_BYTES + numberCount * NUMBER_BYTES);
  for (let row = 0; row < count; row++) {
    json.ascii('{"id":');
    json.text(ids, row);
    json.ascii(',"coordinates":');
    json.vector(coordinates, row * dimensions, (row + 1) * dimensions);
    if (neighbors !== null) {
      const [start, end] = [neighbors.starts[row]!, neighbors.starts[row + 1]!];
      json.ascii(`,"neighbors":[${neighbors.rows.subarray(start, end).join()}],"distances":`);
      json.vector(neighbors.distances, start, end);
    }
    json.ascii('}\n');
  }
  return json.written();
}

function arrowColumns({ ids, coordinates, neighbors }: ProjectionChunk): ColumnToWrite[] {
  const columns: ColumnToWrite[] = [{ text: ids, from: 0 }, { vectors: coordinates }];
  if (neighbors !== null) {
    const { starts, rows, distances } = neighbors;
    columns.push({ starts, elements: rows }, { starts, elements: distances });
  }
  return columns;
}
