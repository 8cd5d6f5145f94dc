// Chooses the columns of a schema for id, vector and metadata: by the names in the request or, without them, by
// common names.

import { SagittaError } from '../../common/errors.js';
import { type ColumnSpec, UNNAMED } from '../../common/vectors.js';
import { isIdField } from './ids.js';
import { jsonViolation } from './json-fields.js';
import { type ArrowField, describeType, quoted } from './schema.js';
import { isTextField } from './strings.js';
import { ARROW_KINDS, columnNames } from './vector-kinds.js';

export interface ColumnNames {
  readonly idColumn?: string | undefined;
  readonly vectorColumn?: string | undefined;
  /** The vectors that rows may have, by name. */
  readonly vectors: Readonly<Record<string, ColumnSpec>>;
  /** Whether rows change existing vectors. They then need ids and may lack the unnamed vector. */
  readonly isPatch?: boolean | undefined;
}

/** Column indexes. */
export interface VectorColumns {
  readonly id: number | null;
  /** Only vectors that have columns. */
  readonly vectors: readonly ChosenVectors[];
  /** Texts in place of the unnamed vector; null if it has a column, or no column has texts. */
  readonly embed: number | null;
  readonly metadata: number | null;
  /** The other columns, which become members of the metadata. */
  readonly members: readonly number[];
}

interface ChosenVectors {
  readonly name: string;
  readonly indexes: readonly number[];
}

/** Names of the vector column; the first that exists is used if the request names none. */
export const VECTOR_NAMES: readonly string[] = ['values', 'vector', 'embedding'];
const ID_NAME = 'id';
const METADATA_NAME = 'metadata';
/** The column of texts that a model turns into the unnamed vector, if that has no column. */
const EMBED_NAME = 'embed';

/** Chooses columns of rows to write. Throws `invalid_request`, or `invalid_metadata` for a column without a JSON form. */
export function chooseVectorColumns(
  fields: readonly ArrowField[],
  names: ColumnNames,
): VectorColumns {
  requireUniqueNames(fields);
  const id = chooseId(fields, names.idColumn);
  if (id === null && names.isPatch) throw noIds(fields);
  const unnamed = chooseUnnamed(fields, names);
  const embed =
    unnamed === null && Object.hasOwn(names.vectors, UNNAMED) ? chooseEmbed(fields) : null;
  if (unnamed === null && embed === null) requirePatch(fields, names);
  if (id !== null && id === unnamed)
    throw invalid(`Column ${quoted(fields[id]!.name)} cannot be both id and vector.`);
  const vectors = [
    ...(unnamed === null ? [] : [{ name: UNNAMED, indexes: [unnamed] }]),
    ...chooseNamed(fields, names),
  ];
  const taken = new Set([id, embed, ...vectors.flatMap(({ indexes }) => indexes)]);
  const isTaken = (index: number) => taken.has(index);
  const metadata = indexOf(fields, METADATA_NAME);
  const members = fields.flatMap((field, index) =>
    isTaken(index) || field.name === METADATA_NAME ? [] : [index],
  );
  const hasMetadata = metadata !== null && !isTaken(metadata);
  if (hasMetadata) checkMetadata(fields[metadata]!, members, fields);
  for (const index of members) requireJson(fields[index]!);
  return { id, vectors, embed, metadata: hasMetadata ? metadata : null, members };
}

/** The column of texts; null if no text column has the name. */
export function chooseEmbed(fields: readonly ArrowField[]): number | null {
  const index = indexOf(fields, EMBED_NAME);
  return index !== null && isTextField(fields[index]!) ? index : null;
}

/** Throws `invalid_request` unless rows may lack the unnamed vector. */
function requirePatch(
  fields: readonly ArrowField[],
  { vectors, isPatch = false }: ColumnNames,
): void {
  if (Object.hasOwn(vectors, UNNAMED) && !isPatch) throw noVectors(fields);
}

/** Throws `invalid_request` if the column is present but not allowed. */
function chooseUnnamed(
  fields: readonly ArrowField[],
  { vectorColumn, vectors }: ColumnNames,
): number | null {
  const { [UNNAMED]: unnamed, ...named } = vectors;
  const index = chooseVectors(fields, vectorColumn);
  if (unnamed !== undefined || index === null) return index;
  throw invalid(
    `The column ${quoted(fields[index]!.name)} is for the unnamed vector, which the collection does not have; expected ${namesOf(named).map(quoted).join(', ') || 'none'}. A column of metadata needs another name.`,
  );
}

/** If the collection has no vectors of a member, columns whose names begin with the member are metadata. */
function chooseNamed(
  fields: readonly ArrowField[],
  { vectors: { [UNNAMED]: _, ...vectors } }: ColumnNames,
): ChosenVectors[] {
  for (const { kind } of Object.values(vectors)) requireKnown(fields, vectors, ARROW_KINDS[kind]);
  return Object.entries(vectors).flatMap(([name, spec]) => {
    const names = columnNames(spec, name);
    const indexes = names.flatMap((column) => indexOf(fields, column) ?? []);
    if (indexes.length === 0) return [];
    const missing = names.find((column) => indexOf(fields, column) === null);
    if (missing !== undefined) {
      const [found] = indexes;
      throw invalid(
        `The column ${quoted(fields[found!]!.name)} comes without ${quoted(missing)}; expected both.`,
      );
    }
    const { isField, expected } = ARROW_KINDS[spec.kind];
    const wrong = indexes.map((index) => fields[index]!).find((field) => !isField(field));
    if (wrong === undefined) return [{ name, indexes }];
    throw invalid(
      `The column ${quoted(wrong.name)} must hold ${expected}; found ${describeType(wrong)}.`,
    );
  });
}

