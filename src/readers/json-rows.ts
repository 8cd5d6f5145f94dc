// Reads rows from newline-delimited JSON, one object per line as in the API, or from a JSON array of such objects.
// Metadata keeps its spelling. An invalid row is an error with its line number.

import { parseExactJson } from '../common/exact-json.js';
import { VECTOR_NAMES } from '../formats/arrow/column-choice.js';
import { readUniqueMembers } from '../formats/json/json-scanner.js';
import { elementsOf, isBlankLine, linesOf, type TextRow } from './byte-stream.js';
import { PLAIN_NUMBERS, vectorOfBase64, vectorOfText } from './cells.js';
import type { InputSource } from './input-source.js';
import { type MemberText, mergedMetadata, nanHint, withoutNan } from './metadata-text.js';
import { nearestHint, noSuchName } from './names.js';
import { RowError, show } from './read-error.js';
import { type ReaderOptions, type TargetVectors, UNNAMED_ONLY } from './reader-options.js';
import {
  collectBatches,
  type FoundRow,
  type ParsedRow,
  type RowReader,
  type Sample,
  toFloat32,
} from './row-batch.js';
import { createLineDecoder, textChunks, textHead } from './utf8.js';

/** Names that are remembered for an error message. */
const SEEN_MAX = 100;
const OPEN_BRACKET = 0x5b;

export async function openJson(source: InputSource, options: ReaderOptions): Promise<RowReader> {
  const location = (line: number): string => `${source.name}:${line}`;
  return {
    rowCount: undefined,
    batches: (startRow) =>
      collectBatches({ rows: rowsOf(source, options, startRow), startRow, location }, options),
    sample: (rowCount) => sampleOf(source, rowCount),
  };
}

/** The lines that are not blank, or the elements of an array. */
async function* textRowsOf(source: InputSource): AsyncGenerator<TextRow> {
  const first = textHead(source).find((byte) => byte > 0x20);
  if (first === OPEN_BRACKET) {
    yield* elementsOf(source.name, textChunks(source));
    return;
  }
  for await (const row of linesOf(source.name, textChunks(source))) {
    if (!isBlankLine(row.bytes)) yield row;
  }
}

async function* rowsOf(
  source: InputSource,
  options: ReaderOptions,
  startRow: number,
): AsyncGenerator<FoundRow> {
  const decode = createLineDecoder();
  const unseen = new UnseenNames(options);
  let hasRows = false;
  for await (const { bytes, line } of textRowsOf(source)) {
    hasRows = true;
    const location = `${source.name}:${line}`;
    const parse = () => {
      const text = decode(location, bytes);
      const members = membersOf(location, options.isNanNull ? withoutNan(text) : text);
      unseen.mark(members);
      return rowOfMembers(location, members, options);
    };
    yield { number: line, parse };
  }
  // After a resume, the skipped rows may have had the members.
  if (startRow === 0 && hasRows) unseen.check(source.name);
}

/** Skips invalid rows. Throws RowError when no row is valid. */
async function sampleOf(source: InputSource, rowCount: number): Promise<Sample> {
  const decode = createLineDecoder();
  const rows: Record<string, unknown>[] = [];
  let problem: RowError | undefined;
  for await (const { bytes, line } of textRowsOf(source)) {
    const location = `${source.name}:${line}`;
    try {
      const text = withoutNan(decode(location, bytes));
      membersOf(location, text);
      rows.push(parseExactJson(text) as Record<string, unknown>);
    } catch (error) {
      problem ??= error instanceof RowError ? error : new RowError(location, String(error));
    }
    if (rows.length === rowCount) break;
  }
  if (rows.length === 0 && problem !== undefined) throw problem;
  return { columns: [...new Set(rows.flatMap((row) => Object.keys(row)))], rows };
}

/** The names of --fields and --exclude that no row has had so far: a row may lack a member, but not every row. */
class UnseenNames {
  readonly #option: string;
  readonly #unseen: Set<string>;
  /** Names found in rows, one of which may be the one that was meant. */
  readonly #seen = new Set<string>();

