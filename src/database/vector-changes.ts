// Named, sparse and multi-vectors that are added to a collection or dropped. Both change its definition only: records
// bring the vectors that were added, and what was dropped is left out of what is read and removed from files by
// compaction.

import { field, type Violation, validationError } from '../common/errors.js';
import type { Limits } from '../common/limits.js';
import type { VectorShape } from '../common/types.js';
import { addedColumn, type NamesOfColumns } from '../segment/vector-names.js';
import type { CollectionShape, SparseShapes, VectorsChange } from './api.js';
import type { CollectionDefinition } from './collection/manifest.js';

type VectorLimits = Pick<Limits, 'namedVectorsMax' | 'recordValuesMax' | 'sparseVectorsMax'>;

export function findVectorsViolation(
  vectors: Readonly<Record<string, VectorShape>>,
  { namedVectorsMax, recordValuesMax }: VectorLimits,
): Violation | null {
  const named = Object.values(vectors);
  if (named.length > namedVectorsMax) {
    const detail = `Expected at most ${namedVectorsMax} named vectors; found ${named.length}.`;
    return { code: 'limit_exceeded', detail, expected: namedVectorsMax, actual: named.length };
  }
  const total = named.reduce((sum, { dimension }) => sum + dimension, 0);
  if (total <= recordValuesMax) return null;
  const detail = `Expected at most ${recordValuesMax} dimensions in all named vectors; found ${total}.`;
  return { code: 'limit_exceeded', detail, expected: recordValuesMax, actual: total };
}

export function findSparseViolation(
  vectors: object,
  { sparseVectorsMax }: VectorLimits,
): Violation | null {
  const actual = Object.keys(vectors).length;
  if (actual <= sparseVectorsMax) return null;
  const detail = `Expected at most ${sparseVectorsMax} sparse vectors; found ${actual}.`;
  return { code: 'limit_exceeded', detail, expected: sparseVectorsMax, actual };
}

type Vectors = Pick<
  CollectionDefinition,
  'vectors' | 'multiVectors' | 'sparseVectors' | 'columns' | 'additionCount'
>;

/** The vectors of the definition after the change. Throws `invalid_request` and `limit_exceeded`. */
export function changedVectors(
  definition: CollectionDefinition,
  change: VectorsChange,
  limits: VectorLimits,
): Vectors {
  const changing = new ChangingVectors(definition);
  const vectors = Object.entries(change.vectors ?? {});
  const sparseVectors = Object.entries(change.sparseVectors ?? {});
  // A name that one kind of vectors gives up is free for the other.
  for (const [name, vector] of vectors) {
    if (vector === null) changing.drop('vectors', name, ['vectors', 'multiVectors']);
  }
  for (const [name, settings] of sparseVectors) {
    if (settings === null) changing.drop('sparse_vectors', name, ['sparseVectors']);
  }
  for (const [name, vector] of vectors) {
    if (vector === null) continue;
    const { isMulti, ...shape } = vector;
    changing.add('vectors', name, isMulti ? 'multiVectors' : 'vectors', shape);
  }
  for (const [name, settings] of sparseVectors) {
    if (settings !== null) changing.add('sparse_vectors', name, 'sparseVectors', settings);
  }
  const changed = changing.vectors();
  const named = { ...changed.vectors, ...changed.multiVectors };
  refuse('vectors', findVectorsViolation(named, limits));
  refuse('sparse_vectors', findSparseViolation(changed.sparseVectors ?? {}, limits));
  requireAny({ ...definition, ...changed });
  return changed;
}

/** Where the segments have the vectors of the definition. */
export function namesOfColumns(definition: CollectionDefinition): NamesOfColumns {
  const { vectors, multiVectors, sparseVectors, columns = {}, additionCount = 0 } = definition;
  return {
    names: Object.keys({ ...vectors, ...multiVectors, ...sparseVectors }),
    columns,
    additionCount,
  };
}

type Kind = 'vectors' | 'multiVectors' | 'sparseVectors';
type Shape = VectorShape | SparseShapes[string];

