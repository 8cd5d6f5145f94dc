// Sealed segments as Arrow IPC files, which pyarrow, Polars and DuckDB can open. One record batch: `id`
// utf8, `values` fixed_size_list<float>[dimension] if there is an unnamed vector, `metadata` utf8 (as sent),
// `inserted_sequence` int64, a `vectors.<name>` like `values` but with nulls for each named vector, lists of
// them for multi-vectors, sparse vectors (sparse-columns.ts), metadata (metadata-fields.ts); then codes of rows.

import { Schema } from 'apache-arrow';
import { KIND } from '../common/columns.js';
import { collectGarbage } from '../common/garbage.js';
import { sharedBytes, sharedFloat64, sharedInt32 } from '../common/shared-array.js';
import {
  CODE_NAMES,
  type FileMapping,
  type NamedMulti,
  type RowCodes,
  type Utf8Column,
} from '../common/types.js';
import { corrupt, readingStored } from '../formats/arrow/arrow-errors.js';
import type { Column } from '../formats/arrow/columns.js';
import {
  BodyWriter,
  FILE_ALIGNMENT,
  type Layout,
  layOutArrowFile,
  toField,
} from '../formats/arrow/ipc-writer.js';
import { decodeArrowFile, expectFields, type StoredFile } from '../formats/arrow/stored-arrow.js';
import { readUtf8 } from '../formats/arrow/strings.js';
import type { Task } from '../platform/pool.js';
import { checksumOf, verifyChecksum } from './checksum.js';
import { MetadataFields } from './metadata-fields.js';
import { readMetadataColumns } from './metadata-reader.js';
import { type MultiShape, readMulti } from './multi-columns.js';
import { bitmapOfValidity, columnOfName, readValues } from './named-columns.js';
import { type RowShape, rowColumns, rowFields, writeRows } from './row-columns.js';
import { Segment } from './segment.js';
import type { NamedColumn, SegmentData, SegmentIdentity } from './segment-data.js';
import { readSparse } from './sparse-columns.js';

/** From this size of the values on, the buffers of a segment are worth a garbage collection. */
const COLLECTED_BYTES_MIN = 4 * 1024 * 1024;

const FORMAT = 'segment 2';
/** Of files with named vectors, which earlier versions cannot read. */
const NAMED_FORMAT = 'segment 3';
/** Of files without the unnamed vector, which versions that read named vectors only cannot read. */
const NO_VALUES_FORMAT = 'segment 4';
/** Of files with sparse vectors, with or without the others. */
const SPARSE_FORMAT = 'segment 5';
/** Of files with multi-vectors, with or without the others. */
const MULTI_FORMAT = 'segment 6';
/** Of files that may lack the unnamed vector. */
const FORMATS_WITHOUT_VALUES = [NO_VALUES_FORMAT, SPARSE_FORMAT, MULTI_FORMAT];
/** Files of the first format have no codes. */
const FORMATS_READ = ['segment 1', FORMAT, NAMED_FORMAT, ...FORMATS_WITHOUT_VALUES];
const FORMAT_KEY = 'sagitta.format';
/** Of the unnamed vector; 0 without it. */
const DIMENSION_KEY = 'sagitta.dimension';
const ROW_COUNT_KEY = 'sagitta.row_count';
/** Documents the numbers in `kind.…` fields for other readers. */
const KINDS_KEY = 'sagitta.kinds';
/** JSON: the encoding of the codes and the bytes of their arrays, which follow the batch in this order. */
const CODES_KEY = 'sagitta.codes';
/** JSON: the named vectors in the order of their columns, each with the description of its codes or null. */
const NAMED_KEY = 'sagitta.vectors';
/** JSON: the names of the sparse vectors in the order of their columns. */
const SPARSE_KEY = 'sagitta.sparse_vectors';
/** JSON: the multi-vectors in the order of their columns. */
const MULTI_KEY = 'sagitta.multi_vectors';
const IS_COMPLETE_KEY = 'sagitta.columns_complete';

interface EncodedSegment {
  /** The whole file. */
  readonly bytes: Uint8Array;
  /** For `verifyChecksum`. */
  readonly checksum: string;
}

