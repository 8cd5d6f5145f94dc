// A growing column of one metadata path: kinds, numbers, dictionary codes and array elements. Cells are
// written in ascending order of rows; only the last row may be written again. Views taken earlier never
// change.

import { KIND, type MetadataColumn, residueOf } from '../common/columns.js';
import { sharedBytes, sharedFloat64, sharedInt32 } from '../common/shared-array.js';
import type { Json } from '../common/types.js';
import { stringAt } from '../common/utf8-column.js';
import { trimmed, withRoom } from './shared-arrays.js';
import { StringDictionary } from './string-dictionary.js';

export class ColumnBuilder {
  /** The number of rows up to the last one with a value. */
  #length = 0;
  #kinds = sharedBytes(0);
  #numbers: Float64Array | null = null;
  #numberLength = 0;
  #residues: Int32Array | null = null;
  #residueLength = 0;
  #codes: Int32Array | null = null;
  #codeLength = 0;
  #dictionary: StringDictionary | null = null;
  #items: { offsets: Int32Array; elements: ColumnBuilder } | null = null;
  /** Rows whose elements are complete; `items.offsets` is filled up to and including this index. */
  #itemLength = 0;
  #lastView: MetadataColumn | null = null;

  set(row: number, value: Json): void {
    if (Array.isArray(value)) {
      const elements = this.#beginItems(row);
      for (let i = 0; i < value.length; i++) elements.#setScalar(elements.#length, value[i]!);
      this.#endItems(row);
    } else {
      this.#setScalar(row, value);
    }
  }

