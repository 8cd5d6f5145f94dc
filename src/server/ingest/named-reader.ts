// The named vectors and multi-vectors of the rows of a JSON body or of lines: the member `vectors` of each row, an
// object with some of the names of the collection. They become columns, like everything else that is written.

import type { FieldPath, Violation } from '../../common/errors.js';
import { sharedFloat32 } from '../../common/shared-array.js';
import type { NamedMulti, NamedVectors, VectorShape } from '../../common/types.js';
import { columnOfVectors, type MultiVector } from '../../common/vectors.js';
import type { CollectionShape } from '../../database/api.js';
import { describeKind } from './describe-kind.js';
import { isObject } from './json-body.js';
import {
  isMultiVector,
  type MultiLimits,
  type MultiViolation,
  readMultiVector,
  readVector,
  readVectorInto,
} from './row-rules.js';

interface NamedOptions {
  /** Of the collection; null when no collection is known yet: then there is one row, of any names. */
  readonly shape: CollectionShape | null;
  readonly rowCount: number;
  /** Gets the vectors that are null; where there is none, they are as if they were absent. */
  readonly removed: Removed | null;
  readonly limits: MultiLimits & { readonly dimensionMax: number };
}

/** Called with the members that lead to a value and with what is wrong with it. */
type Report = (path: FieldPath, violation: Violation) => void;

/** The vectors that rows of a patch remove, by name. */
export class Removed {
  readonly rows = new Map<string, Uint8Array>();
  readonly #rowCount: number;

  constructor(rowCount: number) {
    this.#rowCount = rowCount;
  }

  add(row: number, name: string): void {
    const rows = this.rows.get(name) ?? new Uint8Array(this.#rowCount);
    rows[row] = 1;
    this.rows.set(name, rows);
  }
}

export class NamedReader {
  readonly #options: NamedOptions;
  readonly #named = new Map<string, NamedVectors>();
  /** By name and row. */
  readonly #multi = new Map<string, Map<number, MultiVector>>();

  constructor(options: NamedOptions) {
    this.#options = options;
  }

  /** `source`: the member `vectors` of a row as sent. */
  read(row: number, source: unknown, report: Report): void {
    if (!isObject(source)) {
      const detail = `Named vectors are an object of vectors by name; found ${describeKind(source)}.`;
      report(['vectors'], { code: 'invalid_request', detail });
      return;
    }
    for (const [name, vector] of Object.entries(source)) {
      const violation =
        vector === null ? this.#readNull(row, name) : this.#readVector(row, name, vector);
      if (violation === null) continue;
      const { index, ...rest } = violation;
      report(['vectors', name, ...(index === undefined ? [] : [index])], rest);
    }
  }

  #readNull(row: number, name: string): MultiViolation | null {
    const { shape, removed } = this.#options;
    if (removed === null || shape === null) return null;
    if (!Object.hasOwn({ ...shape.vectors, ...shape.multiVectors }, name))
      return unknownName(shape);
    removed.add(row, name);
    return null;
  }

  #readVector(row: number, name: string, source: unknown): MultiViolation | null {
    const { shape, rowCount } = this.#options;
    if (shape === null) return this.#readAny(name, source);
    const multiShape = memberOf(shape.multiVectors, name);
    if (multiShape !== undefined) return this.#readMulti(row, name, source, multiShape);
    const namedShape = memberOf(shape.vectors, name);
    if (namedShape === undefined) return unknownName(shape);
    const { dimension } = namedShape;
    let vectors = this.#named.get(name);
    if (vectors === undefined) {
      // Shared memory, from which the pool encodes large writes.
      const values = sharedFloat32(rowCount * dimension);
      vectors = { name, dimension, values, presence: new Uint8Array(rowCount) };
      this.#named.set(name, vectors);
    }
    vectors.presence[row] = 1;
    return readVectorInto(vectors.values, row * dimension, source, { ...namedShape, name });
  }

  #readMulti(
    row: number,
    name: string,
    source: unknown,
    shape: VectorShape,
  ): MultiViolation | null {
    const vector = readMultiVector(source, { ...shape, name }, this.#options.limits);
    if ('code' in vector) return vector;
    let rows = this.#multi.get(name);
    if (rows === undefined) {
      rows = new Map();
      this.#multi.set(name, rows);
    }
    rows.set(row, vector);
    return null;
  }

  /** The caller checks the vector against the collection. */
  #readAny(name: string, source: unknown): MultiViolation | null {
    const { dimensionMax } = this.#options.limits;
    if (isMultiVector(source)) {
      const first = readVector(source[0], dimensionMax);
      if (!(first instanceof Float32Array)) return { ...first, index: 0 };
      return this.#readMulti(0, name, source, { dimension: first.length, metric: 'dot' });
    }
    const values = readVector(source, dimensionMax);
    if (!(values instanceof Float32Array)) return values;
    const vectors = { name, dimension: values.length, values, presence: Uint8Array.of(1) };
    this.#named.set(name, vectors);
    return null;
  }

  /** Undefined where no row has any. */
  build(): {
    readonly named: readonly NamedVectors[] | undefined;
    readonly multi: readonly NamedMulti[] | undefined;
  } {
    const { rowCount } = this.#options;
    const multi = [...this.#multi].map(([name, rows]) => {
      const { dimension } = rows.values().next().value!;
      return {
        name,
        ...columnOfVectors(
          { kind: 'multi', dimension },
          Array.from({ length: rowCount }, (_, row) => rows.get(row)),
        ),
      };
    });
    return {
      named: this.#named.size === 0 ? undefined : [...this.#named.values()],
      multi: multi.length === 0 ? undefined : multi,
    };
  }
}

/** Not what every object has. */
export function memberOf(
  shapes: Readonly<Record<string, VectorShape>> = {},
  name: string,
): VectorShape | undefined {
  return Object.hasOwn(shapes, name) ? shapes[name] : undefined;
}

export function unknownName({ vectors, multiVectors }: CollectionShape): Violation {
  const names = Object.keys({ ...vectors, ...multiVectors });
  const expected = names.length === 0 ? 'the collection has none' : `expected ${names.join(', ')}`;
  return { code: 'unknown_parameter', detail: `There is no such named vector; ${expected}.` };
}
