// The matches of queries as columns, derived from the schema that JSON is written by: a field that is added to the
// schema gets a column.

import { z } from 'zod';
import { type Bitmap, createBitmap, setBit } from '../../common/bitmap.js';
import type { LeafColumn } from '../../common/columns.js';
import { stringifyExactJson } from '../../common/exact-json.js';
import type { FieldShapes } from '../../common/types.js';
import { utf8ColumnOf } from '../../common/utf8-column.js';
import {
  columnOfVectors,
  specOf,
  UNNAMED,
  type Vector,
  type VectorColumn,
} from '../../common/vectors.js';
import type { Match } from '../../database/api/query-api.js';
import { wireFormats } from '../schemas/basics.js';
import { propertyName } from '../wire/property-names.js';
import type { TableColumn } from './table.js';
import { type VectorField, vectorColumns } from './vector-columns.js';

/** The matches of a batch. */
export interface MatchRows {
  readonly count: number;
  readonly matches: readonly Match[];
  readonly vectors: readonly VectorColumn[];
}

/** Whether all matches have an optional field. A field that is not listed is nullable. */
export type MatchFields = Readonly<Record<string, boolean>>;

export function matchColumns(
  schema: z.ZodObject,
  fields: MatchFields,
  vectors: readonly VectorField[],
): TableColumn<MatchRows>[] {
  const columns = Object.entries(schema.shape)
    .filter(([name]) => fields[name] !== false)
    .flatMap(([name, member]) => columnOf(name, member as z.ZodType, name in fields));
  return [...columns, ...vectorColumns(vectors)];
}

/** Empty for vectors, which have their own columns. */
function columnOf(name: string, schema: z.ZodType, isInAll: boolean): TableColumn<MatchRows>[] {
  const isOptional = schema instanceof z.ZodOptional;
  const isNullable = isOptional && !isInAll;
  const type = typeOf(isOptional ? (schema.unwrap() as z.ZodType) : schema);
  if (type === null) return [];
  const property = propertyName(name) as keyof Match;
  const of = ({ matches }: MatchRows): LeafColumn => {
    const values = matches.map((match) => match[property]);
    return { leaf: LEAVES[type](values), presence: isNullable ? presenceOf(values) : null };
  };
  return [{ name, type: type === 'text' ? 'json' : type, isNullable, of }];
}

/** Converts values to a column of each type. Absent values may become anything. */
const LEAVES = {
  utf8: (values) => utf8ColumnOf(values.map((value = '') => value as string)),
  /** Verbatim JSON. */
  text: (values) => utf8ColumnOf(values.map((value = '') => value as string)),
  json: (values) => utf8ColumnOf(values.map((value = null) => stringifyExactJson(value))),
  float32: (values) => Float32Array.from(values as number[]),
  float64: (values) => Float64Array.from(values as number[]),
  boolean(values) {
    const bits = createBitmap(values.length);
    for (const [row, value] of values.entries()) if (value === true) setBit(bits, row);
    return bits;
  },
} as const satisfies Readonly<Record<string, (values: readonly unknown[]) => LeafColumn['leaf']>>;

/** Null for vectors. */
function typeOf(schema: z.ZodType): keyof typeof LEAVES | null {
  const known = wireFormats.get(schema)?.format;
  if (known !== undefined) return known === 'float32' || known === 'text' ? known : null;
  if (schema instanceof z.ZodString) return 'utf8';
  if (schema instanceof z.ZodNumber) return 'float64';
  return schema instanceof z.ZodBoolean ? 'boolean' : 'json';
}

function presenceOf(values: readonly unknown[]): Bitmap {
  const presence = createBitmap(values.length);
  for (const [row, value] of values.entries()) if (value !== undefined) setBit(presence, row);
  return presence;
}

/** The vectors of matches; null for none. */
export function matchVectorFields(vectors: FieldShapes | null): VectorField[] {
  return Object.entries(vectors ?? {}).map(([name, shape]) => ({ name, ...specOf(shape) }));
}

export function vectorsOfMatches(
  matches: readonly Match[],
  fields: readonly VectorField[],
): VectorColumn[] {
  return fields.map((field) => {
    const vectors = matches.map((match) => vectorOf(match, field));
    return columnOfVectors<VectorField>(field, vectors);
  });
}

function vectorOf(match: Match, { kind, name }: VectorField): Vector | undefined {
  if (name === UNNAMED) return match.values;
  const vectors = (kind === 'sparse' ? match.sparseVectors : match.vectors) ?? {};
  // The name of a vector may be that of an inherited member.
  return Object.hasOwn(vectors, name) ? vectors[name] : undefined;
}
