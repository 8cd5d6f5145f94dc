// Converts an Arrow stream of text, numbers, booleans and vectors, as matches and exports with typed columns
// are, to a Parquet file. Holds one row group in memory.

import {
  type Data,
  DataType,
  Precision,
  type RecordBatch,
  RecordBatchReader,
  type Schema,
} from 'apache-arrow';
import { type Bitmap, createFullBitmap, firstBits } from '../../common/bitmap.js';
import { packageVersion } from '../../common/package-version.js';
import {
  type ParquetColumn,
  type ParquetField,
  ParquetWriter,
} from '../../formats/parquet/parquet-writer.js';
import { CliError } from '../failure.js';

const GROUP_ROWS_MAX = 122_880;
const GROUP_BYTES_MAX = 64 * 1024 * 1024;

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
  let byteCount = 0;
  for await (const batch of reader) {
    // Batches without rows only tell how far the server is.
    if (batch.numRows === 0) continue;
    group.push({ count: batch.numRows, columns: columnsOf(batch) });
    rowCount += batch.numRows;
    byteCount += batch.data.byteLength;
    if (rowCount < GROUP_ROWS_MAX && byteCount < GROUP_BYTES_MAX) continue;
    yield* writer.rowGroup(group);
    group = [];
    rowCount = 0;
    byteCount = 0;
  }
  if (group.length > 0) yield* writer.rowGroup(group);
  yield writer.end();
}

function fieldsOf({ fields }: Schema): ParquetField[] {
  return fields.map(({ name, type, nullable: isNullable }): ParquetField => {
    if (DataType.isFixedSizeList(type)) {
      return { kind: 'vector', name, dimension: type.listSize, isNullable };
    }
    return { kind: leafKindOf(type), name, isNullable };
  });
}

function leafKindOf(type: DataType): Exclude<ParquetField['kind'], 'vector'> {
  if (DataType.isUtf8(type)) return 'text';
  if (DataType.isBool(type)) return 'boolean';
  if (DataType.isFloat(type)) return type.precision === Precision.DOUBLE ? 'float64' : 'float32';
  if (DataType.isInt(type)) return type.bitWidth === 64 ? 'int64' : 'int32';
  throw new CliError(`a Parquet file has no columns of the type ${type}; write .arrow instead`);
}

function columnsOf({ data, numRows, schema }: RecordBatch): ParquetColumn[] {
  return data.children.map((column, at): ParquetColumn => {
    const { type, nullable } = schema.fields[at]!;
    const presence = nullable ? presenceOf(column, numRows) : null;
    if (DataType.isFixedSizeList(type)) {
      const values = column.children[0]!.values as Float32Array;
      const vectors = values.subarray(0, numRows * type.listSize);
      return nullable ? { vectors, presence: presence ?? createFullBitmap(numRows) } : vectors;
    }
    if (DataType.isUtf8(type)) {
      return { leaf: { offsets: column.valueOffsets, bytes: column.values }, presence };
    }
    if (DataType.isBool(type)) return { leaf: bitmapOf(column.values, numRows), presence };
    const leaf = column.values as Int32Array | BigInt64Array | Float32Array | Float64Array;
    return { leaf: leaf.subarray(0, numRows) as typeof leaf, presence };
  });
}

/** Null where no row is null. */
function presenceOf({ nullCount, nullBitmap }: Data, count: number): Bitmap | null {
  return nullCount === 0 ? null : bitmapOf(nullBitmap, count);
}

function bitmapOf(bytes: Uint8Array, count: number): Bitmap {
  const words = new Uint32Array(Math.ceil(count / 32));
  new Uint8Array(words.buffer).set(bytes.subarray(0, Math.ceil(count / 8)));
  return firstBits({ length: count, words }, count);
}
