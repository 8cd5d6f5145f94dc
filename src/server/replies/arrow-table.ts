// Writes a table as an Arrow IPC stream. Columns are sent in their memory layout.

import { encodeEnd, encodeRecordBatch, encodeSchema } from '../../formats/arrow/ipc-writer.js';
import { ARROW_STREAM } from '../wire/media-types.js';
import type { Table, TableFormat } from './table.js';

export const ARROW_TABLE: TableFormat = {
  type: ARROW_STREAM,
  extension: 'arrows',
  hasColumns: true,
  hasVectorLists: true,
  write: arrowStream,
};

/** The schema is sent with the first batch: an earlier error can still become a problem reply. */
async function* arrowStream({ fields, metadata, batches }: Table): AsyncGenerator<Uint8Array> {
  const schema = encodeSchema(fields, metadata);
  let isBegun = false;
  for await (const batch of batches) {
    if (!isBegun) yield schema;
    isBegun = true;
    // A batch without rows may report the progress of the reply in its metadata.
    if (batch.count === 0 && batch.metadata === undefined) continue;
    yield* encodeRecordBatch(batch.count, batch.columns, batch.metadata);
  }
  if (!isBegun) yield schema;
  yield encodeEnd();
}
