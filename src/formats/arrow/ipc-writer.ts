// Writes Arrow IPC: files of one batch for segments, streams of one batch for log records, and streams of many
// batches for replies and uploads. The buffers of columns are written without a copy and may exceed 2 GiB in total,
// so they must not change until they are written. apache-arrow encodes the metadata around them (schema, messages,
// footer).

import {
  Bool,
  type DataType,
  Field,
  FixedSizeList,
  Float16,
  Float32,
  Float64,
  Int8,
  Int32,
  Int64,
  List,
  MetadataVersion,
  Schema,
  Uint16,
  Uint32,
  Utf8,
} from 'apache-arrow';
import { FileBlock, Footer } from 'apache-arrow/ipc/metadata/file';
import {
  BufferRegion,
  DictionaryBatch,
  FieldNode,
  Message,
  RecordBatch,
} from 'apache-arrow/ipc/metadata/message';
import { type Bitmap, bitmapBytes, countBits, createBitmap, setBit } from '../../common/bitmap.js';
import type { LeafColumn, ListColumn } from '../../common/columns.js';
import { ELEMENTS, type ElementType } from '../../common/elements.js';
import { type MultiColumn, valuesOfRows } from '../../common/vectors.js';
import { CONTINUATION, END_OF_STREAM, FILE_MAGIC, PREFIX_BYTES } from './framing.js';

/** Smaller buffers are copied into shared chunks, because a chunk of their own would cost more than the copy. */
const CHUNK_BYTES_MIN = 16_384;

/** Bytes to write at given offsets. The gaps between them are zeros. */
export class ByteLayout {
  length = 0;
  readonly #regions: { readonly at: number; readonly bytes: Uint8Array }[] = [];

  add(view: ArrayBufferView): void {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    this.#regions.push({ at: this.length, bytes });
    this.length += bytes.byteLength;
  }

  skip(byteCount: number): void {
    this.length += byteCount;
  }

  align(alignment: number): void {
    this.length = Math.ceil(this.length / alignment) * alignment;
  }

  append(other: ByteLayout): void {
    for (const { at, bytes } of other.#regions) this.#regions.push({ at: this.length + at, bytes });
    this.length += other.length;
  }

  /** Returns where all bytes are, ascending, but those of arrays that were added as they are. */
  placesBeside(arrays: readonly Uint8Array[]): { readonly from: number; readonly to: number }[] {
    return this.#regions
      .filter(({ bytes }) => bytes.byteLength > 0 && !arrays.some((one) => beginsWith(one, bytes)))
      .map(({ at, bytes }) => ({ from: at, to: at + bytes.byteLength }));
  }

  /** Returns all bytes in order. Large buffers are chunks themselves; small ones and gaps are joined into new chunks. */
  toChunks(): Uint8Array[] {
    const chunks: Uint8Array[] = [];
    let start = 0;
    let joined: { readonly at: number; readonly bytes: Uint8Array }[] = [];
    const join = (end: number) => {
      if (end === start) return;
      const chunk = new Uint8Array(end - start);
      for (const { at, bytes } of joined) chunk.set(bytes, at - start);
      chunks.push(chunk);
    };
    for (const region of this.#regions) {
      if (region.bytes.byteLength < CHUNK_BYTES_MIN) {
        joined.push(region);
        continue;
      }
      join(region.at);
      chunks.push(region.bytes);
      start = region.at + region.bytes.byteLength;
      joined = [];
    }
    join(this.length);
    return chunks;
  }

  /** Overwrites the first `length` bytes of the target and returns it. */
  copyInto(target: Uint8Array): Uint8Array {
    let end = 0;
    for (const { at, bytes } of this.#regions) {
      target.fill(0, end, at);
      target.set(bytes, at);
      end = at + bytes.byteLength;
    }
    target.fill(0, end, this.length);
    return target;
  }
}

/** The body of a record batch: nodes and buffers in the order of the schema's fields, depth first. */
export class BodyWriter {
  readonly layout = new ByteLayout();
  readonly nodes: FieldNode[] = [];
  readonly regions: BufferRegion[] = [];
  readonly #alignment: number;