  constructor({ fields, exclude = [] }: ReaderOptions) {
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

  /** Throws ReadError for a name that no row has. */
  check(file: string): void {
    const [name] = this.#unseen;
    if (name === undefined) return;
    throw noSuchName(file, 'member', { name, option: this.#option, names: [...this.#seen] });
  }
}

export function rowOfLine(location: string, line: string, options: ReaderOptions): ParsedRow {
  return rowOfMembers(location, membersOf(location, line), options);
}

/** The members of a JSON object by name, as text. */
function membersOf(location: string, line: string): ReadonlyMap<string, string> {
  try {
    return new Map(readUniqueMembers(line).map(({ name, text }) => [name, text]));
  } catch (error) {
    const problem = `not a JSON object: ${(error as Error).message}`;
    throw new RowError(location, problem, nanHint(line));
  }
}

function rowOfMembers(
  location: string,
  members: ReadonlyMap<string, string>,
  options: ReaderOptions,
): ParsedRow {
  const { vectors = UNNAMED_ONLY, idField, valuesField } = options;
  const values = valuesField ?? VECTOR_NAMES.find((name) => members.has(name)) ?? 'values';
  const names = { id: idField ?? 'id', values };
  return {
    id: idField === null ? undefined : readId(location, names.id, idField !== undefined, members),
    values:
      options.vectorColumns === undefined
        ? readUnnamed(location, names.values, members, vectors)
        : readNumbers(location, options.vectorColumns, members),
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

/** The vector whose values are separate members. */
function readNumbers(
  location: string,
  fields: readonly string[],
  members: ReadonlyMap<string, string>,
): Float32Array {
  const values = fields.map((field) => {
    const text = members.get(field);
    if (text === undefined) throw missing(location, field, 'value', members);
    return parse(location, field, text);
  });
  const at = values.findIndex((value) => typeof value !== 'number');
  if (at === -1) return toFloat32(location, 'values', values);
  throw new RowError(location, `${fields[at]} is ${show(values[at])}, expected a number`);
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
    throw new RowError(location, `vectors is ${show(sent)}, expected an object of vectors by name`);
  }
  for (const [name, vector] of Object.entries(sent)) {
    const dimension = named.get(name);
    const field = `vectors.${name}`;
    if (dimension === undefined) {
      const names = [...named.keys()].join(', ');
      throw new RowError(location, `${field} is not a vector of the collection, expected ${names}`);
    }
    if (vector === null && isPatch) {
      throw new RowError(
        location,
        `${field} is null, but an import does not remove vectors; leave it out, or send the file to the API with POST /v1/collections/{id}/vectors?mode=patch`,
      );
    }
    if (vector === null) continue;
    const values = readValues(location, field, JSON.stringify(vector));
    if (values.length !== dimension) {
      throw new RowError(location, `${field} has ${values.length} values, expected ${dimension}`);
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
): RowError {
  const hint = nearestHint(field, members.keys());
  return new RowError(location, `the member ${show(field)} (the ${what}) is missing${hint}`);
}

/** Parses an id from the JSON text of a member. Throws RowError. */
export function idOfText(location: string, field: string, text: string): string {
  // Digits are kept as text: as a number, a long id would be rounded.
  if (/^-?\d+$/.test(text)) return text;
  const id = parse(location, field, text);
  if (typeof id === 'string') return id;
  throw new RowError(location, `${field} is ${show(id)}, expected a string or an integer`);
}

function readValues(location: string, field: string, text: string): Float32Array {
  const values = parse(location, field, text);
  if (Array.isArray(values)) return toFloat32(location, field, values);
  if (typeof values === 'string') {
    const decoded = vectorOfBase64(values);
    if (decoded !== undefined) return toFloat32(location, field, decoded);
    if (/^\s*[[({]?\s*[-+.\d]/.test(values) && /[\s,;]/.test(values.trim())) {
      return vectorOfText(location, values, PLAIN_NUMBERS);
    }
  }
  throw new RowError(
    location,
    `${field} is ${show(values)}, expected an array of numbers or base64-encoded little-endian float32`,
  );
}

function readMetadata(
  location: string,
  names: { readonly id: string; readonly values: string },
  { fields, embed, exclude = [], vectors = UNNAMED_ONLY }: ReaderOptions,
  members: ReadonlyMap<string, string>,
): string {
  const isOther = (name: string) =>
    name !== names.id &&
    name !== names.values &&
    !(name === 'vectors' && vectors.named.size > 0) &&
    !exclude.includes(name);
  // Rows with texts are those of any program; rows with vectors are written for the API.
  const stored = fields ?? (embed === undefined ? undefined : [...members.keys()].filter(isOther));
  if (stored !== undefined) {
    const chosen: MemberText[] = [];
    let object = '';
    for (const name of stored) {
      const text = members.get(name);
      if (text === undefined) continue;
      const value = parse(location, name, text);
      if (name !== 'metadata') chosen.push({ name, text });
      else if (value !== null) object = typeof value === 'string' ? value.trim() : text;
    }
    return mergedMetadata(location, object, chosen);
  }
  for (const name of members.keys()) {
    if (name === 'metadata' || !isOther(name)) continue;
    const expected = [names.id, names.values, 'metadata'];
    throw new RowError(
      location,
      `unknown member ${show(name)}, expected ${expected.join(', ')} (select members to store as ` +
        `metadata with --fields, leave members out with --exclude)${nearestHint(name, expected)}`,
    );
  }
  const text = (exclude.includes('metadata') ? undefined : members.get('metadata')) ?? '{}';
  const metadata = parse(location, 'metadata', text);
  if (typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)) return text;
  throw new RowError(location, `metadata is ${show(metadata)}, expected an object`);
}

function parse(location: string, name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const problem = `${name} is not valid JSON: ${(error as Error).message}`;
    throw new RowError(location, problem, nanHint(text));
  }
}
