// Writes Parquet files row group by row group: nullable columns of text, numbers and vectors, PLAIN encoded. They are
// not compressed, so that large columns need no copy: float32 vectors hardly compress, and compressing text would halve
// the speed. Vectors are lists of floats, because the format has no fixed-size lists; the Arrow schema in the footer
// tells readers their length.
// https://github.com/apache/parquet-format

import {
  type Bitmap,
  bitmapBytes,
  countBits,
  createFullBitmap,
  hasBit,
} from '../../common/bitmap.js';
import type { LeafColumn, ListColumn } from '../../common/columns.js';
import { ELEMENTS, type ElementType } from '../../common/elements.js';
import { assert } from '../../common/errors.js';
import type { Utf8Column } from '../../common/types.js';
import type { ColumnToWrite, FieldToWrite, LeafType } from '../arrow/ipc-writer.js';
import { pushVarint, ThriftStruct } from './thrift.js';

/** The types of values in columns and of the elements of vectors. */
type ValueType = LeafType | 'float16' | 'int8';

/** The physical type of each value type, by its number in the format. */
const LEAF_TYPES: { readonly [Type in ValueType]?: number } = {
  boolean: 0,
  int32: 1,
  uint32: 1,
  int64: 2,
  float32: 4,
  float64: 5,
  utf8: 6,
  json: 6,
  int8: 1,
  float16: 7,
};

type NumberArray = Exclude<LeafColumn['leaf'], Utf8Column | Bitmap>;

export interface ParquetOptions {
  /** Fields of values, of lists and of vectors. The values in lists are declared nullable. */
  readonly fields: readonly FieldToWrite[];
  /** The encapsulated schema message of Arrow IPC. It may be absent, because only Arrow readers use it. */
  readonly arrowSchema?: Uint8Array;
  /** Key-value metadata of the file. */
  readonly metadata: ReadonlyMap<string, string>;
  readonly createdBy: string;
}

interface Chunk {
  readonly field: FieldToWrite;
  readonly offset: number;
  readonly byteCount: number;
  readonly valueCount: number;
}

interface RowGroup {
  readonly rowCount: number;
  readonly chunks: readonly Chunk[];
}

const MAGIC = Buffer.from('PAR1');
const VERSION = 2;

/** Values of the format's enums. */
const REQUIRED = 0;
const OPTIONAL = 1;
const REPEATED = 2;
const CONVERTED_UTF8 = 0;
const CONVERTED_LIST = 3;
const CONVERTED_UINT32 = 13;
const CONVERTED_INT8 = 15;
const LOGICAL_STRING = 1;
const LOGICAL_LIST = 3;
const LOGICAL_FLOAT16 = 15;
const PLAIN = 0;
const RLE = 3;
const UNCOMPRESSED = 0;
const DATA_PAGE = 0;

export class ParquetWriter {
  readonly #options: ParquetOptions;
  readonly #groups: RowGroup[] = [];
  #rowCount = 0;
  /** Bytes returned so far. */
  #offset = 0;

  constructor(options: ParquetOptions) {
    this.#options = options;
  }

  /** Returns the first bytes of the file. */
  begin(): Uint8Array {
    return this.#counted(MAGIC);
  }

