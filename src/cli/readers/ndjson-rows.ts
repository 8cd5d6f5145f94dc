// Rows from newline-delimited JSON, one vector per line as in the API, or from a JSON array of such
// objects. Metadata keeps its spelling. An invalid row is an error with the number of its line.

import { VECTOR_NAMES } from '../../formats/arrow/column-choice.js';
import { type JsonMember, readUniqueMembers } from '../../formats/json/json-scanner.js';
import type { CliError } from '../failure.js';
import { nearestHint, noSuchName } from '../names.js';
import { elementsOf, linesOf, type TextRow } from './byte-stream.js';
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
import { createLineDecoder, textChunks, textHead } from './utf8.js';

/** Names that are remembered for an error. */
const SEEN_MAX = 100;

export async function openNdjson(source: InputSource, options: ReadOptions): Promise<RowReader> {
  return {
    rowCount: undefined,
    batches: (startRow) => readRows(source, options, startRow),
  };
}

const OPEN_BRACKET = 0x5b;

function textRowsOf(source: InputSource): AsyncGenerator<TextRow> {
  const first = textHead(source).find((byte) => byte > 0x20);
  const textRows = first === OPEN_BRACKET ? elementsOf : numberedLines;
  return textRows(source.name, textChunks(source));
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
  const unseen = new UnseenNames(options);
  let row = 0;
  for await (const { bytes, line } of textRowsOf(source)) {
    // Skipped rows were checked by an earlier run.
    if (row++ < startRow) continue;
    const text = decode(location(line), bytes);
    const members = membersOf(location(line), options.isNanNull ? withoutNan(text) : text);
    unseen.mark(members);
    const parsed = rowOfMembers(location(line), members, options);
    const batch = builder.add({ number: line, ...parsed });
    if (batch !== undefined) yield batch;
  }
  // Not after a resumed part, whose rows may have had the members.
  if (startRow === 0 && row > 0) unseen.check(source.name);
  const rest = builder.take();
  if (rest !== undefined) yield rest;
}

/** The names of --fields and --exclude that no row has had so far: any row may lack a member, but not all. */
class UnseenNames {
  readonly #option: string;
  readonly #unseen: Set<string>;
  /** Other names, of which one may be meant. */
  readonly #seen = new Set<string>();

  constructor({ fields, exclude = [] }: ReadOptions) {
    this.#option = fields === undefined ? '--exclude' : '--fields';
    this.#unseen = new Set(fields ?? exclude);
  }

  mark(members: ReadonlyMap<string, string>): void {
    if (this.#unseen.size === 0) return;
    for (const name of members.keys()) {
      this.#unseen.delete(name);
      if (this.#seen.size < SEEN_MAX) this.#seen.add(name);
    }
  }

  /** Throws CliError for a name that no row has. */
  check(file: string): void {
    const [name] = this.#unseen;
    if (name === undefined) return;
    throw noSuchName(file, 'member', { name, option: this.#option, names: [...this.#seen] });
  }
}

const TEXT_OR_NAN = /"(?:[^"\\]|\\.)*"|\bNaN\b/g;

/** The text with null for NaN, which Python writes, but JSON does not have. In a vector, null is refused as well. */
export function withoutNan(text: string): string {
  if (!text.includes('NaN')) return text;
  return text.replace(TEXT_OR_NAN, (token) => (token === 'NaN' ? 'null' : token));
}

function nanHint(text: string): string {
  return withoutNan(text) === text
    ? ''
    : '; JSON has no NaN: in metadata, --nan null stores null instead';
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
  return rowOfMembers(location, membersOf(location, line), options);
}

/** The members of a JSON object by name, as text. */
function membersOf(location: string, line: string): ReadonlyMap<string, string> {
  try {
    return new Map(readUniqueMembers(line).map(({ name, text }) => [name, text]));
  } catch (error) {
    throw rowError(location, `not a JSON object: ${(error as Error).message}${nanHint(line)}`);
  }
}

function rowOfMembers(
  location: string,
  members: ReadonlyMap<string, string>,
  options: ReadOptions,
): LineRow {
  const { vectors = UNNAMED_ONLY } = options;
  const names = {
    id: options.idField ?? 'id',
    values: options.valuesField ?? VECTOR_NAMES.find((name) => members.has(name)) ?? 'values',
  };
  return {
    id: readId(location, names.id, options.idField !== undefined, members),
    values: readUnnamed(location, names.values, members, vectors),
    ...(vectors.named.size > 0 && {
      vectors: readNamed(location, members.get('vectors'), vectors),
    }),
    metadata: readMetadata(location, names, options, members),
  };
}

function readUnnamed(
  location: string,
  field: string,
  members: ReadonlyMap<string, string>,
  { hasUnnamed, isPatch = false }: TargetVectors,
): Float32Array {
  const text = members.get(field);
  if (text !== undefined) return readValues(location, field, text);
  if (!hasUnnamed || isPatch) return new Float32Array(0);
  throw missing(location, field, 'vector', members);
}

function readNamed(
  location: string,
  text: string | undefined,
  { named, isPatch = false }: TargetVectors,
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
    if (vector === null && isPatch) {
      throw rowError(
        location,
        `${field} is null, with which an import does not remove a vector; leave it out, or send the file to the API, as POST /v1/collections/{id}/vectors?mode=patch`,
      );
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
  members: ReadonlyMap<string, string>,
): string | undefined {
  const text = members.get(field);
  if (text !== undefined) return idOfText(location, field, text);
  if (!isRequired) return undefined;
  throw missing(location, field, 'id', members);
}

function missing(
  location: string,
  field: string,
  what: string,
  members: ReadonlyMap<string, string>,
): CliError {
  const hint = nearestHint(field, members.keys());
  return rowError(location, `the member ${show(field)} (the ${what}) is missing${hint}`);
}

/** The id that the JSON text of a member stands for. Throws CliError. */
export function idOfText(location: string, field: string, text: string): string {
  // Digits are kept as text: as a number, a long id would be rounded.
  if (/^-?\d+$/.test(text)) return text;
  const id = parse(location, field, text);
  if (typeof id === 'string') return id;
  throw rowError(location, `${field} is ${show(id)}, expected a string or an integer`);
}

function readValues(location: string, field: string, text: string): Float32Array {
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
    const expected = [names.id, names.values, 'metadata'];
    throw rowError(
      location,
      `unknown member ${show(name)}, expected ${expected.join(', ')} (select members to store as ` +
        `metadata with --fields, leave members out with --exclude)${nearestHint(name, expected)}`,
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
    const { message } = error as Error;
    throw rowError(location, `${name} is not valid JSON: ${message}${nanHint(text)}`);
  }
}
