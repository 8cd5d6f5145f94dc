// Rows from newline-delimited JSON: one vector a line, as the API takes it. A line that is not one
// is an error that names it. Metadata is kept as it is spelled.

import { type JsonMember, membersOf } from './json-members.js';
import { createLineDecoder, linesOf } from './lines.js';
import {
  BatchBuilder,
  type ReadOptions,
  type RowBatch,
  type RowReader,
  rowError,
  show,
  toFloat32,
  VALUES_FIELDS,
} from './row-batch.js';
import type { InputSource } from './source.js';

export async function openNdjson(source: InputSource, options: ReadOptions): Promise<RowReader> {
  return {
    rowCount: undefined,
    batches: (startRow) => readNdjson(source.name, source.chunks(), options, startRow),
  };
}

async function* readNdjson(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  options: ReadOptions,
  startRow: number,
): AsyncGenerator<RowBatch> {
  const place = (lineNumber: number): string => `${name}:${lineNumber}`;
  const decode = createLineDecoder();
  const builder = new BatchBuilder(options.rowsPerBatch, place);
  let lineNumber = 0;
  let row = 0;
  for await (const bytes of linesOf(name, chunks)) {
    lineNumber++;
    // A row that is skipped was read before, so its line is only told from an empty one.
    if (row < startRow) {
      if (!isBlank(bytes)) row++;
      continue;
    }
    const line = decode(place(lineNumber), bytes);
    if (line.trim() === '') continue;
    const parsed = rowOfLine(place(lineNumber), line, options);
    const batch = builder.add({ number: lineNumber, ...parsed });
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
  readonly values: Float32Array;
  readonly metadata: string;
}

export function rowOfLine(place: string, line: string, options: ReadOptions): LineRow {
  const members = new Map<string, string>();
  try {
    for (const { name, text } of membersOf(line)) members.set(name, text);
  } catch (error) {
    throw rowError(place, `not a JSON object: ${(error as Error).message}`);
  }
  const names = {
    id: options.idField ?? 'id',
    values: options.valuesField ?? VALUES_FIELDS.find((name) => members.has(name)) ?? 'values',
  };
  return {
    id: readId(place, names.id, options.idField !== undefined, members.get(names.id)),
    values: readValues(place, names.values, members.get(names.values)),
    metadata: readMetadata(place, names, options.fields, members),
  };
}

function readId(
  place: string,
  field: string,
  isRequired: boolean,
  text: string | undefined,
): string | undefined {
  if (text === undefined) {
    if (!isRequired) return undefined;
    throw rowError(place, `found no member ${show(field)}, expected the id of the vector`);
  }
  // Digits as they stand: as a number, a long id would change.
  if (/^-?\d+$/.test(text)) return text;
  const id = parse(place, field, text);
  if (typeof id === 'string') return id;
  throw rowError(place, `${field} is ${show(id)}, expected a string or a whole number`);
}

function readValues(place: string, field: string, text: string | undefined): Float32Array {
  if (text === undefined) {
    throw rowError(place, `found no member ${show(field)}, expected the values of the vector`);
  }
  const values = parse(place, field, text);
  if (Array.isArray(values)) return toFloat32(place, field, values);
  if (typeof values === 'string') {
    const bytes = Buffer.from(values, 'base64');
    if (bytes.length % 4 === 0 && bytes.toString('base64') === values) {
      const copy = new Float32Array(bytes.length / 4);
      new Uint8Array(copy.buffer).set(bytes);
      return toFloat32(place, field, copy);
    }
  }
  throw rowError(
    place,
    `${field} is ${show(values)}, expected numbers or base64 of little-endian float32`,
  );
}

function readMetadata(
  place: string,
  names: { readonly id: string; readonly values: string },
  fields: readonly string[] | undefined,
  members: ReadonlyMap<string, string>,
): string {
  if (fields !== undefined) {
    const chosen: JsonMember[] = [];
    for (const name of fields) {
      const text = members.get(name);
      if (text === undefined) continue;
      parse(place, name, text);
      chosen.push({ name, text });
    }
    return `{${chosen.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
  }
  for (const name of members.keys()) {
    if (name === names.id || name === names.values || name === 'metadata') continue;
    throw rowError(
      place,
      `found the member ${show(name)}, expected ${names.id}, ${names.values} and metadata ` +
        '(--fields names members that become metadata)',
    );
  }
  const text = members.get('metadata') ?? '{}';
  const metadata = parse(place, 'metadata', text);
  if (typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)) return text;
  throw rowError(place, `metadata is ${show(metadata)}, expected an object`);
}

function parse(place: string, name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw rowError(place, `${name} is not JSON: ${(error as Error).message}`);
  }
}
