// Converts the zod schemas of routes to JSON Schema in the form that client generators handle best: numbers have a
// format, a nullable type is one type, and defaults are in the descriptions. As `default` they would make members
// required in the types of most generators, and would be wrong together with a cursor.

import { z } from 'zod';

/** A schema of JSON Schema 2020-12 with the keywords that are read here. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: JsonSchemas;
  readonly anyOf?: readonly JsonSchema[];
  readonly [keyword: string]: unknown;
}

type JsonSchemas = Readonly<Record<string, JsonSchema>>;

const INT32_MAX = 2 ** 31 - 1;

/**
 * Converts schemas together, since named ones are shared only within one conversion. `components` contains those
 * with an `id`.
 */
export function convertSchemas(schemas: Readonly<Record<string, z.ZodType>>): {
  readonly properties: JsonSchemas;
  readonly components: JsonSchemas;
} {
  const converted = z.toJSONSchema(z.object(schemas), { io: 'input', unrepresentable: 'any' });
  const text = JSON.stringify(converted).replaceAll('"#/$defs/', '"#/components/schemas/');
  const { properties, $defs = {} } = JSON.parse(text) as {
    readonly properties: JsonSchemas;
    readonly $defs?: JsonSchemas;
  };
  const definitions = Object.entries($defs).map(([name, { id: _, ...schema }]) => [name, schema]);
  return {
    properties: rewriteMembers(properties),
    components: rewriteMembers(Object.fromEntries(definitions)),
  };
}

function rewriteMembers(schemas: JsonSchemas): JsonSchemas {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, rewrite(schema)]),
  );
}

/** Keywords whose value is a schema or a boolean. */
const SINGLE = ['items', 'additionalProperties', 'propertyNames'];
const LISTS = ['anyOf', 'oneOf'];

function rewrite(schema: JsonSchema): JsonSchema {
  const rewritten = Object.entries(schema).map(([keyword, value]) => {
    if (keyword === 'properties') return [keyword, rewriteMembers(value as JsonSchemas)];
    if (LISTS.includes(keyword)) return [keyword, (value as JsonSchema[]).map(rewrite)];
    const isSchema = SINGLE.includes(keyword) && typeof value === 'object';
    return [keyword, isSchema ? rewrite(value as JsonSchema) : value];
  });
  return describeDefault(joinNull(formatNumber(dropNoise(Object.fromEntries(rewritten)))));
}

/** Removes the pattern of a format, the bounds of safe integers, and the constraint that names are strings. */
function dropNoise(schema: JsonSchema): JsonSchema {
  const { pattern, minimum, maximum, propertyNames, ...rest } = schema;
  const isAnyName = JSON.stringify(propertyNames) === '{"type":"string"}';
  return {
    ...rest,
    ...(pattern === undefined || schema.format !== undefined ? {} : { pattern }),
    ...(minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? {} : { minimum }),
    ...(maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? {} : { maximum }),
    ...(propertyNames === undefined || isAnyName ? {} : { propertyNames }),
  };
}

function formatNumber(schema: JsonSchema): JsonSchema {
  if (schema.type === 'number') return { format: 'double', ...schema };
  if (schema.type !== 'integer') return schema;
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema;
  const isSmall = minimum >= -INT32_MAX - 1 && maximum <= INT32_MAX;
  return { ...schema, format: isSmall ? 'int32' : 'int64' };
}

/**
 * Writes a nullable plain type as a list of two types, for which generators need no union. Enumerations are unchanged,
 * since they would not include null.
 */
function joinNull(schema: JsonSchema): JsonSchema {
  const { anyOf: [inner, other, ...more] = [], ...rest } = schema;
  if (typeof inner?.type !== 'string' || other?.type !== 'null' || more.length > 0) return schema;
  if ('enum' in inner || 'const' in inner) return schema;
  return { ...inner, ...rest, type: [inner.type, 'null'] };
}

function describeDefault(schema: JsonSchema): JsonSchema {
  if (!('default' in schema)) return schema;
  const { default: value, description, ...rest } = schema;
  const text = `By default \`${typeof value === 'string' ? value : JSON.stringify(value)}\`.`;
  return { ...rest, description: description === undefined ? text : `${description} ${text}` };
}
