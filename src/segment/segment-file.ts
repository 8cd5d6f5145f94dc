// Sealed segments as Arrow IPC files, which pyarrow, Polars and DuckDB can open. A file holds one record batch with the
// columns of rows (row-columns.ts) and of their metadata (metadata-fields.ts), followed by the codes of rows, which
// Arrow readers do not see.

import { Schema } from 'apache-arrow';
import { KIND } from '../common/columns.js';
import { blocksUnavailableError } from '../common/errors.js';
import { collectGarbage } from '../common/garbage.js';
import { sharedBytes, sharedInt32 } from '../common/shared-array.js';
import {
  CODE_NAMES,
  type FileMapping,
  type KeptParts,
  type RowCodes,
  type Utf8Column,
} from '../common/types.js';
import type { Named } from '../common/vectors.js';
import { corrupt, readingStored } from '../formats/arrow/arrow-errors.js';
import {
  type ByteLayout,
  encodeBody,
  FILE_ALIGNMENT,
  layOutArrowFile,
  toField,
} from '../formats/arrow/ipc-writer.js';
import { decodeArrowFile, expectFields, type StoredFile } from '../formats/arrow/stored-arrow.js';
import {
  BLOCK_BYTES,
  type BlockRange,
  blockCountOf,
  blockDigests,
  digestOfBlocks,
} from '../platform/blocks.js';
import { checksumOf } from '../platform/crc32.js';
import type { Task } from '../platform/pool.js';
import { StoredMetadata } from './metadata-fields.js';
import { readMetadataColumns } from './metadata-reader.js';
import { RowColumns } from './row-columns.js';
import { Segment } from './segment.js';
import type { SegmentData, SegmentIdentity } from './segment-data.js';

/** If the values are at least this large, freeing the buffers of a segment is worth a garbage collection. */
const COLLECTED_BYTES_MIN = 4 * 1024 * 1024;

const FORMAT = 'segment 2';
const FORMAT_KEY = 'sagitta.format';
const ROW_COUNT_KEY = 'sagitta.row_count';
/** Documents the numbers in `kind.…` fields for other readers. */
const KINDS_KEY = 'sagitta.kinds';
/** JSON: the description of the codes of each vector, or null. Their arrays follow the batch in this order. */
const CODES_KEY = 'sagitta.codes';
const IS_COMPLETE_KEY = 'sagitta.columns_complete';

/** A file whose bytes are to be verified. */
export interface StoredSegment {
  /** The whole file. */
  readonly bytes: Uint8Array;
  /** The checksum of the whole file. */
  readonly checksum: string;
  /** If given, only these parts are verified, by their own checksum. */
  readonly kept?: KeptParts | null;
}

interface CodesDescription {
  readonly encoding: string;
  readonly byteLengths: readonly number[];
}

/** A file in pieces. The large ones are the segment's own arrays, which no longer change. */
interface SegmentParts {
  readonly parts: readonly Uint8Array[];
  readonly byteLength: number;
  readonly checksum: string;
  /** The digests of the blocks, and that of the file by them (`digestOfBlocks`); null unless asked for. */
  readonly blockDigests: Uint8Array | null;
  readonly digest: string | null;
  /** The blocks that a node keeps of a file whose vectors are on other nodes. */
  readonly kept: readonly BlockRange[];
}

interface SegmentToEncode {
  readonly data: SegmentData;
  /** The digest takes about as long as writing the file to a fast disk. */
  readonly hasDigest: boolean;
}

function layOutSegment(data: SegmentData): ByteLayout {
  const { rowCount, vectors } = data;
  const columns = new RowColumns(vectors, { hasSequences: true });
  const metadata = new StoredMetadata(data.columns, rowCount);
  const schema = new Schema(
    [...columns.fields.map(toField), ...metadata.fields],
    new Map([
      [FORMAT_KEY, FORMAT],
      [ROW_COUNT_KEY, String(rowCount)],
      [IS_COMPLETE_KEY, String(data.isComplete)],
      [KINDS_KEY, JSON.stringify(KIND)],
      [CODES_KEY, JSON.stringify(vectors.map(({ codes }) => describeCodes(codes)))],
      ...columns.metadata,
    ]),
  );
  return layOutArrowFile({
    schema,
    rowCount,
    body: encodeBody([...columns.write(data), ...metadata.columns], rowCount, FILE_ALIGNMENT),
    dictionaries: metadata.dictionaries,
    attachments: vectors.flatMap(({ codes }) => arraysOf(codes)),
  });
}