/** Throws `invalid_request` for a column of the member that belongs to no vector. */
function requireKnown(
  fields: readonly ArrowField[],
  vectors: ColumnNames['vectors'],
  { member, what }: { readonly member: string; readonly what: string },
): void {
  const prefix = `${member}.`;
  const ofPrefix = Object.entries(vectors).filter(
    ([, { kind }]) => ARROW_KINDS[kind].member === member,
  );
  const known = namesOf(Object.fromEntries(ofPrefix));
  const unknown = fields.find(({ name }) => name.startsWith(prefix) && !known.includes(name));
  if (unknown === undefined) return;
  throw invalid(
    `The column ${quoted(unknown.name)} is for ${what} that the collection does not have; expected ${known.map(quoted).join(', ')}.`,
  );
}

function namesOf(vectors: ColumnNames['vectors']): string[] {
  return Object.entries(vectors).flatMap(([name, spec]) => columnNames(spec, name));
}

function requireVectors(field: ArrowField): void {
  if (ARROW_KINDS.dense.isField(field)) return;
  throw invalid(
    `The vector column ${quoted(field.name)} must hold lists of numbers; found ${describeType(field)}.`,
  );
}

/** Returns the vector column; null if none exists and none was named. Throws `invalid_request`. */
export function chooseVectors(fields: readonly ArrowField[], name?: string): number | null {
  const index =
    name === undefined
      ? (VECTOR_NAMES.map((known) => indexOf(fields, known)).find((found) => found !== null) ??
        null)
      : indexOf(fields, name);
  if (index === null) {
    if (name === undefined) return null;
    throw invalid(`There is no vector column ${quoted(name)}; found ${listed(fields)}.`);
  }
  requireVectors(fields[index]!);
  return index;
}

/** Returns the id column; null if none exists and none was named. Throws `invalid_request`. */
export function chooseId(fields: readonly ArrowField[], name?: string): number | null {
  const index = indexOf(fields, name ?? ID_NAME);
  if (index === null) {
    if (name === undefined) return null;
    throw invalid(`There is no id column ${quoted(name)}; found ${listed(fields)}.`);
  }
  const field = fields[index]!;
  if (!isIdField(field)) {
    throw invalid(
      `The id column ${quoted(field.name)} must hold text, integers or UUIDs; found ${describeType(field)}.`,
    );
  }
  return index;
}

/** Throws `invalid_request` for columns of the same name, which are ambiguous. */
export function requireUniqueNames(fields: readonly ArrowField[]): void {
  const names = new Set<string>();
  for (const { name } of fields) {
    if (names.has(name)) throw invalid(`Two columns have the name ${quoted(name)}.`);
    names.add(name);
  }
}

function checkMetadata(
  field: ArrowField,
  members: readonly number[],
  fields: readonly ArrowField[],
): void {
  const { kind } = field.type;
  const isObject = (kind === 'struct' || kind === 'map') && field.dictionary === null;
  if (!isObject && !isTextField(field)) {
    throw invalid(
      `The column "metadata" must hold JSON text, structs or maps; found ${describeType(field)}.`,
    );
  }
  if (isObject) requireJson(field);
  if (kind !== 'struct') return;
  const names = new Set(field.children.map(({ name }) => name));
  const twice = members.find((index) => names.has(fields[index]!.name));
  if (twice === undefined) return;
  throw invalid(
    `The column ${quoted(fields[twice]!.name)} and a member of "metadata" have the same name.`,
  );
}

function requireJson(field: ArrowField): void {
  const violation = jsonViolation(field);
  if (violation === null) return;
  throw new SagittaError('invalid_metadata', `Column ${quoted(field.name)}: ${violation}`);
}

function indexOf(fields: readonly ArrowField[], name: string): number | null {
  const index = fields.findIndex((field) => field.name === name);
  return index < 0 ? null : index;
}

export function noVectors(fields: readonly ArrowField[]): SagittaError {
  return invalid(
    `There is no column "values", "vector" or "embedding"; found ${listed(fields)}. ` +
      'Name another one with the parameter vector_column.',
  );
}

function noIds(fields: readonly ArrowField[]): SagittaError {
  return invalid(
    `A patch names the vectors that it changes; there is no column "${ID_NAME}", found ${listed(fields)}. Name another one with the parameter id_column.`,
  );
}

/** Lists only the first names, because schemas can be long. */
function listed(fields: readonly ArrowField[]): string {
  if (fields.length === 0) return 'no columns';
  const shown = fields.slice(0, 8).map(({ name }) => quoted(name));
  return `${shown.join(', ')}${fields.length > shown.length ? ` and ${fields.length - shown.length} more` : ''}`;
}

function invalid(detail: string): SagittaError {
  return new SagittaError('invalid_request', detail);
}
