// Passes the metadata of a batch from the task that parsed the rows to the segment that appends them, so that the
// text is not parsed again. Small batches are parsed on the event loop and keep their documents. Cloning many
// documents would cost as much as parsing them, so a worker returns a flat list of fields instead. The segment
// visits either in the order of `flattenMetadata`, and so builds the same columns as from the text.

import { joinNumber, KIND, residueOf } from '../../common/columns.js';
import { flattenMetadata, METADATA_PATH_CHARACTERS_MAX } from '../../common/metadata-path.js';
import type { FieldVisitor, Json, JsonObject, MetadataFields } from '../../common/types.js';
import { INLINE_BYTES_MAX } from '../../platform/pool.js';

/** A document per row; undefined for a row without metadata. */
export type Documents = readonly (JsonObject | undefined)[];

export type ParsedMetadata =
  | { readonly kind: 'documents'; readonly documents: Documents }
  | { readonly kind: 'flat'; readonly flat: FlatMetadata }
  /** There are too many distinct paths or values, so the segment parses the text. */
  | { readonly kind: 'text' };

interface FlatMetadata {
  readonly paths: readonly string[];
  /** The distinct strings among the values. */
  readonly strings: readonly string[];
  /**
   * For each field the index of its path and its value. A value is a KIND, followed by the index of a string, or by
   * the number of elements of an array and their values; or it is LONG_INTEGER, followed by the residue that the
   * number lacks as a float64. Objects, and arrays inside arrays, are only their KIND, since columns keep no more
   * of them.
   */
  readonly tokens: Int32Array;
  /** The numbers among the values, in the order of the tokens. */
  readonly numbers: Float64Array;
  /** Row i has the tokens `tokenOffsets[i]..tokenOffsets[i + 1]`; its numbers start at `numberOffsets[i]`. */
  readonly tokenOffsets: Int32Array;
  readonly numberOffsets: Int32Array;
}

/** A token in addition to the KINDs. */
const LONG_INTEGER = 8;

/** Bounds the memory of paths: a batch with more distinct paths stays text. */
const PATHS_MAX = 10_000;

/** Bounds the memory of arrays of short numbers: a batch whose fields take more than twice its text stays text. */
const FLAT_BYTES_FACTOR_MAX = 2;

/** Replaces every path that is too long for a column. */
const OVERLONG_PATH = ' '.repeat(METADATA_PATH_CHARACTERS_MAX + 1);

/** `byteCount` is the size of the parsed bytes, which determines whether they were parsed in a worker. */
export function packMetadata(documents: Documents, byteCount: number): ParsedMetadata {
  if (byteCount <= INLINE_BYTES_MAX) return { kind: 'documents', documents };
  const writer = new FlatMetadataWriter(documents.length, FLAT_BYTES_FACTOR_MAX * byteCount);
  for (const document of documents) writer.add(document);
  const flat = writer.build();
  return flat === null ? { kind: 'text' } : { kind: 'flat', flat };
}

/** The arrays of flat metadata, each in its own buffer. */
export function arraysOf(metadata: ParsedMetadata): ArrayBufferView[] {
  if (metadata.kind !== 'flat') return [];
  const { tokens, numbers, tokenOffsets, numberOffsets } = metadata.flat;
  return [tokens, numbers, tokenOffsets, numberOffsets];
}

/** The fields of the rows from `firstRow` on; undefined if the segment has to parse the text. */
export function fieldsOf(metadata: ParsedMetadata, firstRow: number): MetadataFields | undefined {
  switch (metadata.kind) {
    case 'documents':
      return documentFields(metadata.documents, firstRow);
    case 'flat':
      return new FlatFields(metadata.flat, firstRow);
    case 'text':
      return undefined;
  }
}

function documentFields(documents: Documents, firstRow: number): MetadataFields {
  return {
    visit(from, to, visit) {
      for (let row = from; row < to; row++) {
        const document = documents[firstRow + row];
        if (document === undefined) continue;
        flattenMetadata(document, (path, value) => visit(row, path, value));
      }
    },
  };
}

class FlatMetadataWriter {
  readonly #paths = new Map<string, number>();
  readonly #strings = new Map<string, number>();
  readonly #tokens: number[] = [];
  readonly #numbers: number[] = [];
  readonly #tokenOffsets: Int32Array;
  readonly #numberOffsets: Int32Array;
  readonly #bytesMax: number;
  #rowCount = 0;

  constructor(rowsMax: number, bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#tokenOffsets = new Int32Array(rowsMax + 1);
    this.#numberOffsets = new Int32Array(rowsMax + 1);
  }

