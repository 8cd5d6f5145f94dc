// Builds the columns of a MetadataView from documents, for tests of filters without segments. It uses everything that
// the contract of columns allows: arrays that end early, and arrays with garbage after the rows.

import { KIND, type MetadataColumn, type MetadataView } from '../../src/common/columns.js';
import { parseExactJson } from '../../src/common/exact-json.js';
import { flattenMetadata } from '../../src/common/metadata-path.js';
import type { Json, JsonObject, Utf8Column } from '../../src/common/types.js';

export interface ViewOptions {
  /** Whether arrays continue past the last row, with garbage. Otherwise they end at their last value. */
  readonly hasGarbage?: boolean;
  /** Paths without a column; the view is then incomplete. */
  readonly withoutColumns?: readonly string[];
}

/** Parses documents from text, as a segment does, which allows `{"a": -0}` and `{"a": 1e999}`. */
export function viewOf(texts: readonly string[], options: ViewOptions = {}): MetadataView {
  const cells = new Map<string, (Json | undefined)[]>();
  texts.forEach((text, row) => {
    flattenMetadata(parseExactJson(text) as JsonObject, (path, value) => {
      const column = cells.get(path) ?? [];
      column[row] = value;
      cells.set(path, column);
    });
  });
  const without = options.withoutColumns ?? [];
  const columns = new Map<string, MetadataColumn>();
  for (const [path, values] of cells) {
    if (without.includes(path)) continue;
    if (options.hasGarbage === true) {
      columns.set(
        path,
        columnOf(
          Array.from(texts, (_, row) => values[row]),
          40,
        ),
      );
    } else {
      columns.set(path, columnOf(Array.from(values)));
    }
  }
  const isComplete = without.length === 0;
  const ids = utf8Of(texts.map((_, row) => idOf(row)));
  return { rowCount: texts.length, columns, isComplete, ids, json: utf8Of(texts) };
}

/** Returns the id of a row. Some rows share a prefix. */
export function idOf(row: number): string {
  return `${['doc', 'Doc', 'é'][row % 3]}/${row}`;
}

/** Writes JSON with -0 and 1e999, which JSON.parse reads but JSON.stringify does not write. */
export function textOf(value: Json): string {
  if (typeof value === 'number') {
    if (Object.is(value, -0)) return '-0';
    return Number.isFinite(value) ? String(value) : value > 0 ? '1e999' : '-1e999';
  }
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, of]) => `${JSON.stringify(key)}:${textOf(of)}`);
  return `{${members.join()}}`;
}

export function columnOf(cells: readonly (Json | undefined)[], garbageCount = 0): MetadataColumn {
  const kinds = cells.map(kindOf);
  const strings = cells.filter((cell) => typeof cell === 'string');
  const distinct = [...new Set(strings)];
  const codeByString = new Map(distinct.map((text, code) => [text, code]));
  const numbers = cells.map((cell) => (isNumber(cell) ? Number(cell) : 7));
  const longs = cells.map((cell) => typeof cell === 'bigint');
  const residues = cells.map((cell) =>
    typeof cell === 'bigint' ? Number(cell - BigInt(Number(cell))) : 0,
  );
  const codes = cells.map((cell) => (typeof cell === 'string' ? codeByString.get(cell)! : -5));
  const endOf = (kind: number) =>
    garbageCount > 0 ? cells.length + garbageCount : kinds.lastIndexOf(kind) + 1;
  return {
    kinds: Uint8Array.from({ length: cells.length + garbageCount }, (_, i) => kinds[i] ?? 4),
    numbers: kinds.includes(KIND.number)
      ? Float64Array.from({ length: endOf(KIND.number) }, (_, i) => numbers[i] ?? 1)
      : null,
    residues: longs.includes(true)
      ? Int32Array.from({ length: longs.lastIndexOf(true) + 1 }, (_, i) => residues[i])
      : null,
    codes: kinds.includes(KIND.string)
      ? Int32Array.from({ length: endOf(KIND.string) }, (_, i) => codes[i] ?? 0)
      : null,
    dictionary: distinct.length > 0 ? utf8Of(distinct) : null,
    dictionaryCount: distinct.length,
    items: kinds.includes(KIND.array) ? itemsOf(cells, garbageCount) : null,
  };
}

/** Offsets end after the last array that is not empty, which is the least that they must cover. */
function itemsOf(cells: readonly (Json | undefined)[], garbageCount: number) {
  const arrays = cells.map((cell) => (Array.isArray(cell) ? cell : []));
  const last = arrays.findLastIndex((array) => array.length > 0);
  const covered = garbageCount > 0 ? arrays : arrays.slice(0, last + 1);
  const offsets = new Int32Array(covered.length + 1);
  covered.forEach((array, row) => {
    offsets[row + 1] = offsets[row] + array.length;
  });
  return { offsets, elements: columnOf(covered.flat(), garbageCount) };
}

export function utf8Of(strings: readonly string[]): Utf8Column {
  // Offsets do not start at 0, which the contract allows.
  const encoded = ['before', ...strings, 'after'].map((text) => Buffer.from(text));
  const bytes = Buffer.concat(encoded);
  const offsets = new Int32Array(strings.length + 1);
  offsets[0] = encoded[0].length;
  strings.forEach((_, i) => {
    offsets[i + 1] = offsets[i] + encoded[i + 1].length;
  });
  return { offsets, bytes: new Uint8Array(bytes) };
}

function isNumber(value: Json | undefined): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

function kindOf(value: Json | undefined): number {
  if (value === undefined) return KIND.missing;
  if (value === null) return KIND.null;
  if (Array.isArray(value)) return KIND.array;
  if (typeof value === 'boolean') return value ? KIND.true : KIND.false;
  if (isNumber(value)) return KIND.number;
  return typeof value === 'string' ? KIND.string : KIND.object;
}