const KIND_NAMES: Readonly<Record<Kind, string>> = {
  vectors: 'a named vector',
  multiVectors: 'a multi-vector',
  sparseVectors: 'a sparse vector',
};

class ChangingVectors {
  readonly #kinds: Readonly<Record<Kind, Map<string, Shape>>>;
  readonly #columns: Map<string, string>;
  #additionCount: number;

  constructor(definition: CollectionDefinition) {
    const { vectors = {}, multiVectors = {}, sparseVectors = {} } = definition;
    this.#kinds = {
      vectors: new Map<string, Shape>(Object.entries(vectors)),
      multiVectors: new Map<string, Shape>(Object.entries(multiVectors)),
      sparseVectors: new Map<string, Shape>(Object.entries(sparseVectors)),
    };
    this.#columns = new Map(Object.entries(definition.columns ?? {}));
    this.#additionCount = definition.additionCount ?? 0;
  }

  /** Does nothing where there is such a vector. `member`: of the request. */
  add(member: string, name: string, kind: Kind, shape: Shape): void {
    const known = this.#kindOf(name);
    if (known === undefined) {
      this.#kinds[kind].set(name, shape);
      this.#additionCount++;
      this.#columns.set(name, addedColumn(name, this.#additionCount));
      return;
    }
    const found = this.#kinds[known].get(name)!;
    if (known === kind && describeShape(found) === describeShape(shape)) return;
    const is = `${KIND_NAMES[known]}${describeShape(found)}`;
    const wanted = `${KIND_NAMES[kind]}${describeShape(shape)}`;
    const detail = `"${name}" is ${is} of the collection; the request has ${wanted}. Drop it with null first, or use another name.`;
    throw validationError([{ location: field(member, name), code: 'invalid_request', detail }]);
  }

  drop(member: string, name: string, kinds: readonly Kind[]): void {
    const kind = this.#kindOf(name);
    if (kind !== undefined && kinds.includes(kind)) {
      this.#kinds[kind].delete(name);
      this.#columns.delete(name);
      return;
    }
    const known = kinds.flatMap((one) => [...this.#kinds[one].keys()]);
    const expected =
      known.length === 0 ? 'the collection has none' : `expected ${known.join(', ')}`;
    const detail = `There is no such vector to drop; ${expected}.`;
    throw validationError([{ location: field(member, name), code: 'invalid_request', detail }]);
  }

  /** A name means one vector wherever it is used. */
  #kindOf(name: string): Kind | undefined {
    return (Object.keys(this.#kinds) as Kind[]).find((kind) => this.#kinds[kind].has(name));
  }

  /** Members without content are undefined. */
  vectors(): Vectors {
    const objectOf = (map: ReadonlyMap<string, unknown>) =>
      map.size === 0 ? undefined : Object.fromEntries(map);
    return {
      vectors: objectOf(this.#kinds.vectors) as Vectors['vectors'],
      multiVectors: objectOf(this.#kinds.multiVectors) as Vectors['multiVectors'],
      sparseVectors: objectOf(this.#kinds.sparseVectors) as Vectors['sparseVectors'],
      columns: objectOf(this.#columns) as Vectors['columns'],
      additionCount: this.#additionCount === 0 ? undefined : this.#additionCount,
    };
  }
}

function describeShape(shape: Shape): string {
  return 'dimension' in shape ? ` of dimension ${shape.dimension} and metric ${shape.metric}` : '';
}

function refuse(member: string, violation: Violation | null): void {
  if (violation !== null) throw validationError([{ location: field(member), ...violation }]);
}

/** Throws `invalid_request` where nothing would be left to search by. */
function requireAny(shape: CollectionShape & Pick<CollectionDefinition, 'text'>): void {
  const { dimension, vectors, multiVectors, sparseVectors, text } = shape;
  if ((dimension ?? vectors ?? multiVectors ?? sparseVectors ?? text) !== undefined) return;
  const detail =
    'The collection would have no vectors and no text. Add another vector in the same request, or delete the collection.';
  throw validationError([{ location: field(), code: 'invalid_request', detail }]);
}