  /** Called for every row, in order; undefined for a row without metadata. */
  add(document: JsonObject | undefined): void {
    if (document !== undefined && !this.#isTooLarge) {
      flattenMetadata(document, (path, value) => {
        this.#tokens.push(this.#indexOfPath(path));
        if (Array.isArray(value)) this.#addArray(value);
        else this.#addScalar(value);
      });
    }
    this.#rowCount++;
    this.#tokenOffsets[this.#rowCount] = this.#tokens.length;
    this.#numberOffsets[this.#rowCount] = this.#numbers.length;
  }

  get #isTooLarge(): boolean {
    const byteCount =
      this.#tokens.length * Int32Array.BYTES_PER_ELEMENT +
      this.#numbers.length * Float64Array.BYTES_PER_ELEMENT;
    return this.#paths.size > PATHS_MAX || byteCount > this.#bytesMax;
  }

  /** Null if there are too many distinct paths or values. */
  build(): FlatMetadata | null {
    if (this.#isTooLarge) return null;
    return {
      paths: [...this.#paths.keys()],
      strings: [...this.#strings.keys()],
      tokens: new Int32Array(this.#tokens),
      numbers: new Float64Array(this.#numbers),
      tokenOffsets: this.#tokenOffsets.subarray(0, this.#rowCount + 1),
      numberOffsets: this.#numberOffsets.subarray(0, this.#rowCount + 1),
    };
  }

  #indexOfPath(path: string): number {
    return indexIn(this.#paths, path.length > METADATA_PATH_CHARACTERS_MAX ? OVERLONG_PATH : path);
  }

  #addArray(elements: readonly Json[]): void {
    this.#tokens.push(KIND.array, elements.length);
    for (const element of elements) this.#addScalar(element);
  }

  #addScalar(value: Json): void {
    if (typeof value === 'string') {
      this.#tokens.push(KIND.string, indexIn(this.#strings, value));
    } else if (typeof value === 'number') {
      this.#tokens.push(KIND.number);
      this.#numbers.push(value);
    } else if (typeof value === 'bigint') {
      this.#tokens.push(LONG_INTEGER, residueOf(value));
      this.#numbers.push(Number(value));
    } else if (typeof value === 'boolean') {
      this.#tokens.push(value ? KIND.true : KIND.false);
    } else if (value === null) {
      this.#tokens.push(KIND.null);
    } else {
      this.#tokens.push(Array.isArray(value) ? KIND.array : KIND.object);
    }
  }
}

function indexIn(indexes: Map<string, number>, text: string): number {
  let index = indexes.get(text);
  if (index === undefined) {
    index = indexes.size;
    indexes.set(text, index);
  }
  return index;
}

const ANY_OBJECT: JsonObject = {};
const ANY_ARRAY: Json[] = [];

/** Row 0 is row `firstRow` of the flat metadata. */
class FlatFields implements MetadataFields {
  readonly #flat: FlatMetadata;
  readonly #firstRow: number;
  #token = 0;
  #number = 0;

  constructor(flat: FlatMetadata, firstRow: number) {
    this.#flat = flat;
    this.#firstRow = firstRow;
  }

  visit(from: number, to: number, visit: FieldVisitor): void {
    const { paths, tokens, tokenOffsets, numberOffsets } = this.#flat;
    this.#token = tokenOffsets[this.#firstRow + from]!;
    this.#number = numberOffsets[this.#firstRow + from]!;
    for (let row = from; row < to; row++) {
      const end = tokenOffsets[this.#firstRow + row + 1]!;
      while (this.#token < end) {
        const path = paths[tokens[this.#token++]!]!;
        visit(row, path, this.#readValue());
      }
    }
  }

  #readValue(): Json {
    const { tokens } = this.#flat;
    if (tokens[this.#token] !== KIND.array) return this.#readScalar();
    const count = tokens[this.#token + 1]!;
    this.#token += 2;
    const elements: Json[] = [];
    for (let i = 0; i < count; i++) elements.push(this.#readScalar());
    return elements;
  }

  #readScalar(): Json {
    const { tokens, strings, numbers } = this.#flat;
    switch (tokens[this.#token++]) {
      case KIND.string:
        return strings[tokens[this.#token++]!]!;
      case KIND.number:
        return numbers[this.#number++]!;
      case LONG_INTEGER:
        return joinNumber(numbers[this.#number++]!, tokens[this.#token++]!);
      case KIND.true:
        return true;
      case KIND.false:
        return false;
      case KIND.null:
        return null;
      case KIND.array:
        return ANY_ARRAY;
      default:
        return ANY_OBJECT;
    }
  }
}
