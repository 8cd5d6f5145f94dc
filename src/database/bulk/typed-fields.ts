// The types of the metadata paths of a snapshot: one column for each path whose values have one type, and
// JSON text for the others. Numbers are integers where all of them are, and fit 64 bits as they were sent.

import { hasBit } from '../../common/bitmap.js';
import { KIND, type MetadataColumn } from '../../common/columns.js';
import { parameter, validationError } from '../../common/errors.js';
import type { Utf8Column } from '../../common/types.js';
import { EMPTY_COLUMN } from '../../filter/column-test.js';
import { readElements } from '../../formats/json/json-scanner.js';
import type { WorkerPool } from '../../platform/pool.js';
import {
  countKinds,
  findPaths,
  type KindCounts,
  sumOf,
  typesOf,
} from '../aggregate/found-schema.js';
import {
  countPathCells,
  type PathsInput,
  readColumns,
  selectPaths,
} from '../aggregate/path-columns.js';
import { type RowSet, visitNumbers } from '../aggregate/row-set.js';
import { defineSegmentsTask, runOverSegments } from '../aggregate/segment-tasks.js';
import type { SegmentView } from '../collection/snapshot.js';
import { visitTexts } from './metadata-texts.js';

/** As many columns as data frames are made for; a chunk has at least one row of all of them. */
const FIELDS_MAX = 1_024;

/** The paths whose types are found together: results of all segments are in memory at once. */
const PATHS_PER_STEP = 256;

export interface TypedField {
  readonly path: string;
  /** The type of the values, or of their elements. */
  readonly type: 'int64' | 'float64' | 'boolean' | 'text' | 'json';
  readonly isList: boolean;
  /** Whether values have to be read as they were sent: JSON, and integers that float64 rounds. */
  readonly isFromText: boolean;
}

/** In the order of the paths. Throws `limit_exceeded` and `overloaded`; rejects with the signal's reason. */
export async function findTypedFields(
  pool: WorkerPool,
  views: readonly SegmentView[],
  signal: AbortSignal | undefined,
): Promise<readonly TypedField[]> {
  const fields: TypedField[] = [];
  let after: string | null = null;
  for (;;) {
    const range: { after: string | null; countMax: number } = { after, countMax: PATHS_PER_STEP };
    const paths: readonly string[] = await findPaths(pool, views, range, signal);
    const segments = views.map((view) => ({
      ...selectPaths(view, view.metadata, paths),
      texts: view.metadata.json,
    }));
    const found = await runOverSegments(pool, typePathsTask, segments, paths, signal);
    for (const [i, path] of paths.entries()) {
      const field = fieldOf(
        path,
        found.map((segment) => segment[i]!),
      );
      if (field !== null) fields.push(field);
    }
    if (fields.length > FIELDS_MAX) throw tooManyFields();
    if (paths.length < PATHS_PER_STEP) return fields;
    after = paths.at(-1)!;
  }
}

function tooManyFields() {
  const detail = `The metadata has more than ${FIELDS_MAX} paths, and there are at most ${FIELDS_MAX} typed columns. Leave out vectors with a filter, or export the metadata as text.`;
  return validationError([
    {
      location: parameter('metadata'),
      code: 'limit_exceeded',
      detail,
      expected: FIELDS_MAX,
    },
  ]);
}

/** What numbers are, from the narrowest to the widest. */
const NUMBERS = { none: 0, exact: 1, int64: 2, float64: 3 } as const;

interface PathTypes extends KindCounts {
  /** One of `NUMBERS`: `exact` are integers without rounding in float64. */
  readonly numbers: number;
}

interface TypePathsInput extends PathsInput {
  readonly texts: Utf8Column;
}

export const typePathsTask = defineSegmentsTask({
  name: 'bulk.typePaths',
  // As if all documents were walked over: only the numbers themselves tell whether that is needed.
  countCells: (segment: TypePathsInput) => countPathCells({ ...segment, json: segment.texts }),
  run(segment: TypePathsInput, paths: readonly string[]): readonly PathTypes[] {
    const columns = readColumns(segment);
    const found = paths.map((path) => {
      const column = columns.get(path) ?? EMPTY_COLUMN;
      return { ...countKinds(column, segment), numbers: numbersOf(column, segment) };
    });
    const doubtful = paths.filter((_, i) => found[i]!.numbers === NUMBERS.int64);
    const fractional = findFractional(segment, columns, doubtful);
    return found.map((types, i) =>
      fractional.has(paths[i]!) ? { ...types, numbers: NUMBERS.float64 } : types,
    );
  },
});

