// Converts an Arrow stream of text and numbers without nulls, as the server sends matches, to a Parquet
// file. Holds one row group in memory.

import { DataType, type RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';
import { packageVersion } from '../../common/package-files.js';
import {
  type ParquetColumn,
  type ParquetField,
  ParquetWriter,
} from '../../formats/parquet/parquet-writer.js';

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
  let group: { count: number; columns: ParquetColumn[] }[] = [];
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

function fieldsOf({ fields }: Schema): ParquetField[] {
  return fields.map(({ name, type }): ParquetField => {
    if (DataType.isUtf8(type)) return { kind: 'text', name };
    if (DataType.isFloat(type)) return { kind: 'float32', name };
    if (DataType.isInt(type)) return { kind: type.bitWidth === 64 ? 'int64' : 'int32', name };
    throw new Error(`matches have no column of the type ${type}`);
  });
}

function columnsOf(batch: RecordBatch): ParquetColumn[] {
  return batch.data.children.map(({ values, valueOffsets }, at): ParquetColumn => {
    const isText = DataType.isUtf8(batch.schema.fields[at]!.type);
    if (isText) return { offsets: valueOffsets as Int32Array, bytes: values as Uint8Array };
    const leaf = (values as Int32Array | BigInt64Array | Float32Array).subarray(0, batch.numRows);
    return { leaf: leaf as Int32Array | BigInt64Array | Float32Array, presence: null };
  });
}