  /**
   * Writes a row group of these batches, whose columns are in the order of the fields. Every column of a batch
   * becomes a page.
   */
  *rowGroup(
    batches: readonly { readonly count: number; readonly columns: readonly ColumnToWrite[] }[],
  ): Generator<Uint8Array> {
    const chunks: Chunk[] = [];
    for (const [i, field] of this.#options.fields.entries()) {
      const offset = this.#offset;
      let valueCount = 0;
      for (const { count, columns } of batches) {
        const page = pageOf(field, columns[i]!, count);
        valueCount += page.valueCount;
        for (const bytes of page.parts) yield this.#counted(bytes);
      }
      chunks.push({ field, offset, byteCount: this.#offset - offset, valueCount });
    }
    const rowCount = batches.reduce((sum, { count }) => sum + count, 0);
    this.#groups.push({ rowCount, chunks });
    this.#rowCount += rowCount;
  }

  /** Returns the footer, which ends the file. */
  end(): Uint8Array {
    const footer = this.#footer();
    const length = Buffer.alloc(4);
    length.writeUInt32LE(footer.length);
    return this.#counted(Buffer.concat([footer, length, MAGIC]));
  }

  #counted<Bytes extends Uint8Array>(bytes: Bytes): Bytes {
    this.#offset += bytes.byteLength;
    return bytes;
  }

  #footer(): Uint8Array {
    const { fields, metadata, arrowSchema, createdBy } = this.#options;
    const entries = [...metadata];
    if (arrowSchema !== undefined) {
      entries.push(['ARROW:schema', Buffer.from(arrowSchema).toString('base64')]);
    }
    return new ThriftStruct()
      .i32(1, VERSION)
      .structList(2, schemaElements(fields), (struct, write) => write(struct))
      .i64(3, this.#rowCount)
      .structList(4, this.#groups, writeRowGroup)
      .structList(5, entries, (struct, [key, value]) => struct.text(1, key).text(2, value))
      .text(6, createdBy)
      .end();
  }
}

/** Returns writers for the elements of the schema, depth first. */
function schemaElements(fields: readonly FieldToWrite[]): ((struct: ThriftStruct) => void)[] {
  return [
    (struct) => struct.text(4, 'schema').i32(5, fields.length),
    ...fields.flatMap(({ name, type, isNullable = false }) => {
      if (typeof type === 'string') return [leafElement(name, type, isNullable)];
      const element = leafElement('element', leafTypeOf(type), !('vectorOf' in type));
      // Lists are written with the levels of nullable lists.
      return [...listElements(name, isNullable || !('vectorOf' in type)), element];
    }),
  ];
}

/** Returns writers for the elements of a list that precede the element of its values. */
function listElements(name: string, isNullable: boolean): ((struct: ThriftStruct) => void)[] {
  return [
    (struct) =>
      struct
        .i32(3, isNullable ? OPTIONAL : REQUIRED)
        .text(4, name)
        .i32(5, 1)
        .i32(6, CONVERTED_LIST)
        .struct(10, (type) => type.struct(LOGICAL_LIST, () => {})),
    (struct) => struct.i32(3, REPEATED).text(4, 'list').i32(5, 1),
  ];
}

function leafElement(
  name: string,
  type: ValueType,
  isNullable: boolean,
): (struct: ThriftStruct) => void {
  return (struct) => {
    const number = LEAF_TYPES[type]!;
    struct.i32(1, number);
    if (type === 'float16') struct.i32(2, Uint16Array.BYTES_PER_ELEMENT);
    struct.i32(3, isNullable ? OPTIONAL : REQUIRED).text(4, name);
    if (type === 'int8') struct.i32(6, CONVERTED_INT8);
    if (type === 'uint32') struct.i32(6, CONVERTED_UINT32);
    if (type === 'float16') struct.struct(10, (half) => half.struct(LOGICAL_FLOAT16, () => {}));
    if (number !== LEAF_TYPES.utf8) return;
    struct.i32(6, CONVERTED_UTF8).struct(10, (text) => text.struct(LOGICAL_STRING, () => {}));
  };
}

function writeRowGroup(struct: ThriftStruct, { chunks, rowCount }: RowGroup): void {
  const byteCount = chunks.reduce((sum, chunk) => sum + chunk.byteCount, 0);
  struct
    .structList(1, chunks, (column, chunk) => {
      column.i64(2, 0).struct(3, (meta) => writeChunk(meta, chunk));
    })
    .i64(2, byteCount)
    .i64(3, rowCount)
    .i64(5, chunks[0]!.offset)
    .i64(6, byteCount);
}

function writeChunk(meta: ThriftStruct, { field, offset, byteCount, valueCount }: Chunk): void {
  const isList = typeof field.type === 'object';
  const hasLevels = isList || field.isNullable === true;
  meta
    .i32(1, LEAF_TYPES[leafTypeOf(field.type)]!)
    .i32List(2, hasLevels ? [PLAIN, RLE] : [PLAIN])
    .textList(3, isList ? [field.name, 'list', 'element'] : [field.name])
    .i32(4, UNCOMPRESSED)
    .i64(5, valueCount)
    .i64(6, byteCount)
    .i64(7, byteCount)
    .i64(9, offset);
}

/** Returns the type of the values. */
function leafTypeOf(type: FieldToWrite['type']): ValueType {
  if (typeof type === 'string') return type;
  if ('listOfNullable' in type) return type.listOfNullable;
  assert('listOf' in type || 'vectorOf' in type, 'a Parquet file has no such lists');
  const arrow = 'listOf' in type ? type.listOf : ELEMENTS[type.element ?? 'float32'].arrow;
  assert(arrow !== 'uint16', 'vectors of bfloat16 are sent as float32');
  return arrow === 'bool' ? 'boolean' : arrow;
}

/** Returns a data page (header, levels and values) and the number of its values, nulls included. */
function pageOf(
  field: FieldToWrite,
  column: ColumnToWrite,
  count: number,
): { readonly parts: Uint8Array[]; readonly valueCount: number } {
  const { body, valueCount } = pageBody(field, column, count);
  const byteCount = body.reduce((sum, bytes) => sum + bytes.byteLength, 0);
  const header = new ThriftStruct()
    .i32(1, DATA_PAGE)
    .i32(2, byteCount)
    .i32(3, byteCount)
    .struct(5, (page) => page.i32(1, valueCount).i32(2, PLAIN).i32(3, RLE).i32(4, RLE))
    .end();
  // Header and levels form one chunk, because every chunk is sent separately.
  return { parts: [Buffer.concat([header, body[0]!]), ...body.slice(1)], valueCount };
}

function pageBody(
  field: FieldToWrite,
  column: ColumnToWrite,
  count: number,
): { readonly body: Uint8Array[]; readonly valueCount: number } {
  const { type, isNullable = false } = field;
  if ('leaf' in column) return { body: leafBody(column, isNullable, count), valueCount: count };
  if ('items' in column) return listBody(column, count);
  if ('elements' in column) {
    const { starts, elements } = column;
    return listBody({ starts, presence: null, items: { leaf: elements } }, count);
  }
  assert('vectors' in column, 'a Parquet file has no such lists');
  const { vectors, presence, element = 'float32' } = column;
  const { vectorOf: dimension } = type as { readonly vectorOf: number };
  if (!isNullable) {
    const body = [levelsOf(count, dimension), plainElements(vectors, element)];
    return { body, valueCount: count * dimension };
  }
  const rows = presence ?? createFullBitmap(count);
  const present = presentVectors(vectors, rows, dimension);
  const presentCount = present.length / dimension;
  return {
    body: [nullableLevelsOf(rows, count, dimension), plainElements(present, element)],
    // A null counts as one value.
    valueCount: present.length + count - presentCount,
  };
}

/** Parquet stores integers of less than 32 bits as 32 bits. */
function plainElements(values: Float32Array, element: ElementType): Uint8Array {
  return bytesOf(element === 'int8' ? Int32Array.from(values) : ELEMENTS[element].pack(values));
}

function leafBody(column: LeafColumn, isNullable: boolean, count: number): Uint8Array[] {
  const values = plainLeaf(column, count);
  if (!isNullable) return [values];
  const levels = packedRun(bitmapBytes(column.presence ?? createFullBitmap(count)), 1);
  return [Buffer.concat([lengthOf(levels), levels]), values];
}

/** Encodes the values that are not null. */
function plainLeaf({ leaf, presence = null }: LeafColumn, count: number): Uint8Array {
  if ('words' in leaf) return plainBits(leaf, presence ?? createFullBitmap(count));
  if ('offsets' in leaf) {
    if (presence === null) return plainText(leaf, count);
    return plainText(presentText(leaf, presence), countBits(presence));
  }
  return bytesOf(presence === null ? leaf : presentNumbers(leaf, presence));
}

/** Definition levels of a nullable list of nullable values. */
const NULL_LIST = 0;
const EMPTY_LIST = 1;
const NULL_ITEM = 2;
const ITEM = 3;

/** Encodes lists. A null list and an empty list each count as one value. */
function listBody(
  { starts, presence, items }: ListColumn,
  count: number,
): { readonly body: Uint8Array[]; readonly valueCount: number } {
  const itemCount = starts[count]!;
  // A row without items has one level, too.
  const repetition = new Uint8Array(Math.ceil((itemCount + count) / 8));
  const definition = new Uint8Array(Math.ceil((itemCount + count) / 4));
  let at = 0;
  const add = (level: number, isFirst: boolean) => {
    if (!isFirst) repetition[at >> 3]! |= 1 << (at & 7);
    definition[at >> 2]! |= level << ((at & 3) * 2);
    at++;
  };
  for (let row = 0; row < count; row++) {
    const [first, end] = [starts[row]!, starts[row + 1]!];
    if (presence !== null && !hasBit(presence, row)) add(NULL_LIST, true);
    else if (first === end) add(EMPTY_LIST, true);
    for (let item = first; item < end; item++) {
      const isNull = items.presence != null && !hasBit(items.presence, item);
      add(isNull ? NULL_ITEM : ITEM, item === first);
    }
  }
  const levels = joinLevels(
    packedRun(repetition.subarray(0, Math.ceil(at / 8)), 1),
    packedRun(definition.subarray(0, Math.ceil(at / 4)), 2),
  );
  return { body: [levels, plainLeaf(items, itemCount)], valueCount: at };
}

/** Encodes a run of bit-packed levels in groups of eight. */
function packedRun(levels: Uint8Array, bitCount: number): Uint8Array {
  const groupCount = Math.ceil(levels.length / bitCount);
  const head: number[] = [];
  pushVarint(head, groupCount * 2 + 1);
  const run = new Uint8Array(head.length + groupCount * bitCount);
  run.set(head);
  run.set(levels, head.length);
  return run;
}

/** Packs the bits of the rows that are not null. */
function plainBits(values: Bitmap, presence: Bitmap): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(countBits(presence) / 8));
  let at = 0;
  for (let row = 0; row < presence.length; row++) {
    if (!hasBit(presence, row)) continue;
    if (hasBit(values, row)) bytes[at >> 3] = bytes[at >> 3]! | (1 << (at & 7));
    at++;
  }
  return bytes;
}

