// A scan as an Arrow stream or a Parquet file: `id` utf8, `values` a vector of float32 if there is an
// unnamed one, `metadata` utf8 with the JSON as it was sent or a column for each of its paths. Values are
// sent as they are in memory.

import type { LeafColumn, ListColumn } from '../../common/columns.js';
import { bytesOfRows } from '../../common/vectors.js';
import type { RowChunk, Scan, TypedChunk } from '../../database/bulk/scan.js';
import type { TypedField } from '../../database/bulk/typed-fields.js';
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
import { splitFields, splitVectors } from './split-vectors.js';

export interface FileOptions {
  readonly includeValues: boolean;
  /** Whether there is a column of JSON text. */
  readonly hasMetadataText: boolean;
  readonly admit: Admit;
}

export async function* arrowStream(scan: Scan, options: FileOptions): AsyncGenerator<Uint8Array> {
  yield arrowSchema(scan, options);
  for await (const chunk of chunksOf(scan)) {
    await options.admit(chunk.count);
    yield* encodeBatch(chunk.count, arrowColumns(chunk));
  }
  yield encodeEnd();
}

type Chunk = RowChunk & Partial<TypedChunk>;

function chunksOf(scan: Scan): Iterable<Chunk> | AsyncIterable<Chunk> {
  return scan.typedFields.length > 0 ? scan.typedChunks() : scan.chunks();
}

/** Parquet readers hold at least one column of a group in memory, and read groups in parallel. */
export const GROUP_BYTES_MAX = 64 * 1024 * 1024;
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
  for await (const chunk of chunksOf(scan)) {
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
  const isVector = typeof field.type === 'object' && 'vectorOf' in field.type;
  return isVector && field.isNullable === true ? { ...field, type: { listOf: 'float32' } } : field;
}

function arrowSchema(scan: Scan, options: FileOptions): Uint8Array {
  return encodeSchema(arrowFields(scan, options), schemaMetadata(scan));
}

function arrowFields(scan: Scan, { includeValues, hasMetadataText }: FileOptions): FieldToWrite[] {
  const fields: FieldToWrite[] = [{ name: 'id', type: 'utf8' }];
  if (includeValues) {
    const split = splitFields(scan);
    if (split.dimension !== null) fields.push(valuesField(split.dimension));
    fields.push(...split.named.map(namedField));
    for (const { name, dimension } of split.multi) {
      const type = { vectorsOf: dimension };
      fields.push({ name: `vectors.${name}`, type, isNullable: true });
    }
    fields.push(...sparseFields(split.sparse));
  }
  if (hasMetadataText) fields.push({ name: 'metadata', type: 'utf8' });
  fields.push(...scan.typedFields.map(typedArrowField));
  return fields;
}

/** Other columns of the export, and what the prefix would make equal to another path. */
const OTHER_COLUMNS = /^(id|values|metadata|(vectors|sparse_vectors|metadata)\..*)$/s;

/** Paths that are named like another column get a prefix. */
function columnName(path: string): string {
  return OTHER_COLUMNS.test(path) ? `metadata.${path}` : path;
}

function typedArrowField({ path, type, isList }: TypedField): FieldToWrite {
  const leaf = type === 'text' || type === 'json' ? 'utf8' : type;
  return {
    name: columnName(path),
    type: isList ? { listOfNullable: leaf } : leaf,
    isNullable: true,
  };
}

function typedParquetField({ path, type, isList }: TypedField): ParquetField {
  const kind = type === 'json' ? 'text' : type;
  const name = columnName(path);
  return isList ? { kind: 'list', name, of: kind } : { kind, name, isNullable: true };
}

function valuesField(dimension: number): FieldToWrite {
  return { name: 'values', type: { vectorOf: dimension } };
}

function namedField({ name, dimension }: { name: string; dimension: number }): FieldToWrite {
  return { name: `vectors.${name}`, type: { vectorOf: dimension }, isNullable: true };
}

function arrowColumns(chunk: Chunk): ColumnToWrite[] {
  const { ids, metadata, typed = [] } = chunk;
  const { values, named, multi, sparse } = splitVectors(chunk);
  const columns: ColumnToWrite[] = [{ text: ids, from: 0 }];
  if (values !== null) columns.push({ vectors: values });
  columns.push(...named, ...multi.map((column) => ({ multi: column })));
  columns.push(...sparse.flatMap(sparseColumns));
  if (metadata !== null) columns.push({ text: metadata, from: 0 });
  return [...columns, ...typed];
}

function parquetFields(
  scan: Scan,
  { includeValues, hasMetadataText }: FileOptions,
): ParquetField[] {
  const { dimension, named } = splitFields(scan);
  const { typedFields } = scan;
  const fields: ParquetField[] = [{ kind: 'text', name: 'id' }];
  if (includeValues) {
    if (dimension !== null) fields.push({ kind: 'vector', name: 'values', dimension });
    for (const vector of named) {
      const name = `vectors.${vector.name}`;
      fields.push({ kind: 'vector', name, dimension: vector.dimension, isNullable: true });
    }
  }
  if (hasMetadataText) fields.push({ kind: 'text', name: 'metadata' });
  return [...fields, ...typedFields.map(typedParquetField)];
}

function parquetColumns(chunk: Chunk): ParquetColumn[] {
  const { ids, metadata, typed = [] } = chunk;
  const { values, named } = splitVectors(chunk);
  return [ids, values, ...named, metadata, ...typed].filter((column) => column !== null);
}

function bytesOf({ count, vectors, metadata, typed = [] }: Chunk): number {
  const textBytes = metadata === null ? 0 : metadata.offsets[count]! - metadata.offsets[0]!;
  const vectorBytes = vectors.reduce((sum, column) => sum + bytesOfRows(column, 0, count), 0);
  const typedBytes = typed.reduce((sum, column) => sum + columnBytes(column), 0);
  return textBytes + vectorBytes + typedBytes;
}

function columnBytes(column: LeafColumn | ListColumn): number {
  if ('items' in column) return column.starts.byteLength + columnBytes(column.items);
  const { leaf } = column;
  if ('words' in leaf) return leaf.words.byteLength;
  return 'offsets' in leaf ? leaf.offsets.byteLength + leaf.bytes.byteLength : leaf.byteLength;
}