  constructor(alignment: number) {
    this.#alignment = alignment;
  }

  node(length: number, nullCount = 0): void {
    this.nodes.push(new FieldNode(length, nullCount));
  }

  /**
   * Adds a buffer, which is read when the layout is written.
   * @param byteLength the length with zeros after the view.
   */
  buffer(view: ArrayBufferView, byteLength = view.byteLength): void {
    this.regions.push(new BufferRegion(this.layout.length, byteLength));
    this.layout.add(view);
    this.layout.skip(byteLength - view.byteLength);
    this.layout.align(this.#alignment);
  }

  /** Adds the validity of a column without nulls: an empty buffer. */
  noNulls(): void {
    this.regions.push(new BufferRegion(this.layout.length, 0));
  }

  /** Adds a column of `rowCount` rows. */
  column(column: ColumnToWrite, rowCount: number): void {
    if ('leaf' in column) this.#leaves(column, rowCount);
    else if ('items' in column) this.#nullableLists(column, rowCount);
    else if ('vectors' in column) {
      this.#vectors(column.vectors, rowCount, column.presence, column.element);
    } else if ('starts' in column) this.#lists(column.starts, column.elements, rowCount);
    else this.#vectorLists(column.multi, rowCount);
  }

  /**
   * Adds a column of vectors.
   * @param presence the rows that are not null; null for all rows.
   */
  #vectors(
    values: Float32Array,
    rowCount: number,
    presence: Bitmap | null = null,
    element: ElementType = 'float32',
  ): void {
    this.#nullable(rowCount, presence);
    this.node(values.length);
    this.noNulls();
    this.buffer(ELEMENTS[element].pack(values));
  }

  /** Adds a column with one value per row. */
  #leaves({ leaf, presence = null }: LeafColumn, count: number): void {
    this.#nullable(count, presence);
    if ('words' in leaf) {
      this.buffer(bitmapBytes(leaf));
      return;
    }
    if ('offsets' in leaf) {
      const { offsets, bytes } = leaf;
      this.buffer(offsetsOf(offsets, count));
      this.buffer(bytes.subarray(offsets[0], offsets[count]));
      return;
    }
    // Rows past the end of the array have no value.
    this.buffer(leaf, count * leaf.BYTES_PER_ELEMENT);
  }

  /** Adds a column of lists. Both lists and their items may be null. */
  #nullableLists({ starts, presence, items }: ListColumn, count: number): void {
    this.#nullable(count, presence);
    this.buffer(starts);
    this.#leaves(items, starts[count]!);
  }

  /** Adds the node of a column and the validity of its rows. Null means that no row is null. */
  #nullable(count: number, presence: Bitmap | null): void {
    const nullCount = presence === null ? 0 : count - countBits(presence);
    this.node(count, nullCount);
    if (presence === null || nullCount === 0) this.noNulls();
    else this.buffer(bitmapBytes(presence));
  }

  /** Adds a column with the lists of the rows 0..count, none of them null. */
  #lists(starts: Int32Array, elements: Uint32Array | Float32Array, count: number): void {
    const [first, end] = [starts[0]!, starts[count]!];
    this.node(count);
    this.noNulls();
    this.buffer(offsetsOf(starts, count));
    this.node(end - first);
    this.noNulls();
    this.buffer(elements.subarray(first, end));
  }

  /** Adds a column with the multi-vectors of the rows 0..count; rows without one are null. */
  #vectorLists(column: MultiColumn, count: number): void {
    const { dimension, starts } = column;
    const values = valuesOfRows(column, 0, count);
    const presence = createBitmap(count);
    for (let row = 0; row < count; row++) {
      if (starts[row + 1]! > starts[row]!) setBit(presence, row);
    }
    this.#nullable(count, presence);
    this.buffer(offsetsOf(starts, count));
    this.#vectors(values, values.length / dimension);
  }
}

/** Returns offsets that begin at 0; the same array if they already do. */
function offsetsOf(offsets: Int32Array, count: number): Int32Array {
  const cut = offsets.subarray(0, count + 1);
  const start = cut[0]!;
  return start === 0 ? cut : cut.map((offset) => offset - start);
}

