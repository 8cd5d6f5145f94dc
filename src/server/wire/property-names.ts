// Converts between the names of the API and those of the code: the member `top_k` of a schema is the property `topK`.
// Names that no schema declares, such as those in metadata and filters, are unchanged.

import { z } from 'zod';
import { assert } from '../../common/errors.js';
import type { JsonObject } from '../../common/types.js';

export type PropertyName<Name> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<PropertyName<Tail>>}`
  : Name;

/** Whether a type is that of objects with arbitrary names and values. */
type IsJson<Value> = string extends keyof Value ? (JsonObject extends Value ? true : false) : false;

/** The output of a schema under the names of properties. */
export type Properties<Value> = Value extends readonly (infer Item)[]
  ? Properties<Item>[]
  : Value extends Float32Array | Uint32Array
    ? Value
    : Value extends object
      ? IsJson<Value> extends true
        ? Value
        : { [Name in keyof Value as PropertyName<Name>]: Properties<Value[Name]> }
      : Value;

export function propertyName(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

type Rename = (value: unknown) => unknown;

/** Compiled once per schema; null if no name differs. */
const renames = new WeakMap<z.core.$ZodType, Rename | null>();

/** Renames the members of a value that the schema has parsed. */
export function toProperties<Schema extends z.ZodType>(
  schema: Schema,
  value: z.output<Schema>,
): Properties<z.output<Schema>> {
  return (renameOf(schema)?.(value) ?? value) as Properties<z.output<Schema>>;
}

function renameOf(schema: z.core.$ZodType): Rename | null {
  let rename = renames.get(schema);
  if (rename === undefined) {
    rename = makeRename(schema);
    renames.set(schema, rename);
  }
  return rename;
}

function makeRename(schema: z.core.$ZodType): Rename | null {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault
  ) {
    const inner = renameOf(schema.unwrap());
    return inner && ((value) => (value == null ? value : inner(value)));
  }
  if (schema instanceof z.ZodArray) {
    const inner = renameOf(schema.element);
    return inner && ((items) => (items as unknown[]).map(inner));
  }
  if (schema instanceof z.ZodRecord) {
    const inner = renameOf(schema.valueType);
    return inner && ((members) => mapValues(members as object, inner));
  }
  if (schema instanceof z.ZodUnion) return makeUnionRename(schema);
  if (!(schema instanceof z.ZodObject)) return null;
  const members = new Map(
    Object.entries(schema.shape).map(([name, member]) => [
      name,
      { property: propertyName(name), rename: renameOf(member) },
    ]),
  );
  const isSame = [...members].every(([name, { property, rename }]) => property === name && !rename);
  if (isSame) return null;
  return (value) => {
    const renamed: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(value as object)) {
      const known = members.get(name);
      assert(known !== undefined, 'a schema passes on no members that it does not name');
      const { property, rename } = known;
      renamed[property] = member === undefined || rename === null ? member : rename(member);
    }
    return renamed;
  };
}

/** The alternatives of a union are values that are not objects, and at most one object with names that differ. */
function makeUnionRename(schema: z.ZodUnion): Rename | null {
  const [inner = null, ...others] = schema.options.map(renameOf).filter((each) => each !== null);
  assert(others.length === 0, 'a union has one alternative whose names differ');
  return inner && ((value) => (typeof value === 'object' && value !== null ? inner(value) : value));
}

/** Clients choose the names, which may be those of members of every object. */
function mapValues(members: object, rename: Rename): object {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [
      name,
      value === undefined ? value : rename(value),
    ]),
  );
}
