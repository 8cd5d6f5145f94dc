// Converts an Arrow stream of text and numbers without nulls, as the server sends matches, to a Parquet
// file. Holds one row group in memory.

import { DataType, type RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';
import { packageVersion } from '../../common/package-files.js';
import type { ColumnToWrite, FieldToWrite } from '../../formats/arrow/ipc-writer.js';
import { ParquetWriter } from '../../formats/parquet/parquet-writer.js';

/** Matches have short rows, so that a group takes some megabytes. */
const GROUP_ROWS_MAX = 122_880;

export async function* parquetOfArrow(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const reader = await RecordBatchReader.from(stream);
  await reader.open();
  const { schema } = reader;
  const fields = fieldsOf(schema);
  const writer = new ParquetWriter({
    fields,
    metadata: schema.metadata,
    createdBy: `sagitta ${packageVersion()}`,
  });
  yield writer.begin();
  let group: { count: number; columns: ColumnToWrite[] }[] = [];
  let rowCount = 0;
  for await (const batch of reader) {
    // Batches without rows only tell how far the server is.
    if (batch.numRows === 0) continue;
    group.push({ count: batch.numRows, columns: columnsOf(batch) });
    rowCount += batch.numRows;
    if (rowCount < GROUP_ROWS_MAX) continue;
    yield* writer.rowGroup(group);
    group = [];
    rowCount = 0;
  }
  if (group.length > 0) yield* writer.rowGroup(group);
  yield writer.end();
}

function fieldsOf({ fields }: Schema): FieldToWrite[] {
  return fields.map(({ name, type }): FieldToWrite => {
    if (DataType.isUtf8(type)) return { name, type: 'utf8' };
    if (DataType.isFloat(type)) return { name, type: 'float32' };
    if (DataType.isInt(type)) return { name, type: type.bitWidth === 64 ? 'int64' : 'int32' };
    throw new Error(`matches have no column of the type ${type}`);
  });
}

function columnsOf(batch: RecordBatch): ColumnToWrite[] {
  return batch.data.children.map(({ values, valueOffsets }, at): ColumnToWrite => {
    if (DataType.isUtf8(batch.schema.fields[at]!.type)) {
      const text = { offsets: valueOffsets as Int32Array, bytes: values as Uint8Array };
      return { text, from: 0 };
    }
    const numbers = (values as Int32Array | BigInt64Array | Float32Array).subarray(
      0,
      batch.numRows,
    );
    return { numbers: numbers as Int32Array | BigInt64Array | Float32Array };
  });
}
