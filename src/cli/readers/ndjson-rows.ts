// Rows from newline-delimited JSON, one vector per line as in the API, or from a JSON array of such
// objects. Metadata keeps its spelling. An invalid row is an error with the number of its line.

import { VECTOR_NAMES } from '../../formats/arrow/column-choice.js';
import { type JsonMember, readUniqueMembers } from '../../formats/json/json-scanner.js';
import { createLineDecoder, elementsOf, linesOf, type TextRow } from './byte-stream.js';
import {
  BatchBuilder,
  type ReadOptions,
  type RowBatch,
  type RowReader,
  rowError,
  show,
  type TargetVectors,
  toFloat32,
  UNNAMED_ONLY,
} from './row-batch.js';
import type { InputSource } from './source.js';

export async function openNdjson(source: InputSource, options: ReadOptions): Promise<RowReader> {
  return {
    rowCount: undefined,
    batches: (startRow) => readRows(source, options, startRow),
  };
}

const OPEN_BRACKET = 0x5b;

function textRowsOf({ name, head, chunks }: InputSource): AsyncGenerator<TextRow> {
  const first = head.find((byte) => byte > 0x20);
  return first === OPEN_BRACKET ? elementsOf(name, chunks()) : numberedLines(name, chunks());
}

/** The lines that are not empty. */
async function* numberedLines(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<TextRow> {
  let line = 0;
  for await (const bytes of linesOf(name, chunks)) {
    line++;
    if (!isBlank(bytes)) yield { bytes, line };
  }
}

async function* readRows(
  source: InputSource,
  options: ReadOptions,
  startRow: number,
): AsyncGenerator<RowBatch> {
  const location = (line: number): string => `${source.name}:${line}`;
  const decode = createLineDecoder();
  const builder = new BatchBuilder(options.rowsPerBatch, location, options.vectors);
  let row = 0;
  for await (const { bytes, line } of textRowsOf(source)) {
    // Skipped rows were checked by an earlier run.
    if (row++ < startRow) continue;
    const parsed = rowOfLine(location(line), decode(location(line), bytes), options);
    const batch = builder.add({ number: line, ...parsed });
    if (batch !== undefined) yield batch;
  }
  const rest = builder.take();
  if (rest !== undefined) yield rest;
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte <= 0x20);
}

interface LineRow {
  readonly id: string | undefined;
  /** Without elements where the collection has no unnamed vector. */
  readonly values: Float32Array;
  /** Absent where the collection has no named vectors. */
  readonly vectors?: ReadonlyMap<string, Float32Array>;
  readonly metadata: string;
}

export function rowOfLine(location: string, line: string, options: ReadOptions): LineRow {
  const members = new Map<string, string>();
  try {
    for (const { name, text } of readUniqueMembers(line)) members.set(name, text);
  } catch (error) {
    throw rowError(location, `not a JSON object: ${(error as Error).message}`);
  }
  const { vectors = UNNAMED_ONLY } = options;
  const names = {
    id: options.idField ?? 'id',
    values: options.valuesField ?? VECTOR_NAMES.find((name) => members.has(name)) ?? 'values',
  };
  return {
    id: readId(location, names.id, options.idField !== undefined, members.get(names.id)),
    values: readUnnamed(location, names.values, members.get(names.values), vectors),
    ...(vectors.named.size > 0 && {
      vectors: readNamed(location, members.get('vectors'), vectors),
    }),
    metadata: readMetadata(location, names, options, members),
  };
}

function readUnnamed(
  location: string,
  field: string,
  text: string | undefined,
  { hasUnnamed }: TargetVectors,
): Float32Array {
  if (text === undefined && !hasUnnamed) return new Float32Array(0);
  return readValues(location, field, text);
}

function readNamed(
  location: string,
  text: string | undefined,
  { named }: TargetVectors,
): ReadonlyMap<string, Float32Array> {
  const vectors = new Map<string, Float32Array>();
  if (text === undefined) return vectors;
  const sent = parse(location, 'vectors', text);
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) {
    throw rowError(location, `vectors is ${show(sent)}, expected an object of vectors by name`);
  }
  for (const [name, vector] of Object.entries(sent)) {
    const dimension = named.get(name);
    const field = `vectors.${name}`;
    if (dimension === undefined) {
      const names = [...named.keys()].join(', ');
      throw rowError(location, `${field} is not a vector of the collection, expected ${names}`);
    }
    if (vector === null) continue;
    const values = readValues(location, field, JSON.stringify(vector));
    if (values.length !== dimension) {
      throw rowError(location, `${field} has ${values.length} values, expected ${dimension}`);
    }
    vectors.set(name, values);
  }
  return vectors;
}

function readId(
  location: string,
  field: string,
  isRequired: boolean,
  text: string | undefined,
): string | undefined {
  if (text === undefined) {
    if (!isRequired) return undefined;
    throw rowError(location, `the member ${show(field)} (the id) is missing`);
  }
  return idOfText(location, field, text);
}

/** The id that the JSON text of a member stands for. Throws CliError. */
export function idOfText(location: string, field: string, text: string): string {
  // Digits are kept as text: as a number, a long id would be rounded.
  if (/^-?\d+$/.test(text)) return text;
  const id = parse(location, field, text);
  if (typeof id === 'string') return id;
  throw rowError(location, `${field} is ${show(id)}, expected a string or an integer`);
}

function readValues(location: string, field: string, text: string | undefined): Float32Array {
  if (text === undefined) {
    throw rowError(location, `the member ${show(field)} (the vector) is missing`);
  }
  const values = parse(location, field, text);
  if (Array.isArray(values)) return toFloat32(location, field, values);
  if (typeof values === 'string') {
    const bytes = Buffer.from(values, 'base64');
    if (bytes.length % 4 === 0 && bytes.toString('base64') === values) {
      const copy = new Float32Array(bytes.length / 4);
      new Uint8Array(copy.buffer).set(bytes);
      return toFloat32(location, field, copy);
    }
  }
  throw rowError(
    location,
    `${field} is ${show(values)}, expected an array of numbers or base64-encoded little-endian float32`,
  );
}

function readMetadata(
  location: string,
  names: { readonly id: string; readonly values: string },
  { fields, exclude = [], vectors = UNNAMED_ONLY }: ReadOptions,
  members: ReadonlyMap<string, string>,
): string {
  if (fields !== undefined) {
    const chosen: MemberText[] = [];
    for (const name of fields) {
      const text = members.get(name);
      if (text === undefined) continue;
      parse(location, name, text);
      chosen.push({ name, text });
    }
    return objectText(chosen);
  }
  for (const name of members.keys()) {
    if (name === names.id || name === names.values || name === 'metadata') continue;
    if (name === 'vectors' && vectors.named.size > 0) continue;
    if (exclude.includes(name)) continue;
    throw rowError(
      location,
      `unknown member ${show(name)}, expected ${names.id}, ${names.values} and metadata ` +
        '(select members to store as metadata with --fields, leave members out with --exclude)',
    );
  }
  const text = (exclude.includes('metadata') ? undefined : members.get('metadata')) ?? '{}';
  const metadata = parse(location, 'metadata', text);
  if (typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)) return text;
  throw rowError(location, `metadata is ${show(metadata)}, expected an object`);
}

type MemberText = Pick<JsonMember, 'name' | 'text'>;

/** The text of a JSON object with these members, whose values keep their spelling. */
export function objectText(members: readonly MemberText[]): string {
  return `{${members.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
}

function parse(location: string, name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw rowError(location, `${name} is not valid JSON: ${(error as Error).message}`);
  }
}