  /** Like `set`, but keeps only the kind of an array, because elements of nested arrays match nothing. */
  #setScalar(row: number, value: Json): void {
    switch (typeof value) {
      case 'number':
      case 'bigint':
        this.#setNumber(row, Number(value), residueOf(value));
        break;
      case 'string':
        this.#dictionary ??= new StringDictionary();
        this.#setCode(row, this.#dictionary.codeOf(value));
        break;
      case 'boolean':
        this.#setKind(row, value ? KIND.true : KIND.false);
        break;
      default:
        if (value === null) this.#setKind(row, KIND.null);
        else this.#setKind(row, Array.isArray(value) ? KIND.array : KIND.object);
    }
  }

  /** Copies the cells of `sourceRows`, which ascend, to consecutive rows starting at `firstRow`. */
  copyRows(source: MetadataColumn, sourceRows: Uint32Array, firstRow: number): void {
    const codes = new Int32Array(source.dictionaryCount).fill(-1);
    const elementCodes = new Int32Array(source.items?.elements.dictionaryCount ?? 0).fill(-1);
    for (let i = 0; i < sourceRows.length; i++) {
      const sourceRow = sourceRows[i]!;
      if (sourceRow >= source.kinds.length) return;
      const kind = source.kinds[sourceRow]!;
      if (kind === KIND.missing) continue;
      if (kind === KIND.array && source.items !== null) {
        const { offsets, elements } = source.items;
        const target = this.#beginItems(firstRow + i);
        for (let e = offsets[sourceRow]!; e < offsets[sourceRow + 1]!; e++) {
          target.#copyCell(target.#length, elements, e, elementCodes);
        }
        this.#endItems(firstRow + i);
      } else {
        this.#copyCell(firstRow + i, source, sourceRow, codes);
      }
    }
  }

  /** @param codes maps codes of the source to codes of this column; -1 for codes not copied yet. */
  #copyCell(row: number, source: MetadataColumn, sourceRow: number, codes: Int32Array): void {
    const kind = source.kinds[sourceRow]!;
    if (kind === KIND.number) {
      this.#setNumber(row, source.numbers![sourceRow]!, source.residues?.[sourceRow] ?? 0);
    } else if (kind === KIND.string) {
      const sourceCode = source.codes![sourceRow]!;
      let code = codes[sourceCode]!;
      if (code < 0) {
        const text = stringAt(source.dictionary!, sourceCode);
        this.#dictionary ??= new StringDictionary();
        code = this.#dictionary.codeOf(text);
        codes[sourceCode] = code;
      }
      this.#setCode(row, code);
    } else {
      this.#setKind(row, kind);
    }
  }

  /** Returns the current cells; the same object until the next `set`. */
  view(): MetadataColumn {
    this.#lastView ??= {
      kinds: this.#kinds.subarray(0, this.#length),
      numbers: this.#numbers?.subarray(0, this.#numberLength) ?? null,
      residues: this.#residues?.subarray(0, this.#residueLength) ?? null,
      codes: this.#codes?.subarray(0, this.#codeLength) ?? null,
      dictionary: this.#dictionary?.view() ?? null,
      dictionaryCount: this.#dictionary?.count ?? 0,
      items:
        this.#items === null
          ? null
          : {
              offsets: this.#items.offsets.subarray(0, this.#itemLength + 1),
              elements: this.#items.elements.view(),
            },
    };
    return this.#lastView;
  }

  /** Returns the final view, without room for growth. Nothing can be set afterwards. */
  seal(): MetadataColumn {
    this.#kinds = trimmed(this.#kinds, this.#length);
    if (this.#numbers !== null) this.#numbers = trimmed(this.#numbers, this.#numberLength);
    if (this.#residues !== null) this.#residues = trimmed(this.#residues, this.#residueLength);
    if (this.#codes !== null) this.#codes = trimmed(this.#codes, this.#codeLength);
    this.#dictionary?.seal();
    if (this.#items !== null) {
      this.#items.offsets = trimmed(this.#items.offsets, this.#itemLength + 1);
      this.#items.elements.seal();
    }
    this.#lastView = null;
    return this.view();
  }

  #setKind(row: number, kind: number): void {
    if (row < this.#length) this.#forget(row);
    this.#kinds = withRoom(this.#kinds, row + 1);
    this.#kinds[row] = kind;
    this.#length = row + 1;
    this.#lastView = null;
  }

  #setNumber(row: number, value: number, residue: number): void {
    this.#setKind(row, KIND.number);
    this.#numbers = withRoom(this.#numbers ?? sharedFloat64(0), row + 1);
    this.#numbers[row] = value;
    this.#numberLength = row + 1;
    if (residue === 0) return;
    this.#residues = withRoom(this.#residues ?? sharedInt32(0), row + 1);
    this.#residues[row] = residue;
    this.#residueLength = row + 1;
  }

  #setCode(row: number, code: number): void {
    this.#setKind(row, KIND.string);
    this.#codes = withRoom(this.#codes ?? sharedInt32(0), row + 1);
    this.#codes[row] = code;
    this.#codeLength = row + 1;
  }

  /** Returns the column for the elements of `row`; rows since the last array have none. */
  #beginItems(row: number): ColumnBuilder {
    this.#setKind(row, KIND.array);
    this.#items ??= { offsets: sharedInt32(1), elements: new ColumnBuilder() };
    const items = this.#items;
    items.offsets = withRoom(items.offsets, row + 2);
    items.offsets.fill(items.elements.#length, this.#itemLength + 1, row + 1);
    return items.elements;
  }

  #endItems(row: number): void {
    this.#items!.offsets[row + 1] = this.#items!.elements.#length;
    this.#itemLength = row + 1;
  }

  /** Removes the cell of the last row: a document may contain a path twice, and the last value counts. */
  #forget(row: number): void {
    if (this.#items !== null && this.#itemLength > row) {
      this.#itemLength = row;
      this.#items.elements.#truncate(this.#items.offsets[row]!);
    }
    this.#truncate(row);
  }

  #truncate(length: number): void {
    this.#length = length;
    this.#numberLength = Math.min(this.#numberLength, length);
    // A number that is set here later may have no residue.
    this.#residues?.fill(0, length, this.#residueLength);
    this.#residueLength = Math.min(this.#residueLength, length);
    this.#codeLength = Math.min(this.#codeLength, length);
    this.#lastView = null;
  }
}