/** The value of CODES_KEY. */
interface CodesDescription {
  readonly encoding: string;
  readonly byteLengths: readonly number[];
}

/** An element of the value of NAMED_KEY. */
interface NamedDescription {
  readonly name: string;
  readonly dimension: number;
  readonly codes: CodesDescription | null;
}

/** A file in parts; the large parts are the segment's own arrays, which no longer change. */
interface SegmentParts {
  readonly parts: readonly Uint8Array[];
  readonly byteLength: number;
  readonly checksum: string;
}

function layOutSegment(data: SegmentData): Layout {
  const { dimension, rowCount, named, multi, sparse } = data;
  const sparseNames = sparse.map(({ name }) => name);
  const columns = columnsOf({ dimension, named, multi, sparse: sparseNames });
  const metadata = new MetadataFields(data.columns, rowCount);
  const schema = new Schema(
    [...rowFields(columns).map(toField), ...metadata.fields],
    new Map([
      [FORMAT_KEY, formatOf(data)],
      [DIMENSION_KEY, String(dimension)],
      [ROW_COUNT_KEY, String(rowCount)],
      [IS_COMPLETE_KEY, String(data.isComplete)],
      [KINDS_KEY, JSON.stringify(KIND)],
      ...described(CODES_KEY, describeCodes(data.codes)),
      ...described(NAMED_KEY, named.length === 0 ? null : named.map(describeNamed)),
      ...described(SPARSE_KEY, sparse.length === 0 ? null : sparseNames),
      ...described(MULTI_KEY, multi.length === 0 ? null : multi.map(describeMulti)),
    ]),
  );
  const body = new BodyWriter(FILE_ALIGNMENT);
  writeRows(columns, body, {
    ...data,
    count: rowCount,
    values: data.values.subarray(0, rowCount * dimension),
    metadata: data.json,
  });
  metadata.write(body);
  return layOutArrowFile({
    schema,
    rowCount,
    body,
    dictionaries: metadata.dictionaries,
    attachments: [data, ...named].flatMap(({ codes }) => arraysOf(codes)),
  });
}

function formatOf({ dimension, named, multi, sparse }: SegmentData): string {
  if (multi.length > 0) return MULTI_FORMAT;
  if (sparse.length > 0) return SPARSE_FORMAT;
  if (dimension === 0) return NO_VALUES_FORMAT;
  return named.length === 0 ? FORMAT : NAMED_FORMAT;
}

/** The entry of the schema's metadata; none for null. */
function described(key: string, value: unknown): [string, string][] {
  return value === null ? [] : [[key, JSON.stringify(value)]];
}

function describeCodes(codes: RowCodes | null): CodesDescription | null {
  if (codes === null) return null;
  const byteLengths = arraysOf(codes).map(({ byteLength }) => byteLength);
  return { encoding: codes.encoding, byteLengths };
}

function describeNamed({ name, dimension, codes }: NamedColumn): NamedDescription {
  return { name, dimension, codes: describeCodes(codes) };
}

/** All arrays in the order of files; empty ones for those that the dimension does not have. */
function arraysOf(codes: RowCodes | null): Uint8Array[] {
  return codes === null ? [] : CODE_NAMES.map((name) => codes[name] ?? new Uint8Array());
}

function describeMulti({ name, dimension }: NamedMulti): MultiShape {
  return { name, dimension };
}

/**
 * Decodes a sealed segment, which uses and keeps `bytes`, those of `mapping` if there is one. The checksum
 * is verified elsewhere, before an answer depends on it; this function checks every length, offset and
 * index, so that no file causes reads out of bounds. Throws `data_corrupt` with the cause; the caller adds
 * the file name.
 */
export function decodeSegment(
  bytes: Uint8Array,
  identity: SegmentIdentity & { readonly dimension?: number },
  mapping: FileMapping | null = null,
): Segment {
  const data = readingStored('a segment file', () => decodeData(inPlace(bytes), identity));
  if (mapping?.isDamaged)
    throw corrupt('a segment file that was cut, or that the disk cannot read');
  return Segment.fromData(data, mapping);
}

