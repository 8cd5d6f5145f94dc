// Chooses the columns of a schema for id, vector and metadata: by the names given in the request, else
// by common names.

import { SagittaError } from '../../common/errors.js';
import { isIdField } from './ids.js';
import { jsonViolation } from './json-fields.js';
import { isMultiField } from './multi-vectors.js';
import { type ArrowField, describeType, quoted } from './schema.js';
import { isElementsField } from './sparse-cells.js';
import { indicesName, SPARSE_PREFIX, valuesName } from './sparse-fields.js';
import { isTextField } from './strings.js';
import { isVectorField } from './vectors.js';

export interface ColumnNames {
  readonly idColumn?: string | undefined;
  readonly vectorColumn?: string | undefined;
  /** Whether rows have an unnamed vector. */
  readonly hasUnnamed: boolean;
  /** The names of the collection's named vectors, whose columns are `vectors.<name>`; absent for none. */
  readonly vectorNames?: readonly string[] | undefined;
  /** Those of its multi-vectors, whose columns are named alike; absent for none. */
  readonly multiNames?: readonly string[] | undefined;
  /** Those of its sparse vectors, with the columns `sparse_vectors.<name>.indices` and `….values`. */
  readonly sparseNames?: readonly string[] | undefined;
  /** Whether rows change vectors that there are: they need ids, and may lack the unnamed vector. */
  readonly isPatch?: boolean | undefined;
}

/** Column indexes. */
export interface VectorColumns {
  readonly id: number | null;
  /** Null where rows have no unnamed vector. */
  readonly values: number | null;
  readonly metadata: number | null;
  /** Those of the named vectors that have a column. */
  readonly named: readonly NamedColumn[];
  /** Those of the multi-vectors that have one. */
  readonly multi: readonly NamedColumn[];
  /** Those of the sparse vectors that have both. */
  readonly sparse: readonly SparseColumns[];
  /** The other columns: they become members of the metadata. */
  readonly members: readonly number[];
}

interface NamedColumn {
  readonly name: string;
  readonly index: number;
}

interface SparseColumns {
  readonly name: string;
  readonly indices: number;
  readonly values: number;
}

/** The names of a column of vectors for which none is given, the first that exists. */
export const VECTOR_NAMES: readonly string[] = ['values', 'vector', 'embedding'];
const ID_NAME = 'id';
const METADATA_NAME = 'metadata';
const NAMED_PREFIX = 'vectors.';

/** For rows to write. Throws `invalid_request`, or `invalid_metadata` for a column without a JSON form. */
export function chooseVectorColumns(
  fields: readonly ArrowField[],
  names: ColumnNames,
): VectorColumns {
  requireUniqueNames(fields);
  const id = chooseId(fields, names.idColumn);
  if (id === null && names.isPatch) throw noIds(fields);
  const values = chooseUnnamed(fields, names);
  if (id !== null && id === values)
    throw invalid(`Column ${quoted(fields[id]!.name)} cannot be both id and vector.`);
  const { named, multi } = chooseNamed(fields, names);
  const sparse = chooseSparse(fields, names);
  const taken = new Set([
    id,
    values,
    ...[...named, ...multi].map((vector) => vector.index),
    ...sparse.flatMap((vector) => [vector.indices, vector.values]),
  ]);
  const isTaken = (index: number) => taken.has(index);
  const metadata = indexOf(fields, METADATA_NAME);
  const members = fields.flatMap((field, index) =>
    isTaken(index) || field.name === METADATA_NAME ? [] : [index],
  );
  const hasMetadata = metadata !== null && !isTaken(metadata);
  if (hasMetadata) checkMetadata(fields[metadata]!, members, fields);
  for (const index of members) requireJson(fields[index]!);
  return { id, values, metadata: hasMetadata ? metadata : null, named, multi, sparse, members };
}

