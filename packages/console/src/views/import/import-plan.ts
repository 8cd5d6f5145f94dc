// Decides which columns of a file become ids, vectors and metadata: the choices for the user, and a proposal based on
// names and the first rows. Vectors can also be made of texts.

import { isJsonNumber } from '../../../../../src/common/exact-json.js';
import { VECTOR_NAMES } from '../../../../../src/formats/arrow/column-choice.js';
import { vectorOf } from '../../../../../src/readers/cells.js';
import type { ReaderChoices } from '../../../../../src/readers/reader-options.js';
import type { Sample } from '../../../../../src/readers/row-batch.js';

/** The source of the vectors: one column, one column per value, or texts, which stay part of the metadata. */
export type VectorPlan =
  | { readonly kind: 'column'; readonly column: string }
  | { readonly kind: 'text'; readonly column: string }
  | { readonly kind: 'columns'; readonly columns: readonly string[] };

export interface ImportPlan {
  /** Undefined if the server generates ids. */
  readonly idColumn: string | undefined;
  readonly vector: VectorPlan;
  /** In column order. The members of a column named `metadata` are merged into the metadata. */
  readonly metadataColumns: readonly string[];
}

export interface VectorChoice {
  readonly label: string;
  readonly plan: VectorPlan;
  /** Undefined for texts: the model decides. */
  readonly dimension: number | undefined;
}

/** Letters with space around them, unlike those of ids and of encoded vectors. */
const WORD = /(?<!\S)\p{L}[\p{L}'’-]*[.,;:!?]*(?!\S)/gu;

const ID_NAMES = ['id', '_id', 'key', 'uuid'];

/** The plan as options of the readers. */
export function readChoicesOf({ idColumn, vector, metadataColumns }: ImportPlan): ReaderChoices {
  return {
    idField: idColumn ?? null,
    ...(vector.kind === 'column' && { valuesField: vector.column }),
    ...(vector.kind === 'columns' && { vectorColumns: vector.columns }),
    ...(vector.kind === 'text' && { embed: vector.column }),
    fields: metadataColumns,
    delimiter: 'detect',
  };
}

/** Columns with vectors, those with usual names first, then columns with texts, the longest first. */
export function vectorChoicesOf({ columns, rows }: Sample): readonly VectorChoice[] {
  const single = columns.flatMap((column): VectorChoice[] => {
    const dimension = dimensionOf(rows, column);
    return dimension === undefined
      ? []
      : [{ label: column, plan: { kind: 'column', column }, dimension }];
  });
  const rank = ({ label }: VectorChoice) => (VECTOR_NAMES.includes(label) ? 0 : 1);
  return [
    ...single.sort((a, b) => rank(a) - rank(b)),
    ...numberedGroups(columns, rows),
    ...textChoices(columns, rows),
  ];
}

function textChoices(columns: readonly string[], rows: Sample['rows']): VectorChoice[] {
  const found = columns.flatMap((column) => {
    const texts = rows.map((row) => row[column]);
    if (!texts.every((text) => typeof text === 'string')) return [];
    const words = texts.reduce((sum, text) => sum + (text.match(WORD)?.length ?? 0), 0);
    return words < rows.length ? [] : [{ column, words }];
  });
  return found
    .sort((a, b) => b.words - a.words)
    .map(({ column }) => ({
      label: column,
      plan: { kind: 'text', column },
      dimension: undefined,
    }));
}

/** The length of the vectors in the column; undefined if a row lacks a vector or has another length. */
function dimensionOf(rows: Sample['rows'], column: string): number | undefined {
  const lengths = rows.map((row) => vectorOf(row[column])?.length);
  const [first] = lengths;
  const isVector = first !== undefined && first > 1 && lengths.every((length) => length === first);
  return isVector ? first : undefined;
}

/** Groups of columns such as d0, d1, …, d63 that contain a number in every row. */
function numberedGroups(columns: readonly string[], rows: Sample['rows']): VectorChoice[] {
  const groups = new Map<string, { readonly name: string; readonly number: number }[]>();
  for (const name of columns) {
    const [, prefix, digits] = /^(.*?)(\d+)$/.exec(name) ?? [];
    if (prefix === undefined || !rows.every((row) => isNumber(row[name]))) continue;
    groups.set(prefix, [...(groups.get(prefix) ?? []), { name, number: Number(digits) }]);
  }
  return [...groups.values()].flatMap((group) => {
    const sorted = [...group].sort((a, b) => a.number - b.number);
    const first = sorted[0]!.number;
    const isWhole = first <= 1 && sorted.every(({ number }, at) => number === first + at);
    if (sorted.length < 2 || !isWhole) return [];
    const names = sorted.map(({ name }) => name);
    return [
      {
        label: `${names[0]} … ${names.at(-1)}`,
        plan: { kind: 'columns', columns: names },
        dimension: names.length,
      },
    ];
  });
}

function isNumber(cell: unknown): boolean {
  return (
    isJsonNumber(cell) ||
    (typeof cell === 'string' && cell.trim() !== '' && Number.isFinite(Number(cell)))
  );
}

/** The proposed plan; undefined if no column contains vectors or texts. */
export function proposePlan(sample: Sample): ImportPlan | undefined {
  const vector = vectorChoicesOf(sample)[0]?.plan;
  if (vector === undefined) return undefined;
  const idColumn = ID_NAMES.find((name) => sample.columns.includes(name));
  return { idColumn, vector, metadataColumns: otherColumns(sample.columns, idColumn, vector) };
}

/** The columns that are neither ids nor vectors. */
export function otherColumns(
  columns: readonly string[],
  idColumn: string | undefined,
  vector: VectorPlan,
): readonly string[] {
  // Texts stay part of the metadata.
  const taken = new Set(vector.kind === 'text' ? [] : columnsOf(vector));
  return columns.filter((name) => name !== idColumn && !taken.has(name));
}

/** The columns that the vectors are in or made of. */
export function columnsOf(vector: VectorPlan): readonly string[] {
  return vector.kind === 'columns' ? vector.columns : [vector.column];
}
