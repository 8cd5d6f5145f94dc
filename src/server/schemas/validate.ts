// Validates bodies and query parameters by their schemas. Violations become issues with our codes and messages;
// valid values get the names of properties. Nothing in a body is coerced. The text of a query parameter is parsed
// by the type that its schema declares.

import { z } from 'zod';
import {
  type ErrorCode,
  type FieldPath,
  field,
  ISSUES_MAX,
  type IssueLocation,
  parameter,
  type ValidationIssue,
  type Violation,
  validationError,
} from '../../common/errors.js';
import { parseExactJson } from '../../common/exact-json.js';
import { cutName, describeUnknownName } from '../../common/unknown-name.js';
import { describeKind } from '../bodies/value-kinds.js';
import { yieldToEventLoop } from '../limits/event-loop-yield.js';
import { type Properties, toProperties } from '../wire/property-names.js';

type Issue = z.core.$ZodIssue;

/** Throws the violations of the schema. */
export function validateBody<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
): Properties<z.output<Schema>> {
  return validate(schema, body, (path) => field(...path));
}

/** The number of elements that are validated in about a millisecond. */
const STEP_ELEMENTS = 128;

/**
 * The same with yields to the event loop, for a body with an array of at most `countMax` elements in its member
 * `name`.
 */
export async function validateLongBody<Schema extends z.ZodType<Record<string, unknown>>>(
  schema: Schema,
  body: Record<string, unknown>,
  { name, countMax }: { readonly name: string; readonly countMax: number },
): Promise<Properties<z.output<Schema>>> {
  const elements = body[name];
  if (!Array.isArray(elements) || elements.length > countMax) return validateBody(schema, body);
  const valid: unknown[] = [];
  let result: z.ZodSafeParseResult<z.output<Schema>> | undefined;
  for (let from = 0; from < elements.length; from += STEP_ELEMENTS) {
    if (from > 0) await yieldToEventLoop();
    result = schema.safeParse({ ...body, [name]: elements.slice(from, from + STEP_ELEMENTS) });
    // Only the whole body gives issues their locations and order.
    if (!result.success) return validateBody(schema, body);
    valid.push(...(result.data[name] as unknown[]));
  }
  return result?.success
    ? toProperties(schema, { ...result.data, [name]: valid })
    : validateBody(schema, body);
}

/** The valid values of requests without parameters. */
const withoutParameters = new WeakMap<z.ZodObject, object>();

/** @param query values as text; a repeated parameter is an array. */
export function validateQuery<Schema extends z.ZodObject>(
  schema: Schema,
  query: Readonly<Record<string, unknown>>,
): Properties<z.output<Schema>> {
  // Without a prototype, since parameters may have any name.
  const values: Record<string, unknown> = Object.create(null);
  const entries = Object.entries(query);
  const known = entries.length === 0 ? withoutParameters.get(schema) : undefined;
  if (known !== undefined) return known as Properties<z.output<Schema>>;
  for (const [name, text] of entries) {
    if (Array.isArray(text)) throw validationError([repeated(name, text.length)]);
    const parameter = Object.hasOwn(schema.shape, name) ? schema.shape[name] : undefined;
    values[name] = typeof text === 'string' ? readText(text, typeOf(parameter)) : text;
  }
  const valid = validate(schema, values, ([name, ...path]) => parameter(String(name), ...path));
  if (entries.length === 0) withoutParameters.set(schema, Object.freeze(valid));
  return valid;
}

/** Throws `unknown_parameter` for each of the query parameters. */
export function refuseParameters(names: readonly string[], detail: string): void {
  if (names.length === 0) return;
  throw validationError(
    names.map((name) => ({ location: parameter(name), code: 'unknown_parameter', detail })),
  );
}

function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  locate: (path: FieldPath) => IssueLocation,
): Properties<z.output<Schema>> {
  const result = schema.safeParse(value, { error: knownNames });
  if (result.success) return toProperties(schema, result.data);
  const issues: ValidationIssue[] = [];
  for (const issue of result.error.issues.flatMap(insideUnion)) {
    const room = ISSUES_MAX - issues.length;
    if (room === 0) break;
    // The keys of JSON are never symbols.
    const path = issue.path as (string | number)[];
    if (issue.code === 'unrecognized_keys') {
      const names = issue.message.split(NAME_SEPARATOR).filter((name) => name !== '');
      for (const key of issue.keys.slice(0, room)) {
        issues.push({
          location: locate([...path, cutName(key)]),
          code: 'unknown_parameter',
          detail: describeUnknownName(key, names),
        });
      }
    } else {
      issues.push({ location: locate(path), ...describeIssue(issue, valueAt(value, path)) });
    }
  }
  throw validationError(issues);
}

