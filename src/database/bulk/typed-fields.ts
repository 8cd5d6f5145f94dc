// Finds the types of the metadata paths of a snapshot. A path whose values have one type gets a column of this type,
// other paths get JSON text. Numbers are int64 if all of them are integers that fit.

import { parameter, validationError } from '../../common/errors.js';
import type { JsonNumber } from '../../common/types.js';
import { EMPTY_COLUMN } from '../../filter/column-plans.js';
import type { WorkerPool } from '../../platform/pool.js';
import {
  countKinds,
  findPaths,
  type KindCounts,
  sumKinds,
  typesOf,
} from '../aggregate/found-schema.js';
import {
  countPathCells,
  type PathsInput,
  readColumns,
  selectPaths,
} from '../aggregate/path-columns.js';
import { visitNumbers } from '../aggregate/row-set.js';
import { defineSegmentsTask, runOverSegments } from '../aggregate/segment-tasks.js';
import type { SegmentView } from '../collection/snapshot.js';

/** About as many columns as data frames are made for. A chunk contains at least one row with all columns. */
const FIELDS_MAX = 1_024;

/** Paths typed together. The results of all segments for them are in memory at once. */
const PATHS_PER_STEP = 256;

export interface TypedField {
  readonly path: string;
  /** The type of the values, or of the elements of lists. */
  readonly type: 'int64' | 'float64' | 'boolean' | 'text' | 'json';
  readonly isList: boolean;
}

/** The fields in the order of their paths. Rejects with `limit_exceeded`, `overloaded` and the signal's reason. */
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
    const segments = views.map((view) => selectPaths(view, view.metadata, paths));
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
  const detail = `Expected metadata with at most ${FIELDS_MAX} paths for typed columns; found more. Select fewer vectors with a filter, or export metadata as text.`;
  return validationError([
    {
      location: parameter('metadata'),
      code: 'limit_exceeded',
      detail,
      expected: FIELDS_MAX,
    },
  ]);
}

interface PathTypes extends KindCounts {
  /** Whether all numbers are 64-bit integers. */
  readonly isInt64: boolean;
}

export const typePathsTask = defineSegmentsTask({
  name: 'bulk.typePaths',
  countCells: countPathCells,
  run(segment: PathsInput, paths: readonly string[]): readonly PathTypes[] {
    const columns = readColumns(segment);
    return paths.map((path) => {
      const column = columns.get(path) ?? EMPTY_COLUMN;
      let isInt64 = true;
      visitNumbers(column, segment, (value) => {
        isInt64 &&= fitsInt64(value);
      });
      return { ...countKinds(column, segment), isInt64 };
    });
  },
});

function fitsInt64(value: JsonNumber): boolean {
  if (Number.isSafeInteger(value)) return true;
  if (typeof value === 'number' && !Number.isInteger(value)) return false;
  return value >= -(2n ** 63n) && value < 2n ** 63n;
}

/** Null for a path without values, and for a path with only objects, whose members have their own columns. */
function fieldOf(path: string, parts: readonly PathTypes[]): TypedField | null {
  const isInt64 = parts.every((part) => part.isInt64);
  const kinds = sumKinds(parts.map((part) => part.kinds));
  const { null: nullCount, ...others } = typesOf(kinds);
  const [first, second] = namesOf(others);
  if (first === undefined) return nullCount === 0 ? null : fieldOfType(path, 'text');
  if (second !== undefined) return fieldOfType(path, 'json');
  if (first === 'object') return null;
  if (first !== 'array') return scalarField(path, first, isInt64);
  const { null: _, ...elements } = typesOf(sumKinds(parts.map((part) => part.elementKinds)));
  // Lists that are empty or contain only nulls do not show the type of their elements.
  const [element = 'string', otherElement] = namesOf(elements);
  if (otherElement !== undefined || element === 'array' || element === 'object') {
    return fieldOfType(path, 'json');
  }
  return { ...scalarField(path, element, isInt64), isList: true };
}

function namesOf<Name extends string>(counts: Readonly<Record<Name, number>>): Name[] {
  return (Object.keys(counts) as Name[]).filter((name) => counts[name] > 0);
}

function scalarField(
  path: string,
  type: 'boolean' | 'number' | 'string',
  isInt64: boolean,
): TypedField {
  if (type === 'number') return fieldOfType(path, isInt64 ? 'int64' : 'float64');
  return fieldOfType(path, type === 'string' ? 'text' : type);
}

function fieldOfType(path: string, type: TypedField['type']): TypedField {
  return { path, type, isList: false };
}
