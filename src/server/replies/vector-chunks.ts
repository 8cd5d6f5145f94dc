// A scan as an Arrow stream or a Parquet file: `id` utf8, `values` a vector of float32 if there is an
// unnamed one, `metadata` utf8 with the JSON as it was sent. Values are sent as they are in memory.

import type { RowChunk, Scan } from '../../database/bulk/scan.js';
import {
  type ColumnToWrite,
  encodeBatch,
  encodeEnd,
  encodeSchema,
  type FieldToWrite,
} from '../../formats/arrow/ipc-writer.js';
import { sparseColumns, sparseFields } from '../../formats/arrow/sparse-fields.js';
import {
  type ParquetColumn,
  type ParquetField,
  ParquetWriter,
} from '../../formats/parquet/parquet-writer.js';
import type { Admit } from './sent-rows.js';

export interface FileOptions {
  readonly includeValues: boolean;
  readonly includeMetadata: boolean;
  readonly admit: Admit;
}

export async function* arrowStream(scan: Scan, options: FileOptions): AsyncGenerator<Uint8Array> {
  yield arrowSchema(scan, options);
  for (const chunk of scan.chunks()) {
    await options.admit(chunk.count);
    yield* encodeBatch(chunk.count, arrowColumns(chunk));
  }
  yield encodeEnd();
}

/** Parquet readers hold at least one column of a group in memory, and read groups in parallel. */
const GROUP_BYTES_MAX = 64 * 1024 * 1024;
const GROUP_ROWS_MAX = 122_880;

export async function* parquetFile(
  scan: Scan,
  options: FileOptions & { readonly createdBy: string },
): AsyncGenerator<Uint8Array> {
  const writer = new ParquetWriter({
    fields: parquetFields(scan, options),
    arrowSchema: encodeSchema(arrowFields(scan, options).map(withLists), schemaMetadata(scan)),
    metadata: schemaMetadata(scan),
    createdBy: options.createdBy,
  });
  yield writer.begin();
  let group: { count: number; columns: ParquetColumn[] }[] = [];
  let rowCount = 0;
  let byteCount = 0;
  for (const chunk of scan.chunks()) {
    await options.admit(chunk.count);
    group.push({ count: chunk.count, columns: parquetColumns(chunk) });
    rowCount += chunk.count;
    byteCount += bytesOf(chunk);
    if (byteCount < GROUP_BYTES_MAX && rowCount < GROUP_ROWS_MAX) continue;
    yield* writer.rowGroup(group);
    group = [];
    rowCount = 0;
    byteCount = 0;
  }
  if (group.length > 0) yield* writer.rowGroup(group);
  yield writer.end();
}

function schemaMetadata({ sequence }: Scan): Map<string, string> {
  return new Map([['sequence', String(sequence)]]);
}

/** Nulls of fixed-size lists cannot be read by pyarrow from Parquet, those of other lists can. */
function withLists(field: FieldToWrite): FieldToWrite {
  return field.isNullable === true ? { ...field, type: { listOf: 'float32' } } : field;
}

function arrowSchema(scan: Scan, options: FileOptions): Uint8Array {
  return encodeSchema(arrowFields(scan, options), schemaMetadata(scan));
}

function arrowFields(scan: Scan, { includeValues, includeMetadata }: FileOptions): FieldToWrite[] {
  const fields: FieldToWrite[] = [{ name: 'id', type: 'utf8' }];
  if (includeValues) {
    if (scan.dimension !== null) fields.push(valuesField(scan.dimension));
    fields.push(...scan.named.map(namedField));
    for (const { name, dimension } of scan.multi) {
      fields.push({ name: `vectors.${name}`, type: { vectorsOf: dimension } });
    }
    fields.push(...sparseFields(scan.sparse));
  }
  if (includeMetadata) fields.push({ name: 'metadata', type: 'utf8' });
  return fields;
}

function valuesField(dimension: number): FieldToWrite {
  return { name: 'values', type: { vectorOf: dimension } };
}

function namedField({ name, dimension }: Scan['named'][number]): FieldToWrite {
  return { name: `vectors.${name}`, type: { vectorOf: dimension }, isNullable: true };
}

function arrowColumns(chunk: RowChunk): ColumnToWrite[] {
  const { ids, values, named, multi, sparse, metadata } = chunk;
  const columns: ColumnToWrite[] = [{ text: ids, from: 0 }];
  if (values !== null) columns.push({ vectors: values });
  columns.push(...named, ...multi.map((column) => ({ multi: column })));
  columns.push(...sparse.flatMap(sparseColumns));
  if (metadata !== null) columns.push({ text: metadata, from: 0 });
  return columns;
}

function parquetFields(
  { dimension, named }: Scan,
  { includeValues, includeMetadata }: FileOptions,
): ParquetField[] {
  const fields: ParquetField[] = [{ kind: 'text', name: 'id' }];
  if (includeValues) {
    if (dimension !== null) fields.push({ kind: 'vector', name: 'values', dimension });
    for (const vector of named) {
      const name = `vectors.${vector.name}`;
      fields.push({ kind: 'vector', name, dimension: vector.dimension, isNullable: true });
    }
  }
  if (includeMetadata) fields.push({ kind: 'text', name: 'metadata' });
  return fields;
}

function parquetColumns({ ids, values, named, metadata }: RowChunk): ParquetColumn[] {
  return [ids, values, ...named, metadata].filter((column) => column !== null);
}

function bytesOf({ count, values, named, metadata }: RowChunk): number {
  const textBytes = metadata === null ? 0 : metadata.offsets[count]! - metadata.offsets[0]!;
  const namedBytes = named.reduce((sum, { vectors }) => sum + vectors.byteLength, 0);
  return textBytes + (values?.byteLength ?? 0) + namedBytes;
}
