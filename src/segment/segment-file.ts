// Sealed segments as Arrow IPC files, which pyarrow, Polars and DuckDB can open. One record batch: `id`
// utf8, `values` fixed_size_list<float>[dimension], `metadata` utf8 (the JSON as sent),
// `inserted_sequence` int64, then metadata as typed columns (see metadata-fields.ts); and after the batch
// the codes of the rows. A loaded segment uses the buffers in place.

import { Schema } from 'apache-arrow';
import { KIND } from '../common/columns.js';
import { collectGarbage } from '../common/garbage.js';
import { CODE_NAMES, type FileMapping, type RowCodes, type Utf8Column } from '../common/types.js';
import { corrupt, readingStored } from '../formats/arrow/arrow-errors.js';
import type { Column } from '../formats/arrow/columns.js';
import {
  BodyWriter,
  FILE_ALIGNMENT,
  type FieldToWrite,
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
import { Segment } from './segment.js';
import type { SegmentData, SegmentIdentity } from './segment-data.js';
import { sharedBytes, sharedFloat64, sharedInt32 } from './shared-arrays.js';

/** From this size of the values on, the buffers of a segment are worth a garbage collection. */
const COLLECTED_BYTES_MIN = 4 * 1024 * 1024;

const FORMAT = 'segment 2';
/** Files of the first format have no codes. */
const FORMATS_READ = ['segment 1', FORMAT];
const FORMAT_KEY = 'sagitta.format';
const DIMENSION_KEY = 'sagitta.dimension';
const ROW_COUNT_KEY = 'sagitta.row_count';
/** Documents the numbers in `kind.…` fields for other readers. */
const KINDS_KEY = 'sagitta.kinds';
/** JSON: the encoding of the codes and the bytes of their arrays, which follow the batch in this order. */
const CODES_KEY = 'sagitta.codes';
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

/** A file in parts; the large parts are the segment's own arrays, which no longer change. */
interface SegmentParts {
  readonly parts: readonly Uint8Array[];
  readonly byteLength: number;
  readonly checksum: string;
}

function layOutSegment(data: SegmentData): Layout {
  const { dimension, rowCount } = data;
  const metadata = new MetadataFields(data.columns, rowCount);
  const schema = new Schema(
    [...fixedFields(dimension).map(toField), ...metadata.fields],
    new Map([
      [FORMAT_KEY, FORMAT],
      [DIMENSION_KEY, String(dimension)],
      [ROW_COUNT_KEY, String(rowCount)],
      [IS_COMPLETE_KEY, String(data.isComplete)],
      [KINDS_KEY, JSON.stringify(KIND)],
      ...describeCodes(data.codes),
    ]),
  );
  const body = new BodyWriter(FILE_ALIGNMENT);
  body.utf8(data.ids, 0, rowCount);
  body.node(rowCount);
  body.noNulls();
  body.node(rowCount * dimension);
  body.noNulls();
  body.buffer(data.values.subarray(0, rowCount * dimension));
  body.utf8(data.json, 0, rowCount);
  body.node(rowCount);
  body.noNulls();
  body.buffer(int64Of(data.insertedSequences));
  metadata.write(body);
  return layOutArrowFile({
    schema,
    rowCount,
    body,
    dictionaries: metadata.dictionaries,
    attachments: arraysOf(data.codes),
  });
}

function describeCodes(codes: RowCodes | null): [string, string][] {
  if (codes === null) return [];
  const description: CodesDescription = {
    encoding: codes.encoding,
    byteLengths: arraysOf(codes).map(({ byteLength }) => byteLength),
  };
  return [[CODES_KEY, JSON.stringify(description)]];
}

/** All arrays in the order of files; empty ones for those that the dimension does not have. */
function arraysOf(codes: RowCodes | null): Uint8Array[] {
  return codes === null ? [] : CODE_NAMES.map((name) => codes[name] ?? new Uint8Array());
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
  if (!(Number.isInteger(dimension) && dimension > 0)) throw corrupt(`the dimension ${dimension}`);
  if (identity.dimension !== undefined && identity.dimension !== dimension) {
    throw corrupt(`the dimension ${dimension}, expected ${identity.dimension}`);
  }
  const rowCountSaid = schema.metadata.get(ROW_COUNT_KEY);
  if (String(rowCount) !== rowCountSaid) {
    throw corrupt(`${rowCount} rows in a file of ${rowCountSaid}`);
  }
  const fixed = fixedFields(dimension);
  expectFields(schema.fields.slice(0, fixed.length), fixed);
  const [ids, vectors, json, sequences] = columns;
  return {
    key: identity.key,
    number: identity.number,
    dimension,
    rowCount,
    values: vectors!.children[0]!.buffer(0, Float32Array, rowCount * dimension),
    ids: withOwnOffsets(readUtf8(ids!)),
    json: withOwnOffsets(readUtf8(json!)),
    insertedSequences: readSequences(sequences!),
    deletedSequences: null,
    columns: readMetadataColumns(
      columns.slice(fixed.length),
      schema.fieldMetadata.slice(fixed.length),
      rowCount,
    ),
    codes: readCodes(file),
    isComplete: schema.metadata.get(IS_COMPLETE_KEY) === 'true',
  };
}

/** Native code follows offsets without checks, so they must not change with a damaged file. */
function withOwnOffsets({ offsets, bytes }: Utf8Column): Utf8Column {
  const own = sharedInt32(offsets.length);
  own.set(offsets);
  return { offsets: own, bytes };
}

/** The codes as stored; the segment decides whether they can be used. */
function readCodes({ schema, attachments }: StoredFile): RowCodes | null {
  const text = schema.metadata.get(CODES_KEY);
  if (text === undefined) return null;
  const { encoding, byteLengths } = JSON.parse(text) as Partial<CodesDescription>;
  if (typeof encoding !== 'string' || byteLengths?.length !== CODE_NAMES.length) {
    throw corrupt(`the description of codes ${text}, expected an encoding and three lengths`);
  }
  const [tiles, coarse, refinement] = attachments(byteLengths);
  const orNull = (bytes: Uint8Array) => (bytes.length === 0 ? null : bytes);
  return { encoding, tiles: tiles!, coarse: orNull(coarse!), refinement: orNull(refinement!) };
}

function fixedFields(dimension: number): FieldToWrite[] {
  return [
    { name: 'id', type: 'utf8' },
    { name: 'values', type: { vectorOf: dimension } },
    { name: 'metadata', type: 'utf8' },
    { name: 'inserted_sequence', type: 'int64' },
  ];
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

/** int64 as little-endian pairs of words. A BigInt64Array would create an object per row. */
function int64Of(sequences: Float64Array): Uint32Array {
  const words = new Uint32Array(sequences.length * 2);
  for (let row = 0; row < sequences.length; row++) {
    words[row * 2] = sequences[row]! % 2 ** 32;
    words[row * 2 + 1] = Math.floor(sequences[row]! / 2 ** 32);
  }
  return words;
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