function presentNumbers<Numbers extends NumberArray>(numbers: Numbers, presence: Bitmap): Numbers {
  return numbers.filter((_: unknown, row: number) => hasBit(presence, row)) as Numbers;
}

/** Returns the strings that are not null. Null strings must be empty. */
function presentText({ offsets, bytes }: Utf8Column, presence: Bitmap): Utf8Column {
  const present = new Int32Array(countBits(presence) + 1);
  present[0] = offsets[0]!;
  let at = 0;
  for (let row = 0; row < presence.length; row++) {
    if (hasBit(presence, row)) present[++at] = offsets[row + 1]!;
  }
  return { offsets: present, bytes };
}

/** Returns the vectors that are not null. */
function presentVectors(vectors: Float32Array, presence: Bitmap, dimension: number): Float32Array {
  const present = new Float32Array(countBits(presence) * dimension);
  let at = 0;
  for (let row = 0; row < presence.length; row++) {
    if (!hasBit(presence, row)) continue;
    present.set(vectors.subarray(row * dimension, (row + 1) * dimension), at);
    at += dimension;
  }
  return present;
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/**
 * Encodes repetition levels (0 where a vector begins, otherwise 1) and definition levels (all 1) as runs: twice the
 * length, then the level. All vectors have the same levels, so those of one are encoded and repeated.
 */
function levelsOf(count: number, dimension: number): Uint8Array {
  const repetition = Buffer.alloc(repetitionOf(dimension).length * count, repetitionOf(dimension));
  return joinLevels(repetition, Uint8Array.from(runOf(count * dimension, 1)));
}

/** Like `levelsOf`, for vectors that may be null: definition level 2 for each value and 0 for a null. */
function nullableLevelsOf(presence: Bitmap, count: number, dimension: number): Uint8Array {
  const vectorRepetition = repetitionOf(dimension);
  const vectorDefinition = Uint8Array.from(runOf(dimension, 2));
  const nullLevel = Uint8Array.from(runOf(1, 0));
  const repetition: Uint8Array[] = [];
  const definition: Uint8Array[] = [];
  for (let row = 0; row < count; row++) {
    const isPresent = hasBit(presence, row);
    repetition.push(isPresent ? vectorRepetition : nullLevel);
    definition.push(isPresent ? vectorDefinition : nullLevel);
  }
  return joinLevels(Buffer.concat(repetition), Buffer.concat(definition));
}

/** Encodes the repetition levels of one vector. */
function repetitionOf(dimension: number): Uint8Array {
  const rest = dimension > 1 ? runOf(dimension - 1, 1) : [];
  return Uint8Array.from([...runOf(1, 0), ...rest]);
}

/** Encodes a run of one level, which takes one byte. */
function runOf(length: number, level: number): number[] {
  const run: number[] = [];
  pushVarint(run, length * 2);
  run.push(level);
  return run;
}

function joinLevels(repetition: Uint8Array, definition: Uint8Array): Uint8Array {
  return Buffer.concat([lengthOf(repetition), repetition, lengthOf(definition), definition]);
}

function lengthOf({ length }: { readonly length: number }): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(length);
  return bytes;
}

/** Up to this length a loop is faster than a view and a copy. */
const LOOPED_BYTES_MAX = 48;

/** Encodes text as PLAIN: each string after its length. */
function plainText({ offsets, bytes }: Utf8Column, count: number): Uint8Array {
  const byteCount = offsets[count]! - offsets[0]!;
  const target = Buffer.allocUnsafeSlow(byteCount + count * 4);
  let at = 0;
  for (let i = 0; i < count; i++) {
    const start = offsets[i]!;
    const end = offsets[i + 1]!;
    at = target.writeUInt32LE(end - start, at);
    if (end - start <= LOOPED_BYTES_MAX) {
      for (let byte = start; byte < end; byte++) target[at++] = bytes[byte]!;
    } else {
      target.set(bytes.subarray(start, end), at);
      at += end - start;
    }
  }
  return target;
}
