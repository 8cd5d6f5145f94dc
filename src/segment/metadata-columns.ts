// The metadata columns of an active segment, one per path, built as rows arrive. A column holds all values of its
// path: a path that was left out once never gets a column. `metadata-path.ts` defines paths.

import { KIND, type MetadataColumn } from '../common/columns.js';
import { assert } from '../common/errors.js';
import { parseExactJson } from '../common/exact-json.js';
import {
  flattenMetadata,
  isJsonObject,
  METADATA_PATH_CHARACTERS_MAX,
} from '../common/metadata-path.js';
import type { MetadataFields, Utf8Column } from '../common/types.js';
import { stringAt } from '../common/utf8-column.js';
import { ColumnBuilder } from './column-builder.js';

export class MetadataColumns {
  /** False after a path was left out. */
  isComplete = true;
  readonly #builders = new Map<string, ColumnBuilder>();
  readonly #columnsMax: number;

  constructor(columnsMax: number) {
    this.#columnsMax = columnsMax;
  }

  /** Adds the JSON object at `index` as a row. Rows ascend. */
  append(row: number, json: Utf8Column, index: number): void {
    // Empty objects are the most common metadata.
    if (json.offsets[index + 1]! - json.offsets[index]! === 2) return;
    const document = parseExactJson(stringAt(json, index));
    assert(isJsonObject(document), 'metadata is a JSON object');
    flattenMetadata(document, (path, value) => this.#builderFor(path)?.set(row, value));
  }

  /** Adds the rows `from..from + count` of a batch, starting at `firstRow`. */
  appendFields(firstRow: number, fields: MetadataFields, from: number, count: number): void {
    fields.visit(from, from + count, (row, path, value) =>
      this.#builderFor(path)?.set(firstRow + row - from, value),
    );
  }

  /**
   * Copies `sourceRows`, which ascend, to consecutive rows starting at `firstRow`. The source segment must have
   * a column for every path. The result is the same as parsing the JSON of the rows.
   */
  copyRows(
    columns: ReadonlyMap<string, MetadataColumn>,
    sourceRows: Uint32Array,
    firstRow: number,
  ): void {
    for (const [path, column] of columns) {
      const hasValues = sourceRows.some(
        (row) => (column.kinds[row] ?? KIND.missing) !== KIND.missing,
      );
      if (hasValues) this.#builderFor(path)?.copyRows(column, sourceRows, firstRow);
    }
  }

  /** Returns the current columns, which later rows do not change. */
  view(): Map<string, MetadataColumn> {
    return new Map(Array.from(this.#builders, ([path, builder]) => [path, builder.view()]));
  }

  /** Returns the final columns, without room for growth. Nothing can be added afterwards. */
  seal(): Map<string, MetadataColumn> {
    return new Map(Array.from(this.#builders, ([path, builder]) => [path, builder.seal()]));
  }

  #builderFor(path: string): ColumnBuilder | undefined {
    // The length is checked first, because V8 joins the pieces of a path only when its characters are read.
    let builder = path.length > METADATA_PATH_CHARACTERS_MAX ? undefined : this.#builders.get(path);
    if (builder !== undefined) return builder;
    if (path.length > METADATA_PATH_CHARACTERS_MAX || this.#builders.size >= this.#columnsMax) {
      // Both reasons last forever, so a path is left out from its first row on or never.
      this.isComplete = false;
      return undefined;
    }
    builder = new ColumnBuilder();
    this.#builders.set(path, builder);
    return builder;
  }
}