/** By the values, of which decimals beyond 2^53 are integers, too. */
function numbersOf(column: MetadataColumn, rows: RowSet): number {
  let numbers: number = NUMBERS.none;
  visitNumbers(column, rows, (value) => {
    const isInteger = typeof value === 'bigint' || Number.isInteger(value);
    if (Number.isSafeInteger(value)) numbers = Math.max(numbers, NUMBERS.exact);
    else numbers = Math.max(numbers, isInteger ? NUMBERS.int64 : NUMBERS.float64);
  });
  return numbers;
}

/** Those of the paths with a number beyond 2^53 that is not an integer of 64 bits as it was sent. */
function findFractional(
  { rowCount, rows, texts }: TypePathsInput,
  columns: ReadonlyMap<string, MetadataColumn>,
  paths: readonly string[],
): ReadonlySet<string> {
  const fractional = new Set<string>();
  const kindsOf = paths.map((path) => columns.get(path)!.kinds);
  const isNumber = (kind: number | undefined) => kind === KIND.number || kind === KIND.array;
  for (let row = 0; row < rowCount; row++) {
    if (rows !== null && !hasBit(rows, row)) continue;
    if (!kindsOf.some((kinds) => isNumber(kinds[row]))) continue;
    const found = new Map<string, string>();
    visitTexts(texts, row, (path, text) => found.set(path, text));
    for (const path of paths) {
      const text = found.get(path);
      if (text !== undefined && !readNumberTexts(text).every(isInt64)) fractional.add(path);
    }
  }
  return fractional;
}

/** The text itself, or those of the elements of an array, as far as they are numbers. */
function readNumberTexts(text: string): readonly string[] {
  const texts = text.startsWith('[') ? readElements(text) : [text];
  return texts.filter((each) => /^[-\d]/.test(each));
}

function isInt64(text: string): boolean {
  if (Number.isSafeInteger(Number(text))) return true;
  if (!/^-?\d{1,19}$/.test(text)) return false;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value;
}

/** Null for a path that has only objects, whose members have columns, or no value at all. */
function fieldOf(path: string, parts: readonly PathTypes[]): TypedField | null {
  const numbers = Math.max(NUMBERS.none, ...parts.map((part) => part.numbers));
  const kinds = sumOf(parts.map((part) => part.kinds));
  const { null: nullCount, ...others } = typesOf(kinds);
  const [first, second] = namesOf(others);
  if (first === undefined) return nullCount === 0 ? null : plainField(path, 'text');
  if (second !== undefined) return jsonField(path);
  if (first === 'object') return null;
  if (first !== 'array') return scalarField(path, first, numbers);
  const { null: _, ...elements } = typesOf(sumOf(parts.map((part) => part.elementKinds)));
  // Of lists that are all empty, or have nulls only, nothing is known.
  const [element = 'string', otherElement] = namesOf(elements);
  if (otherElement !== undefined || element === 'array' || element === 'object') {
    return jsonField(path);
  }
  return { ...scalarField(path, element, numbers), isList: true };
}

function namesOf<Name extends string>(counts: Readonly<Record<Name, number>>): Name[] {
  return (Object.keys(counts) as Name[]).filter((name) => counts[name] > 0);
}

function scalarField(
  path: string,
  type: 'boolean' | 'number' | 'string',
  numbers: number,
): TypedField {
  if (type === 'boolean') return plainField(path, 'boolean');
  if (type === 'string') return plainField(path, 'text');
  if (numbers === NUMBERS.float64) return plainField(path, 'float64');
  return { ...plainField(path, 'int64'), isFromText: numbers === NUMBERS.int64 };
}

function plainField(path: string, type: TypedField['type']): TypedField {
  return { path, type, isList: false, isFromText: false };
}

function jsonField(path: string): TypedField {
  return { ...plainField(path, 'json'), isFromText: true };
}
