// Adds and drops named, sparse and multi-vectors of a collection. Both change only its definition: later records bring
// the added vectors, and dropped vectors are ignored by reads and removed from files by compaction.

import { field, type Violation, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { FieldShape, FieldShapes } from '../../common/types.js';
import { UNNAMED, type VectorKind } from '../../common/vectors.js';
import { addedColumn, type VectorNameColumns } from '../../segment/vector-names.js';
import type { VectorsChange } from '../api/database-api.js';
import type { CollectionDefinition } from '../layout/manifest.js';

type VectorLimits = Pick<Limits, 'namedVectorsMax' | 'recordValuesMax' | 'sparseVectorsMax'>;

/** Violations of the limits on named vectors, with the request member that names them. */
export function findVectorsViolations(
  vectors: FieldShapes,
  { namedVectorsMax, recordValuesMax, sparseVectorsMax }: VectorLimits,
): { readonly wireName: string; readonly violation: Violation }[] {
  const named = Object.entries(vectors).filter(([name]) => name !== UNNAMED);
  const sparseCount = named.filter(([, { kind }]) => kind === 'sparse').length;
  const dimensions = named.reduce(
    (sum, [, shape]) => sum + (shape.kind === 'sparse' ? 0 : shape.dimension),
    0,
  );
  return [
    exceeded('vectors', named.length - sparseCount, namedVectorsMax, 'named vectors'),
    exceeded('vectors', dimensions, recordValuesMax, 'dimensions in all named vectors'),
    exceeded('sparse_vectors', sparseCount, sparseVectorsMax, 'sparse vectors'),
  ].filter((found) => found !== null);
}

function exceeded(wireName: string, actual: number, expected: number, what: string) {
  if (actual <= expected) return null;
  const detail = `Expected at most ${expected} ${what}; found ${actual}.`;
  return { wireName, violation: { code: 'limit_exceeded' as const, detail, expected, actual } };
}

type Vectors = Pick<CollectionDefinition, 'vectors' | 'columns' | 'additionCount'>;

/** The vectors of the definition after the change. Throws `invalid_request` and `limit_exceeded`. */
export function changedVectors(
  definition: CollectionDefinition,
  change: VectorsChange,
  limits: VectorLimits,
): Vectors {
  const changing = new ChangingVectors(definition);
  const changes = MEMBERS.flatMap(({ member, wireName, kinds }) =>
    Object.entries(change[member] ?? {}).map(([name, shape]) => ({ wireName, kinds, name, shape })),
  );
  // Drops come first, so that a dropped name can be reused for another kind of vector.
  for (const { shape, ...dropped } of changes) if (shape === null) changing.drop(dropped);
  for (const { shape, ...added } of changes) if (shape !== null) changing.add({ ...added, shape });
  const changed = changing.vectors();
  for (const { wireName, violation } of findVectorsViolations(changed.vectors, limits)) {
    throw validationError([{ location: field(wireName), ...violation }]);
  }
  requireAny({ ...definition, ...changed });
  return changed;
}

/** The members of a request that name vectors. */
const MEMBERS = [
  { member: 'vectors', wireName: 'vectors', kinds: ['dense', 'multi'] },
  { member: 'sparseVectors', wireName: 'sparse_vectors', kinds: ['sparse'] },
] as const;

interface NamedChange {
  /** The member of the request. */
  readonly wireName: string;
  /** The kinds of vectors that the member may name. */
  readonly kinds: readonly VectorKind[];
  readonly name: string;
}

/** The columns of the vectors of a definition in its segments. */
export function namesOfColumns(definition: CollectionDefinition): VectorNameColumns {
  const { vectors, columns = {}, additionCount = 0 } = definition;
  return { names: Object.keys(vectors), columns, additionCount };
}

const KIND_NAMES: Readonly<Record<VectorKind, string>> = {
  dense: 'a named vector',
  multi: 'a multi-vector',
  sparse: 'a sparse vector',
};

class ChangingVectors {
  readonly #vectors: Map<string, FieldShape>;
  readonly #columns: Map<string, string>;
  #additionCount: number;

  constructor({ vectors, columns = {}, additionCount = 0 }: CollectionDefinition) {
    this.#vectors = new Map(Object.entries(vectors));
    this.#columns = new Map(Object.entries(columns));
    this.#additionCount = additionCount;
  }

  /** Does nothing if an equal vector exists. */
  add({ wireName, name, shape }: NamedChange & { readonly shape: FieldShape }): void {
    const known = this.#vectors.get(name);
    if (known === undefined) {
      this.#vectors.set(name, shape);
      this.#additionCount++;
      this.#columns.set(name, addedColumn(name, this.#additionCount));
      return;
    }
    const [is, wanted] = [known, shape].map((one) => KIND_NAMES[one.kind] + describeShape(one));
    if (is === wanted) return;
    const detail = `The collection already has "${name}", ${is}; the request adds ${wanted}. Drop it with null first, or use another name.`;
    throw validationError([{ location: field(wireName, name), code: 'invalid_request', detail }]);
  }

  drop({ wireName, name, kinds }: NamedChange): void {
    const isNamed = ([known, { kind }]: [string, FieldShape]) =>
      known !== UNNAMED && kinds.includes(kind);
    const known = [...this.#vectors].filter(isNamed).map(([one]) => one);
    if (known.includes(name)) {
      this.#vectors.delete(name);
      this.#columns.delete(name);
      return;
    }
    const expected = known.length === 0 ? 'it has none' : `expected ${known.join(', ')}`;
    const detail = `The collection has no such vector to drop; ${expected}.`;
    throw validationError([{ location: field(wireName, name), code: 'invalid_request', detail }]);
  }

  vectors(): Vectors {
    return {
      vectors: Object.fromEntries(this.#vectors),
      columns: this.#columns.size === 0 ? undefined : Object.fromEntries(this.#columns),
      additionCount: this.#additionCount === 0 ? undefined : this.#additionCount,
    };
  }
}

export function describeShape(shape: FieldShape): string {
  if (shape.kind === 'sparse') return '';
  const element = shape.kind === 'dense' ? shape.element : undefined;
  const elements = element === undefined ? '' : `, with elements of ${element},`;
  return ` of dimension ${shape.dimension}${elements} and metric ${shape.metric}`;
}

/** Throws `invalid_request` if nothing would be left to search by. */
function requireAny({ vectors, text }: CollectionDefinition): void {
  if (Object.keys(vectors).length > 0 || text !== undefined) return;
  const detail =
    'The collection would have no vectors and no text. Add another vector in the same request, or delete the collection.';
  throw validationError([{ location: field(), code: 'invalid_request', detail }]);
}
