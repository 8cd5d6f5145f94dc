// Rows from newline-delimited JSON: one vector a line, as the API takes it. A line that is not one
// is an error that names it. Metadata is kept as it is spelled.

import { CliError } from './failure.js';
import {
  type ImportRow,
  makeRow,
  type RowFields,
  rowError,
  show,
  toFloat32,
} from './import-row.js';
import { type JsonMember, membersOf } from './json-members.js';

/** A line is held in memory; 16 MB are 16 384 numbers with a thousand characters each. */
const LINE_BYTES_MAX = 16_000_000;
const NEWLINE = 0x0a;

export async function* readNdjsonRows(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  fields: RowFields,
): AsyncGenerator<ImportRow> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let lineNumber = 0;
  for await (const bytes of linesOf(name, chunks)) {
    lineNumber++;
    const place = `${name}:${lineNumber}`;
    let line: string;
    try {
      line = decoder.decode(bytes);
    } catch (cause) {
      throw new CliError(`${place}: expected UTF-8, found other bytes`, { cause });
    }
    if (line.trim() !== '') yield rowOfLine(place, line, fields);
  }
}

export function rowOfLine(place: string, line: string, fields: RowFields): ImportRow {
  const members = new Map<string, string>();
  try {
    for (const { name, text } of membersOf(line)) members.set(name, text);
  } catch (error) {
    throw rowError(place, `not a JSON object: ${(error as Error).message}`);
  }
  const id = readId(place, fields, members.get(fields.idField));
  const values = readValues(place, fields.valuesField, members.get(fields.valuesField));
  return makeRow(place, id, values, readMetadata(place, fields, members));
}

function readId(place: string, fields: RowFields, text: string | undefined): string | undefined {
  if (text === undefined) {
    if (!fields.isIdRequired) return undefined;
    throw rowError(place, `found no member ${show(fields.idField)}, expected the id of the vector`);
  }
  // Digits as they stand: as a number, a long id would change.
  if (/^-?\d+$/.test(text)) return text;
  const id = parse(place, fields.idField, text);
  if (typeof id === 'string') return id;
  throw rowError(place, `${fields.idField} is ${show(id)}, expected a string or a whole number`);
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
  { idField, valuesField, metadataFields }: RowFields,
  members: ReadonlyMap<string, string>,
): string {
  if (metadataFields !== undefined) {
    const chosen: JsonMember[] = [];
    for (const name of metadataFields) {
      const text = members.get(name);
      if (text === undefined) continue;
      parse(place, name, text);
      chosen.push({ name, text });
    }
    return `{${chosen.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
  }
  for (const name of members.keys()) {
    if (name === idField || name === valuesField || name === 'metadata') continue;
    throw rowError(
      place,
      `found the member ${show(name)}, expected ${idField}, ${valuesField} and metadata ` +
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

/** Lines without their ends; the last one need not have one. */
async function* linesOf(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let pieceBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      pieces.push(chunk.subarray(start, end));
      yield pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
      pieces = [];
      pieceBytes = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    pieces.push(chunk.subarray(start));
    pieceBytes += chunk.length - start;
    if (pieceBytes > LINE_BYTES_MAX) {
      throw new CliError(
        `${name}: expected one JSON object a line, found a line of more than ${LINE_BYTES_MAX} bytes`,
      );
    }
  }
  if (pieces.length > 0) yield Buffer.concat(pieces);
}
