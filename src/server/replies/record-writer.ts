// Writes replies as JSON by their schemas: a field is written from the property of the same name in camel case.
// Bodies are joined from texts rather than serialized as a whole: metadata is written verbatim, float32 as its
// shortest text, and long pages with yields to the event loop.

import { z } from 'zod';
import { assert } from '../../common/errors.js';
import { isJsonNumber, numberText } from '../../common/exact-json.js';
import { float32Text, vectorText } from '../../common/float-text.js';
import type { NamedValues, SparseVectors } from '../../common/types.js';
import type { MultiVector } from '../../common/vectors.js';
import type { QueryReply } from '../../database/api/query-api.js';
import { type WireFormat, wireFormats } from '../schemas/basics.js';
import { type PropertyName, propertyName } from '../wire/property-names.js';
import { jsonReply, type StoredReply } from '../wire/reply.js';
import { joinTexts, type OnGrown } from './join-texts.js';

export type ValuesEncoding = QueryReply['valuesEncoding'];

/** The properties of a record that the schema writes. */
export type RecordOf<Schema extends z.ZodObject> = {
  readonly [Name in keyof z.output<Schema> as PropertyName<Name>]: unknown;
};

type Write = (value: unknown, encoding: ValuesEncoding) => string;

/** Writes a record without its undefined properties. `encoding` applies to its vectors. */
export function createRecordWriter<Schema extends z.ZodObject>(
  schema: Schema,
): (record: RecordOf<Schema>, encoding?: ValuesEncoding) => string {
  const write = writerOfObject(schema);
  return (record, encoding = 'numbers') => write(record, encoding);
}

/** Creates replies with one record, for handlers that set headers or store the reply. */
export function repliesBy<Schema extends z.ZodObject>(
  schema: Schema,
): (record: RecordOf<Schema>, headers?: StoredReply['headers']) => StoredReply {
  const write = createRecordWriter(schema);
  return (record, headers) => jsonReply(write(record), headers);
}

/**
 * Writes a reply, row by row if it is a page, whose first field is an array. Throws `limit_exceeded` for a text
 * that is too long for a string, and what `onGrown` throws.
 */
export function createReplyWriter<Schema extends z.ZodObject>(
  schema: Schema,
): (reply: RecordOf<Schema>, onGrown: OnGrown, encoding?: ValuesEncoding) => Promise<string> {
  const [[name, first], ...rest] = Object.entries(schema.shape) as [[string, z.ZodType]];
  if (!(first instanceof z.ZodArray)) {
    const write = createRecordWriter(schema);
    return async (record, _, encoding) => write(record, encoding);
  }
  const writeRow = writerOf(first.element as z.ZodType);
  const writeRest = compileMembers(rest, true);
  return async (page, onGrown, encoding = 'numbers') => {
    const records = (page as Readonly<Record<string, readonly unknown[]>>)[name]!;
    const rows = await joinTexts(records, (record) => writeRow(record, encoding), onGrown);
    return `{${JSON.stringify(name)}:[${rows}]${writeRest(page, encoding)}}`;
  };
}

function writerOf(schema: z.ZodType): Write {
  if (schema instanceof z.ZodOptional) return writerOf(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodNullable) {
    const write = writerOf(schema.unwrap() as z.ZodType);
    return (value, encoding) => (value === null ? 'null' : write(value, encoding));
  }
  const known = wireFormats.get(schema);
  if (known !== undefined) return WRITERS[known.format];
  if (schema instanceof z.ZodObject) return writerOfObject(schema);
  if (schema instanceof z.ZodArray && schema.element instanceof z.ZodObject) {
    const write = writerOf(schema.element);
    return (value, encoding) =>
      `[${(value as readonly unknown[]).map((record) => write(record, encoding)).join(',')}]`;
  }
  if (schema instanceof z.ZodRecord && schema.valueType instanceof z.ZodObject) {
    const write = writerOfObject(schema.valueType);
    return (value, encoding) => {
      const members = Object.entries(value as object).map(
        ([name, member]) => `${JSON.stringify(name)}:${write(member, encoding)}`,
      );
      return `{${members.join(',')}}`;
    };
  }
  return (value) => (isJsonNumber(value) ? numberText(value) : JSON.stringify(value));
}

const objectWriters = new WeakMap<z.ZodObject, Write>();

/** One per schema, since several routes reply with the same records. */
function writerOfObject(schema: z.ZodObject): Write {
  const known = objectWriters.get(schema);
  if (known !== undefined) return known;
  const write = compileMembers(Object.entries(schema.shape), false);
  const made: Write = (record, encoding) => `{${write(record, encoding)}}`;
  objectWriters.set(schema, made);
  return made;
}

/**
 * Writes the members of an object without its braces; `isContinued` means after other members. Compiled on first use:
 * a start would spend a tenth of its time on the writers of all replies.
 */
function compileMembers(fields: Members, isContinued: boolean): Write {
  let write: Write | undefined;
  return (record, encoding) => {
    write ??= compiledMembers(fields, isContinued);
    return write(record, encoding);
  };
}

type Members = readonly (readonly [string, unknown])[];

/**
 * Straight-line code, since a loop over the fields takes 1.5 times as long. The code contains only names of our own
 * schemas.
 */
function compiledMembers(fields: Members, isContinued: boolean): Write {
  const isFirstOptional = fields[0]?.[1] instanceof z.ZodOptional;
  assert(isContinued || !isFirstOptional, 'the first field of a record is not optional');
  const writers = fields.map(([, schema]) => writerOf(schema as z.ZodType));
  const statements = fields.map(([name, schema], i) => {
    const value = `record[${JSON.stringify(propertyName(name))}]`;
    const comma = i > 0 || isContinued ? ',' : '';
    const append = `text += ${JSON.stringify(`${comma}"${name}":`)} + write${i}(${value}, encoding);`;
    return schema instanceof z.ZodOptional ? `if (${value} !== undefined) ${append}` : append;
  });
  const code = [
    ...writers.map((_, i) => `const write${i} = writers[${i}];`),
    "return (record, encoding) => { let text = '';",
    ...statements,
    'return text; };',
  ].join('\n');
  return new Function('writers', code)(writers) as Write;
}

const WRITERS: Readonly<Record<WireFormat, Write>> = {
  float32: (value) => float32Text(value as number),
  text: (value) => value as string,
  vector: (value, encoding) => valuesText(value as Float32Array, encoding),
  vectors(value, encoding) {
    const members = Object.entries(value as NamedValues).map(
      ([name, vector]) => `${JSON.stringify(name)}:${namedText(vector, encoding)}`,
    );
    return `{${members.join(',')}}`;
  },
  sparseVectors(value) {
    const members = Object.entries(value as SparseVectors).map(
      ([name, { indices, values }]) =>
        `${JSON.stringify(name)}:{"indices":[${indices.join()}],"values":${vectorText(values)}}`,
    );
    return `{${members.join(',')}}`;
  },
};

function namedText(vector: Float32Array | MultiVector, encoding: ValuesEncoding): string {
  if (vector instanceof Float32Array) return valuesText(vector, encoding);
  const { dimension, values } = vector;
  const texts: string[] = [];
  for (let start = 0; start < values.length; start += dimension) {
    texts.push(valuesText(values.subarray(start, start + dimension), encoding));
  }
  return `[${texts.join(',')}]`;
}

function valuesText(vector: Float32Array, encoding: ValuesEncoding): string {
  if (encoding === 'numbers') return vectorText(vector);
  const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
  return `"${bytes.toString('base64')}"`;
}