function describeCodes(codes: RowCodes | null): CodesDescription | null {
  if (codes === null) return null;
  const byteLengths = arraysOf(codes).map(({ byteLength }) => byteLength);
  return { encoding: codes.encoding, byteLengths };
}

/**
 * The arrays that only the search by vectors reads row by row, and what is read only for the rows of an answer. All
 * others, with ids, sequences and the columns of metadata, take part in every read.
 */
function wideArraysOf({ vectors, json }: SegmentData): Uint8Array[] {
  const values = vectors.flatMap((column) => {
    if (column.kind !== 'dense') return [];
    const basis = column.codes?.basis;
    // A basis is copied when the file is loaded.
    const codes = arraysOf(column.codes).filter((array) => array !== basis);
    return [asBytes(column.values), ...codes];
  });
  return [...values, json.bytes];
}

/** The blocks of a file with any bytes but those of the given arrays, and of gaps. */
function blocksBeside(layout: ByteLayout, arrays: readonly Uint8Array[]): BlockRange[] {
  const kept: { first: number; count: number }[] = [];
  for (const { from, to } of layout.placesBeside(arrays)) {
    const first = Math.floor(from / BLOCK_BYTES);
    const end = blockCountOf(to);
    const last = kept.at(-1);
    if (last === undefined || first > last.first + last.count)
      kept.push({ first, count: end - first });
    else last.count = Math.max(last.count, end - last.first);
  }
  return kept;
}

