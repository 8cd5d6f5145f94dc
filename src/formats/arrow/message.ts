// Reads the metadata of Arrow IPC messages and checks it against the length of the body that it announces. The
// result is plain data, which can be sent to another thread.

import { invalidArrow } from './arrow-errors.js';
import { FlatTable } from './flat-table.js';
import { type ArrowSchema, parseSchema, readKeyValues } from './schema.js';

type Codec = 'lz4_frame' | 'zstd';

/** The layout of a body. Regions lie inside the body and do not overlap. */
export interface BodyShape {
  readonly rowCount: number;
  /** Pairs of length and null count, in the order of the schema's fields, depth first. */
  readonly nodes: Float64Array;
  /** Pairs of offset and length, one per buffer. */
  readonly regions: Float64Array;
  /** The number of data buffers of each column of views. */
  readonly variadicCounts: Float64Array;
  readonly codec: Codec | null;
}

export type ArrowMessage =
  | { readonly kind: 'schema'; readonly schema: ArrowSchema }
  | { readonly kind: 'batch'; readonly shape: BodyShape }
  | {
      readonly kind: 'dictionary';
      readonly id: number;
      readonly isDelta: boolean;
      readonly shape: BodyShape;
    };

export interface MessageHead {
  readonly bodyLength: number;
  /** Reads the rest, after the caller has accepted the length of the body. Throws `invalid_arrow`. */
  read(): ArrowMessage;
  /** Returns the key-value metadata of the message itself. */
  metadata(): ReadonlyMap<string, string>;
}

/** Metadata versions 4 (Arrow 0.8) and 5 (1.0), numbered from 0. Older versions use another layout. */
const VERSIONS = [3, 4];
const CODECS: readonly Codec[] = ['lz4_frame', 'zstd'];

/** Throws `invalid_arrow`. */
export function readMessageHead(metadata: Uint8Array): MessageHead {
  const message = FlatTable.root(metadata);
  const version = message.int16(0);
  if (!VERSIONS.includes(version)) {
    throw invalidArrow(`metadata of version ${version + 1}`, { expected: 'version 4 or 5' });
  }
  const bodyLength = message.int64(3);
  if (!(Number.isSafeInteger(bodyLength) && bodyLength >= 0)) {
    throw invalidArrow(`a body of ${bodyLength} bytes`);
  }
  return {
    bodyLength,
    read: () => readHeader(message, bodyLength, version === 3),
    metadata: () => readKeyValues(message, 4),
  };
}

function readHeader(message: FlatTable, bodyLength: number, isVersion4: boolean): ArrowMessage {
  const type = message.uint8(1);
  const header = message.table(2);
  if (header === null) throw invalidArrow('a message without a header');
  switch (type) {
    case 1: {
      if (bodyLength !== 0) throw invalidArrow(`a schema with a body of ${bodyLength} bytes`);
      const schema = parseSchema(header);
      if (isVersion4 && schema.fields.some(hasUnion)) {
        throw invalidArrow('a union in metadata of version 4', { expected: 'version 5' });
      }
      return { kind: 'schema', schema };
    }
    case 2: {
      const data = header.table(1);
      if (data === null) throw invalidArrow('a dictionary without data');
      const shape = readShape(data, bodyLength);
      return { kind: 'dictionary', id: header.int64(0), isDelta: header.bool(2), shape };
    }
    case 3:
      return { kind: 'batch', shape: readShape(header, bodyLength) };
    case 4:
    case 5:
      throw invalidArrow('a tensor', { expected: 'record batches' });
    default:
      throw invalidArrow(`a message of type ${type}`);
  }
}

function hasUnion(field: ArrowSchema['fields'][number]): boolean {
  return field.type.kind === 'union' || field.children.some(hasUnion);
}

function readShape(table: FlatTable, bodyLength: number): BodyShape {
  const rowCount = table.int64(0);
  if (!(Number.isSafeInteger(rowCount) && rowCount >= 0)) throw invalidArrow(`${rowCount} rows`);
  const nodes = readPairs(table, 1);
  for (let i = 0; i < nodes.length; i += 2) {
    const [length, nullCount] = [nodes[i]!, nodes[i + 1]!];
    if (!(length >= 0 && length <= Number.MAX_SAFE_INTEGER)) {
      throw invalidArrow(`${length} values in column ${i / 2}`);
    }
    if (!(nullCount >= 0 && nullCount <= length)) {
      throw invalidArrow(`${nullCount} nulls among ${length} values in column ${i / 2}`);
    }
  }
  const regions = readPairs(table, 2);
  let total = 0;
  for (let i = 0; i < regions.length; i += 2) {
    const [offset, length] = [regions[i]!, regions[i + 1]!];
    if (!(offset >= 0 && length >= 0 && offset + length <= bodyLength)) {
      throw invalidArrow(
        `buffer ${i / 2} at bytes ${offset} to ${offset + length} of a body of ${bodyLength} bytes`,
      );
    }
    total += length;
  }
  // Without this check, ten thousand columns could each read the same bytes.
  if (total > bodyLength) {
    throw invalidArrow(`buffers of ${total} bytes in a body of ${bodyLength}: they overlap`);
  }
  return {
    rowCount,
    nodes,
    regions,
    variadicCounts: readCounts(table, 4),
    codec: readCodec(table),
  };
}

function readPairs(table: FlatTable, index: number): Float64Array {
  const { count, at } = table.structs(index, 16);
  return Float64Array.from({ length: count * 2 }, (_, i) => table.int64At(at + i * 8));
}

function readCounts(table: FlatTable, index: number): Float64Array {
  const { count, at } = table.structs(index, 8);
  return Float64Array.from({ length: count }, (_, i) => table.int64At(at + i * 8));
}

function readCodec(table: FlatTable): Codec | null {
  const compression = table.table(3);
  if (compression === null) return null;
  const codec = CODECS[compression.uint8(0)];
  if (codec === undefined || compression.uint8(1) !== 0) {
    throw invalidArrow(`compression ${compression.uint8(0)}`, {
      expected: 'lz4_frame or zstd, applied to each buffer',
    });
  }
  return codec;
}