/** Encodes on a worker without copying shared memory. */
export const encodeSegmentTask: Task<SegmentData, SegmentParts> = {
  name: 'segment.encode',
  run(data) {
    // Otherwise this thread would keep the buffers of segments that it encoded before.
    if (data.values.byteLength >= COLLECTED_BYTES_MIN) collectGarbage();
    const layout = layOutSegment(data);
    const parts = layout.toChunks();
    return { parts, byteLength: layout.length, checksum: checksumOf(parts) };
  },
};

/** Verifies a checksum on a worker. Throws `data_corrupt`. */
export const verifySegmentTask: Task<EncodedSegment, void> = {
  name: 'segment.verify',
  run: ({ bytes, checksum }) => verifyChecksum(bytes, checksum),
};

function decodeData(
  bytes: Uint8Array,
  identity: SegmentIdentity & { readonly dimension?: number },
): SegmentData {
  const file = decodeArrowFile(bytes);
  const { schema, rowCount, columns } = file;
  const format = schema.metadata.get(FORMAT_KEY) ?? 'of another program';
  if (!FORMATS_READ.includes(format)) {
    throw corrupt(`the format ${format}, expected one of ${FORMATS_READ.join(', ')}`);
  }
  const dimension = Number(schema.metadata.get(DIMENSION_KEY));
  const dimensionMin = FORMATS_WITHOUT_VALUES.includes(format) ? 0 : 1;
  if (!(Number.isInteger(dimension) && dimension >= dimensionMin)) {
    throw corrupt(`the dimension ${dimension}`);
  }
  if (identity.dimension !== undefined && identity.dimension !== dimension) {
    throw corrupt(`the dimension ${dimension}, expected ${identity.dimension}`);
  }
  const rowCountSaid = schema.metadata.get(ROW_COUNT_KEY);
  if (String(rowCount) !== rowCountSaid) {
    throw corrupt(`${rowCount} rows in a file of ${rowCountSaid}`);
  }
  const named = readNamedDescriptions(file);
  const multi = readMultiShapes(file);
  const sparseNames = readSparseNames(file);
  const fixed = rowFields(columnsOf({ dimension, named, multi, sparse: sparseNames }));
  expectFields(schema.fields.slice(0, fixed.length), fixed);
  const byName = new Map(fixed.map(({ name }, i) => [name, columns[i]!]));
  const codes = readCodes(file, [
    readDescription(schema.metadata.get(CODES_KEY)),
    ...named.map((vector) => vector.codes),
  ]);
  return {
    key: identity.key,
    number: identity.number,
    dimension,
    rowCount,
    values: readValues(byName.get('values'), rowCount * dimension),
    named: named.map((vector, i) => {
      return readNamed(vector, byName.get(columnOfName(vector.name))!, codes[i + 1]!);
    }),
    multi: multi.map((shape) => {
      return withOwnStarts(readMulti(shape, byName.get(columnOfName(shape.name))!));
    }),
    sparse: sparseNames.map((name) => withOwnStarts(readSparse(name, byName))),
    ids: withOwnOffsets(readUtf8(byName.get('id')!)),
    json: withOwnOffsets(readUtf8(byName.get('metadata')!)),
    insertedSequences: readSequences(byName.get('inserted_sequence')!),
    deletedSequences: null,
    columns: readMetadataColumns(
      columns.slice(fixed.length),
      schema.fieldMetadata.slice(fixed.length),
      rowCount,
    ),
    codes: codes[0]!,
    isComplete: schema.metadata.get(IS_COMPLETE_KEY) === 'true',
  };
}

/** Native code follows offsets without checks, so they must not change with a damaged file. */
function withOwnOffsets({ offsets, bytes }: Utf8Column): Utf8Column {
  return { offsets: copyOf(offsets), bytes };
}

/** The same for code that fills arrays by them. */
function withOwnStarts<Column extends { readonly starts: Int32Array }>(column: Column): Column {
  return { ...column, starts: copyOf(column.starts) };
}

function copyOf(offsets: Int32Array): Int32Array {
  const own = sharedInt32(offsets.length);
  own.set(offsets);
  return own;
}