/** Bodies and buffers in a file start at multiples of this, as Arrow recommends. */
export const FILE_ALIGNMENT = 64;
export const STREAM_ALIGNMENT = 8;

export interface DictionaryToWrite {
  readonly id: number;
  readonly count: number;
  readonly body: BodyWriter;
}

interface FileToWrite {
  readonly schema: Schema;
  readonly rowCount: number;
  readonly body: BodyWriter;
  readonly dictionaries: readonly DictionaryToWrite[];
  /** Stored between the batch and the footer, where Arrow readers do not look. */
  readonly attachments: readonly Uint8Array[];
}

/** Lays out an Arrow file of one record batch. The layout refers to the columns and copies nothing. */
export function layOutArrowFile(file: FileToWrite): ByteLayout {
  const { schema, rowCount, body, dictionaries, attachments } = file;
  const layout = new ByteLayout();
  layout.add(FILE_MAGIC);
  layout.align(8);
  addMessage(layout, Message.from(schema), FILE_ALIGNMENT);
  const dictionaryBlocks = dictionaries.map(({ id, count, body: dictionary }) => {
    const batch = new DictionaryBatch(toRecordBatch(count, dictionary), id);
    return addBatch(layout, Message.from(batch, dictionary.layout.length), dictionary);
  });
  const message = Message.from(toRecordBatch(rowCount, body), body.layout.length);
  const batchBlock = addBatch(layout, message, body);
  layout.add(END_OF_STREAM);
  for (const attachment of attachments) {
    layout.align(FILE_ALIGNMENT);
    layout.add(attachment);
  }
  layout.align(STREAM_ALIGNMENT);
  const footer = Footer.encode(
    new Footer(schema, MetadataVersion.V5, [batchBlock], dictionaryBlocks),
  );
  layout.add(footer);
  layout.add(Int32Array.of(footer.byteLength));
  layout.add(FILE_MAGIC);
  return layout;
}

function beginsWith(array: Uint8Array, { buffer, byteOffset, byteLength }: Uint8Array): boolean {
  const isAt = array.buffer === buffer && array.byteOffset === byteOffset;
  return isAt && byteLength <= array.byteLength;
}

/**
 * Lays out a stream of one batch. Its length is a multiple of 8.
 * @param metadata is stored with the batch.
 */
export function layOutArrowStream(
  schemaMessage: Uint8Array,
  rowCount: number,
  body: BodyWriter,
  metadata: Map<string, string>,
): ByteLayout {
  const layout = new ByteLayout();
  layout.add(schemaMessage);
  const batch = toRecordBatch(rowCount, body, metadata);
  addBatch(layout, Message.from(batch, body.layout.length), body, STREAM_ALIGNMENT);
  layout.add(END_OF_STREAM);
  return layout;
}

function toRecordBatch(
  rowCount: number,
  body: BodyWriter,
  metadata = new Map<string, string>(),
): RecordBatch {
  return new RecordBatch(rowCount, body.nodes, body.regions, null, [], metadata);
}

function addBatch(
  layout: ByteLayout,
  message: Message,
  body: BodyWriter,
  alignment = FILE_ALIGNMENT,
): FileBlock {
  const start = layout.length;
  addMessage(layout, message, alignment);
  const block = new FileBlock(layout.length - start, body.layout.length, start);
  layout.append(body.layout);
  return block;
}

/** Adds the metadata of a message, padded so that its body starts at a multiple of `alignment`. */
function addMessage(layout: ByteLayout, message: Message, alignment: number): void {
  const metadata = Message.encode(message);
  const unpadded = layout.length + PREFIX_BYTES + metadata.byteLength;
  const padded = Math.ceil(unpadded / alignment) * alignment;
  layout.add(Int32Array.of(CONTINUATION, padded - layout.length - PREFIX_BYTES));
  layout.add(metadata);
  layout.align(alignment);
}

/** `json` is text that holds a JSON value. */
export type LeafType = 'utf8' | 'json' | 'boolean' | keyof typeof NUMBERS;