/** The issues of the alternative of a union whose type the value has, if there is one. */
function insideUnion(issue: Issue): readonly Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const fitting = issue.errors.filter((issues) =>
    issues.every(({ path, code }) => path.length > 0 || code === 'unrecognized_keys'),
  );
  const [only] = fitting;
  if (only === undefined || fitting.length > 1) return [issue];
  return only.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }));
}

const NAME_SEPARATOR = ', ';

/** Stores the known names of an object in the message of an issue about unknown ones. */
function knownNames(issue: z.core.$ZodRawIssue): string | undefined {
  const isUnknown = issue.code === 'unrecognized_keys' && issue.inst instanceof z.ZodObject;
  return isUnknown ? Object.keys(issue.inst.shape).join(NAME_SEPARATOR) : undefined;
}

function repeated(name: string, count: number): ValidationIssue {
  return {
    location: parameter(name),
    code: 'invalid_request',
    detail: `Expected the parameter once; found it ${count} times.`,
    expected: 1,
    actual: count,
  };
}

/** The type of a parameter, without wrappers of its schema. */
function typeOf(schema: z.core.$ZodType | undefined): string | undefined {
  let inner = schema;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault) inner = inner.unwrap();
  return inner instanceof z.ZodNumberFormat ? 'integer' : inner?._zod.def.type;
}

/** Text that does not match the type is returned unchanged, and rejected by the schema. */
function readText(text: string, type: string | undefined): unknown {
  if (type === 'integer' && /^-?\d{1,16}$/.test(text)) return Number(text);
  if (type === 'number' && /^-?\d{1,16}(\.\d{1,20})?(e[+-]?\d{1,3})?$/i.test(text)) {
    return Number(text);
  }
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  if (type === 'custom' || type === 'array' || type === 'union') {
    try {
      return parseExactJson(text);
    } catch {
      return text;
    }
  }
  return text;
}

/** Members whose violations have their own code. */
const CODE_OF_MEMBER = new Map<PropertyKey, ErrorCode>([
  ['filter', 'invalid_filter'],
  ['vector', 'invalid_vector'],
  ['values', 'invalid_vector'],
  ['metadata', 'invalid_metadata'],
]);

function describeIssue(issue: Issue, value: unknown): Violation {
  const member = CODE_OF_MEMBER.get(issue.path.at(-1) ?? '');
  // The parameter `metadata` of exports is an enumeration.
  const code = issue.code === 'invalid_value' ? 'invalid_request' : (member ?? 'invalid_request');
  const found = describeValue(value);
  if (issue.code === 'too_big') {
    const actual = measure(value);
    const expected = Number(issue.maximum);
    return {
      code: 'limit_exceeded',
      detail: `Expected at most ${expected}${unitOf(issue.origin)}; found ${actual}.`,
      expected,
      actual,
    };
  }
  if (issue.code === 'custom' && issue.params !== undefined)
    return issue.params as unknown as Violation;
  if (value === undefined && issue.code === 'invalid_type') {
    return { code, detail: `It is required: ${expectation(issue)}.` };
  }
  const expected = expectation(issue);
  if (expected === '') return { code, detail: issue.message };
  return { code, detail: `Expected ${expected}; found ${found}.`, expected, actual: found };
}

function expectation(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return NAME_OF_TYPE[issue.expected] ?? `a ${issue.expected}`;
    case 'invalid_value':
      return issue.values.map((value) => JSON.stringify(value)).join(' or ');
    case 'too_small':
      return `at least ${issue.minimum}${unitOf(issue.origin)}`;
    case 'invalid_format':
      return issue.format === 'regex' ? `text like ${issue.pattern}` : `a ${issue.format}`;
    case 'invalid_union':
      return issue.errors.flatMap((errors) => errors.map(expectation)).join(' or ');
    default:
      return '';
  }
}

const NAME_OF_TYPE: Readonly<Record<string, string>> = {
  int: 'an integer',
  object: 'an object',
  record: 'an object',
  array: 'an array',
  boolean: 'true or false',
};

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters';
  return origin === 'array' ? ' elements' : '';
}

function measure(value: unknown): number {
  return typeof value === 'string' || Array.isArray(value) ? value.length : Number(value);
}

/** The maximum length of quoted text in errors. */
const SHOWN_CHARACTERS_MAX = 64;

function describeValue(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string' && value.length <= SHOWN_CHARACTERS_MAX) {
    return JSON.stringify(value);
  }
  return describeKind(value);
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<PropertyKey, unknown>)[key];
  }
  return at;
}