/** Throws `invalid_request` for a column that rows must or must not have. */
function chooseUnnamed(fields: readonly ArrowField[], names: ColumnNames): number | null {
  const { vectorColumn, hasUnnamed, isPatch = false } = names;
  const { vectorNames = [], multiNames = [], sparseNames = [] } = names;
  const index = chooseVectors(fields, vectorColumn);
  if (hasUnnamed && index === null && !isPatch) throw noVectors(fields);
  if (hasUnnamed || index === null) return index;
  const expected =
    [
      ...[...vectorNames, ...multiNames].map((name) => quoted(`${NAMED_PREFIX}${name}`)),
      ...sparseNames.map((name) => quoted(indicesName(name))),
    ].join(', ') || 'none';
  throw invalid(
    `The column ${quoted(fields[index]!.name)} is for the unnamed vector, which the collection does not have; expected ${expected}. A column of metadata needs another name.`,
  );
}

/** Without names there are no columns of named vectors: such columns are metadata. */
function chooseNamed(
  fields: readonly ArrowField[],
  { vectorNames = [], multiNames = [] }: ColumnNames,
): Pick<VectorColumns, 'named' | 'multi'> {
  const names = [...vectorNames, ...multiNames];
  const named: NamedColumn[] = [];
  const multi: NamedColumn[] = [];
  if (names.length === 0) return { named, multi };
  for (const [index, field] of fields.entries()) {
    if (!field.name.startsWith(NAMED_PREFIX)) continue;
    const name = field.name.slice(NAMED_PREFIX.length);
    if (!names.includes(name)) {
      throw invalid(
        `The column ${quoted(field.name)} is for a named vector that the collection does not have; expected ${names.join(', ')} after "vectors.".`,
      );
    }
    const isMulti = multiNames.includes(name);
    if (isMulti) requireLists(field);
    else requireVectors(field);
    (isMulti ? multi : named).push({ name, index });
  }
  return { named, multi };
}

/** Without names there are no columns of sparse vectors: such columns are metadata. */
function chooseSparse(
  fields: readonly ArrowField[],
  { sparseNames = [] }: ColumnNames,
): readonly SparseColumns[] {
  if (sparseNames.length === 0) return [];
  const columnsOf = new Map(
    sparseNames.flatMap((name) => [
      [indicesName(name), name],
      [valuesName(name), name],
    ]),
  );
  const unknown = fields.find(({ name }) => name.startsWith(SPARSE_PREFIX) && !columnsOf.has(name));
  if (unknown !== undefined) {
    throw invalid(
      `The column ${quoted(unknown.name)} is for a sparse vector that the collection does not have; expected ${[...columnsOf.keys()].map(quoted).join(', ')}.`,
    );
  }
  return sparseNames.flatMap((name) => {
    const indices = indexOf(fields, indicesName(name));
    const values = indexOf(fields, valuesName(name));
    if (indices === null && values === null) return [];
    if (indices === null || values === null) {
      const columns = [indicesName(name), valuesName(name)].map(quoted);
      if (indices === null) columns.reverse();
      throw invalid(`The column ${columns[0]} comes without ${columns[1]}; expected both.`);
    }
    for (const index of [indices, values]) requireElements(fields[index]!);
    return [{ name, indices, values }];
  });
}

function requireElements(field: ArrowField): void {
  if (isElementsField(field)) return;
  throw invalid(
    `The column ${quoted(field.name)} must hold lists of numbers, of any lengths; found ${describeType(field)}.`,
  );
}

function requireLists(field: ArrowField): void {
  if (isMultiField(field)) return;
  throw invalid(
    `The column ${quoted(field.name)} must hold lists of vectors, which are lists of numbers; found ${describeType(field)}.`,
  );
}

function requireVectors(field: ArrowField): void {
  if (isVectorField(field)) return;
  throw invalid(
    `The vector column ${quoted(field.name)} must hold lists of numbers; found ${describeType(field)}.`,
  );
}

/** The vector column; null if there is none and none was named. Throws `invalid_request`. */
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

/** The id column; null if there is none and none was named. Throws `invalid_request`. */
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

/** Two columns of one name are ambiguous. Throws `invalid_request`. */
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

/** The first names only: schemas can be long. */
function listed(fields: readonly ArrowField[]): string {
  if (fields.length === 0) return 'no columns';
  const shown = fields.slice(0, 8).map(({ name }) => quoted(name));
  return `${shown.join(', ')}${fields.length > shown.length ? ` and ${fields.length - shown.length} more` : ''}`;
}

function invalid(detail: string): SagittaError {
  return new SagittaError('invalid_request', detail);
}