/** Throws `data_corrupt`. */
function readSparseNames({ schema }: StoredFile): readonly string[] {
  const text = schema.metadata.get(SPARSE_KEY);
  if (text === undefined) return [];
  const names = JSON.parse(text) as unknown;
  if (Array.isArray(names) && names.every((name) => typeof name === 'string')) return names;
  throw corrupt(`the sparse vectors ${text}, expected names`);
}

/** Throws `data_corrupt`. */
function readNamedDescriptions({ schema }: StoredFile): readonly NamedDescription[] {
  const text = schema.metadata.get(NAMED_KEY);
  if (text === undefined) return [];
  const named = JSON.parse(text) as readonly NamedDescription[];
  for (const { name, dimension, codes } of named) {
    const isKnown = typeof name === 'string' && Number.isInteger(dimension) && dimension > 0;
    if (!isKnown) throw corrupt(`the named vectors ${text}, expected names and dimensions`);
    checkDescription(codes, text);
  }
  return named;
}

/** Throws `data_corrupt`. */
function readMultiShapes({ schema }: StoredFile): readonly MultiShape[] {
  const text = schema.metadata.get(MULTI_KEY);
  if (text === undefined) return [];
  const multi = JSON.parse(text) as readonly MultiShape[];
  for (const { name, dimension } of multi) {
    const isKnown = typeof name === 'string' && Number.isInteger(dimension) && dimension > 0;
    if (!isKnown) throw corrupt(`the multi-vectors ${text}, expected names and dimensions`);
  }
  return multi;
}

function readDescription(text: string | undefined): CodesDescription | null {
  if (text === undefined) return null;
  const description = JSON.parse(text) as CodesDescription;
  checkDescription(description, text);
  return description;
}

function checkDescription(codes: Partial<CodesDescription> | null, text: string): void {
  if (codes === null) return;
  if (typeof codes.encoding === 'string' && codes.byteLengths?.length === CODE_NAMES.length) return;
  throw corrupt(`the description of codes ${text}, expected an encoding and three lengths`);
}

/** The codes of each vector as stored; the segment decides whether they can be used. */
function readCodes(
  { attachments }: StoredFile,
  descriptions: readonly (CodesDescription | null)[],
): (RowCodes | null)[] {
  const arrays = attachments(descriptions.flatMap((codes) => codes?.byteLengths ?? []));
  const orNull = (bytes: Uint8Array) => (bytes.length === 0 ? null : bytes);
  let next = 0;
  return descriptions.map((codes) => {
    if (codes === null) return null;
    const [tiles, coarse, refinement] = arrays.slice(next, next + CODE_NAMES.length);
    next += CODE_NAMES.length;
    return {
      encoding: codes.encoding,
      tiles: tiles!,
      coarse: orNull(coarse!),
      refinement: orNull(refinement!),
    };
  });
}

function readNamed(
  { name, dimension }: NamedDescription,
  column: Column,
  codes: RowCodes | null,
): NamedColumn {
  const { length, validity } = column;
  const values = column.children[0]!.buffer(0, Float32Array, length * dimension);
  return { name, dimension, values, codes, presence: bitmapOfValidity(validity, length) };
}

function columnsOf(vectors: Omit<RowShape, 'hasSequences'>) {
  return rowColumns({ ...vectors, hasSequences: true });
}

function readSequences(column: Column): Float64Array {
  const words = column.buffer(0, Uint32Array, column.length * 2);
  const sequences = sharedFloat64(column.length);
  let previous = 0;
  for (let row = 0; row < sequences.length; row++) {
    const sequence = words[row * 2 + 1]! * 2 ** 32 + words[row * 2]!;
    if (sequence < previous || sequence > Number.MAX_SAFE_INTEGER) {
      throw corrupt(`the sequence ${sequence} after ${previous}`);
    }
    sequences[row] = sequence;
    previous = sequence;
  }
  return sequences;
}

/** The bytes themselves if they are shared and aligned, else a copy that is. */
function inPlace(bytes: Uint8Array): Uint8Array {
  const isShared = bytes.buffer instanceof SharedArrayBuffer;
  if (isShared && bytes.byteOffset % FILE_ALIGNMENT === 0) {
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  const copy = sharedBytes(bytes.byteLength);
  copy.set(bytes);
  return copy;
}
