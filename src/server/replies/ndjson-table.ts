// Writes a table as NDJSON with a line per row.

import { JsonWriter } from '../../formats/json/json-writer.js';
import type { Task } from '../../platform/pool.js';
import { NDJSON } from '../wire/media-types.js';
import { estimateBytes, rowWriter } from './row-json.js';
import type { TableFormat } from './table.js';
import { LINE_BYTES, type LinesInput, TEXT_CHUNK_BYTES, textOfBatches } from './text-batches.js';

export const writeLinesTask: Task<LinesInput, Uint8Array> = {
  name: 'replies.writeLines',
  run: linesOf,
  transfer: ({ buffer }) => [buffer as ArrayBuffer],
};

export const NDJSON_TABLE: TableFormat = {
  type: NDJSON,
  extension: 'ndjson',
  chunkBytesMax: TEXT_CHUNK_BYTES,
  hasColumns: false,
  hasVectorLists: true,
  write: (table, pool) => textOfBatches(table, writeLinesTask, pool),
};

function linesOf({ fields, batch: { columns, count } }: LinesInput): Uint8Array {
  const json = new JsonWriter(estimateBytes(columns, count) + count * LINE_BYTES);
  const writeRow = rowWriter(fields, columns);
  for (let row = 0; row < count; row++) {
    json.ascii('{');
    writeRow(json, row);
    json.ascii('}\n');
  }
  return json.written();
}