function asBytes({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Returns the arrays of codes in the order of files; empty if codes of this dimension lack the array. */
function arraysOf(codes: RowCodes | null): Uint8Array[] {
  return codes === null ? [] : CODE_NAMES.map((name) => codes[name] ?? new Uint8Array());
}

/**
 * Decodes a sealed segment, which keeps using `bytes`, those of `mapping` if given. The checksum is verified
 * elsewhere, before an answer depends on it. This function checks every length, offset and index, so that no
 * file causes reads out of bounds. Throws `data_corrupt` with the cause, to which the caller adds the file name, and
 * `collection_unavailable`.
 */
export function decodeSegment(
  bytes: Uint8Array,
  identity: SegmentIdentity,
  mapping: FileMapping | null = null,
): Segment {
  const data = readingStored('a segment file', () => decodeData(inPlace(bytes), identity));
  if (mapping?.failure === 'unavailable') throw blocksUnavailableError(identity.key);
  if (mapping?.failure === 'damaged') {
    throw corrupt('a segment file that was cut, or that the disk cannot read');
  }
  return Segment.fromData(data, mapping);
}

/** Encodes on a worker, without copying shared memory. */
export const encodeSegmentTask: Task<SegmentToEncode, SegmentParts> = {
  name: 'segment.encode',
  run({ data, hasDigest }) {
    // Without it, this thread would retain the buffers of the segments that it encoded before.
    const isLarge = data.vectors.some(({ values }) => values.byteLength >= COLLECTED_BYTES_MIN);
    if (isLarge) collectGarbage();
    const layout = layOutSegment(data);
    const parts = layout.toChunks();
    const digests = hasDigest ? blockDigests(parts) : null;
    return {
      parts,
      byteLength: layout.length,
      checksum: checksumOf(parts),
      blockDigests: digests,
      digest: digests && digestOfBlocks(digests),
      kept: blocksBeside(layout, wideArraysOf(data)),
    };
  },
};

/**
 * Verifies a checksum on a worker. Checksums detect damage, not forgery; CRC-32 is several times faster than a disk. Throws
 * `data_corrupt`.
 */
export const verifySegmentTask: Task<StoredSegment, void> = {
  name: 'segment.verify',
  run({ bytes, checksum, kept }) {
    const parts = kept?.ranges.map(({ begin, end }) => bytes.subarray(begin, end)) ?? [bytes];
    const expected = kept?.checksum ?? checksum;
    const found = checksumOf(parts);
    if (found === expected) return;
    const byteCount = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
    throw corrupt(`the checksum ${found} over ${byteCount} bytes`, { expected });
  },
};

function decodeData(bytes: Uint8Array, { key, number }: SegmentIdentity): SegmentData {
  const file = decodeArrowFile(bytes);
  const { schema, rowCount, columns } = file;
  const format = schema.metadata.get(FORMAT_KEY) ?? 'of another program';
  if (format !== FORMAT) throw corrupt(`the format ${format}`, { expected: FORMAT });
  const declaredRowCount = schema.metadata.get(ROW_COUNT_KEY);
  if (String(rowCount) !== declaredRowCount) {
    throw corrupt(`${rowCount} rows in a file of ${declaredRowCount}`);
  }
  const expected = RowColumns.of(schema, { hasSequences: true });
  const { length } = expected.fields;
  expectFields(schema.fields.slice(0, length), expected.fields);
  const rows = expected.read(columns.slice(0, length));
  const codes = readCodes(file, rows.vectors.length);
  return {
    key,
    number,
    rowCount,
    vectors: rows.vectors.map((column, i) => ({ ...withOwnStarts(column), codes: codes[i]! })),
    ids: withOwnOffsets(rows.ids),
    json: withOwnOffsets(rows.json),
    insertedSequences: rows.insertedSequences!,
    deletedSequences: null,
    columns: readMetadataColumns(
      columns.slice(length),
      schema.fieldMetadata.slice(length),
      rowCount,
    ),
    isComplete: schema.metadata.get(IS_COMPLETE_KEY) === 'true',
  };
}

/** Native code follows offsets without checks, so they must not change when the file is damaged later. */
function withOwnOffsets({ offsets, bytes }: Utf8Column): Utf8Column {
  return { offsets: copyOf(offsets), bytes };
}

/** The starts of lists are copied too, because code fills arrays by them. */
function withOwnStarts(column: Named): Named {
  return column.kind === 'dense' ? column : { ...column, starts: copyOf(column.starts) };
}

function copyOf(offsets: Int32Array): Int32Array {
  const own = sharedInt32(offsets.length);
  own.set(offsets);
  return own;
}

/**
 * Returns the stored codes of each vector. The segment decides whether it can use them. Bases are copied, because an
 * encoder checks them once, after which they must not change. Throws `data_corrupt`.
 */
function readCodes({ schema, attachments }: StoredFile, vectorCount: number): (RowCodes | null)[] {
  const text = schema.metadata.get(CODES_KEY);
  const described = JSON.parse(text ?? 'null') as readonly (CodesDescription | null)[] | null;
  if (described?.length !== vectorCount || !described.every(isDescription)) {
    throw corrupt(`the codes ${text}`, {
      expected: `encodings and lengths for ${vectorCount} vectors`,
    });
  }
  const arrays = attachments(described.flatMap((codes) => codes?.byteLengths ?? []));
  const orNull = (bytes: Uint8Array) => (bytes.length === 0 ? null : bytes);
  let next = 0;
  return described.map((codes) => {
    if (codes === null) return null;
    const [tiles, coarse, refinement, basis, head] = arrays.slice(next, next + CODE_NAMES.length);
    next += CODE_NAMES.length;
    return {
      encoding: codes.encoding,
      tiles: tiles!,
      coarse: orNull(coarse!),
      refinement: orNull(refinement!),
      basis: basis!.length === 0 ? null : sharedCopyOf(basis!),
      head: orNull(head!),
    };
  });
}

function isDescription(codes: Partial<CodesDescription> | null): boolean {
  if (codes === null) return true;
  return typeof codes.encoding === 'string' && codes.byteLengths?.length === CODE_NAMES.length;
}

/** Returns the bytes themselves if they are shared and aligned, otherwise a copy that is. */
function inPlace(bytes: Uint8Array): Uint8Array {
  const isShared = bytes.buffer instanceof SharedArrayBuffer;
  if (isShared && bytes.byteOffset % FILE_ALIGNMENT === 0) {
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  return sharedCopyOf(bytes);
}

function sharedCopyOf(bytes: Uint8Array): Uint8Array {
  const copy = sharedBytes(bytes.byteLength);
  copy.set(bytes);
  return copy;
}