export interface FieldToWrite {
  readonly name: string;
  /** Whether the column may contain nulls; false by default and for lists of vectors. */
  readonly isNullable?: boolean;
  readonly type:
    | LeafType
    | { readonly vectorOf: number; readonly element?: ElementType | undefined }
    /** Lists of vectors of this dimension. */
    | { readonly vectorsOf: number }
    | { readonly listOf: keyof typeof ELEMENT_CLASSES }
    /** Lists of values that may be null. */
    | { readonly listOfNullable: LeafType };
}

/** The values of a column in one batch, by the type of its field. */
export type ColumnToWrite =
  | LeafColumn
  | ListColumn
  | {
      /** Row-major [rowCount, dimension]. */
      readonly vectors: Float32Array;
      /** The rows that are not null; absent or null for all rows. */
      readonly presence?: Bitmap | null;
      /** The element type of the field. */
      readonly element?: ElementType | undefined;
    }
  /** Lists of numbers, starting at row 0; see `SparseColumn`. */
  | { readonly starts: Int32Array; readonly elements: Uint32Array | Float32Array }
  /** Lists of vectors, starting at row 0. */
  | { readonly multi: MultiColumn };

const ELEMENT_CLASSES = {
  float32: Float32,
  float16: Float16,
  uint16: Uint16,
  uint32: Uint32,
  int8: Int8,
  bool: Bool,
} as const;

const NUMBERS = {
  int32: Int32,
  uint32: Uint32,
  int64: Int64,
  float32: Float32,
  float64: Float64,
} as const;

/** Encodes the schema message, with which a stream begins. */
export function encodeSchema(
  fields: readonly FieldToWrite[],
  metadata: ReadonlyMap<string, string> = new Map(),
): Uint8Array {
  const layout = new ByteLayout();
  const schema = new Schema(fields.map(toField), new Map(metadata));
  addMessage(layout, Message.from(schema), STREAM_ALIGNMENT);
  return layout.copyInto(new Uint8Array(layout.length));
}

/**
 * Encodes a record batch, in chunks.
 * @param columns in the order of the schema's fields.
 */
export function encodeRecordBatch(
  rowCount: number,
  columns: readonly ColumnToWrite[],
  metadata?: Map<string, string>,
): Uint8Array[] {
  const body = encodeBody(columns, rowCount, STREAM_ALIGNMENT);
  const layout = new ByteLayout();
  const batch = toRecordBatch(rowCount, body, metadata);
  addBatch(layout, Message.from(batch, body.layout.length), body, STREAM_ALIGNMENT);
  return layout.toChunks();
}

export function encodeBody(
  columns: readonly ColumnToWrite[],
  rowCount: number,
  alignment: number,
): BodyWriter {
  const body = new BodyWriter(alignment);
  for (const column of columns) body.column(column, rowCount);
  return body;
}

/** Encodes the end-of-stream mark. A stream without it was cut off. */
export function encodeEnd(): Uint8Array {
  return new Uint8Array(END_OF_STREAM.slice().buffer);
}

export function toField({ name, type, isNullable = false }: FieldToWrite): Field {
  if (typeof type === 'string') return new Field(name, toLeafType(type), isNullable);
  if ('listOfNullable' in type) {
    const item = new Field('item', toLeafType(type.listOfNullable), true);
    return new Field(name, new List(item), isNullable);
  }
  if ('vectorOf' in type) {
    const element = elementOf(ELEMENTS[type.element ?? 'float32'].arrow);
    return new Field(name, new FixedSizeList(type.vectorOf, element), isNullable);
  }
  if ('listOf' in type) return new Field(name, new List(elementOf(type.listOf)), isNullable);
  const vectors = new FixedSizeList(type.vectorsOf, elementOf('float32'));
  return new Field(name, new List(new Field('item', vectors, false)), isNullable);
}

function toLeafType(type: LeafType): DataType {
  if (type === 'utf8' || type === 'json') return new Utf8();
  return type === 'boolean' ? new Bool() : new NUMBERS[type]();
}

function elementOf(type: keyof typeof ELEMENT_CLASSES): Field {
  return new Field('item', new ELEMENT_CLASSES[type](), false);
}
