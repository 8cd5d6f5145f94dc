// Writes a table as a Parquet file, whose footer contains the Arrow schema in addition to that of Parquet.

import { ELEMENTS } from '../../common/elements.js';
import { packageVersion } from '../../common/package-files.js';
import { encodeSchema } from '../../formats/arrow/ipc-writer.js';
import { ParquetWriter } from '../../formats/parquet/parquet-writer.js';
import { PARQUET } from '../wire/media-types.js';
import { type Batch, batchBytes, type Table, type TableField, type TableFormat } from './table.js';

/** Readers keep at least one column of a row group in memory, and read groups in parallel. */
const GROUP_BYTES_MAX = 64 * 1024 * 1024;
const GROUP_ROWS_MAX = 122_880;

export const PARQUET_TABLE: TableFormat = {
  type: PARQUET,
  extension: 'parquet',
  /** A row group and its encoded pages. */
  gatheredBytes: 2 * GROUP_BYTES_MAX,
  hasColumns: true,
  hasVectorLists: false,
  write: parquetFile,
};

async function* parquetFile({ fields, metadata, batches }: Table): AsyncGenerator<Uint8Array> {
  const writer = new ParquetWriter({
    fields,
    arrowSchema: encodeSchema(fields.map(withLists), metadata),
    metadata,
    createdBy: `sagitta ${packageVersion()}`,
  });
  // The file begins with the first batch: an earlier error can still become a problem reply.
  let isBegun = false;
  let group: Batch[] = [];
  let rowCount = 0;
  let byteCount = 0;
  for await (const batch of batches) {
    if (!isBegun) yield writer.begin();
    isBegun = true;
    if (batch.count === 0) continue;
    group.push(batch);
    rowCount += batch.count;
    byteCount += batchBytes(batch);
    if (byteCount < GROUP_BYTES_MAX && rowCount < GROUP_ROWS_MAX) continue;
    yield* writer.rowGroup(group);
    group = [];
    rowCount = 0;
    byteCount = 0;
  }
  if (!isBegun) yield writer.begin();
  if (group.length > 0) yield* writer.rowGroup(group);
  yield writer.end();
}

/** Avoids fixed-size lists with nulls, which pyarrow cannot read from Parquet. */
function withLists(field: TableField): TableField {
  const { type, isNullable = false } = field;
  if (typeof type === 'object' && 'listOf' in type) {
    const { listOf } = type;
    return listOf === 'uint32' || listOf === 'float32'
      ? { ...field, isNullable: true, type: { listOfNullable: listOf } }
      : field;
  }
  if (!isNullable || typeof type !== 'object' || !('vectorOf' in type)) return field;
  return { ...field, type: { listOf: ELEMENTS[type.element ?? 'float32'].arrow } };
}
