// The named vectors of the rows of a JSON body or of lines: the member `vectors` of each row, an object with
// some of the names of the collection. They become columns, like everything else that is written.

import type { FieldPath, Violation } from '../../common/errors.js';
import type { NamedVectors } from '../../common/types.js';
import type { NamedShapes } from '../../database/api.js';
import { describeKind } from './describe-kind.js';
import { isObject } from './json-body.js';
import { readVector, readVectorInto } from './row-rules.js';

interface NamedOptions {
  /** Those of the collection; null when no collection is known yet: then there is one row, of any names. */
  readonly shapes: NamedShapes | null;
  readonly rowCount: number;
  readonly dimensionMax: number;
}

/** Called with the members that lead to a value and with what is wrong with it. */
type Report = (path: FieldPath, violation: Violation) => void;

export class NamedReader {
  readonly #options: NamedOptions;
  readonly #named = new Map<string, NamedVectors>();

  constructor(options: NamedOptions) {
    this.#options = options;
  }

  /** `source`: the member `vectors` of a row as sent. A vector that is null is as if it were absent. */
  read(row: number, source: unknown, report: Report): void {
    if (!isObject(source)) {
      const detail = `Named vectors are an object of vectors by name; found ${describeKind(source)}.`;
      report(['vectors'], { code: 'invalid_request', detail });
      return;
    }
    for (const [name, vector] of Object.entries(source)) {
      if (vector === null) continue;
      const violation = this.#readVector(row, name, vector);
      if (violation !== null) report(['vectors', name], violation);
    }
  }

  #readVector(row: number, name: string, source: unknown): Violation | null {
    const { shapes, rowCount, dimensionMax } = this.#options;
    if (shapes === null) return this.#readAny(name, source, dimensionMax);
    const shape = Object.hasOwn(shapes, name) ? shapes[name]! : undefined;
    if (shape === undefined) return unknownName(shapes);
    const { dimension } = shape;
    let vectors = this.#named.get(name);
    if (vectors === undefined) {
      // Shared memory, from which the pool encodes large writes.
      const values = new Float32Array(new SharedArrayBuffer(4 * rowCount * dimension));
      vectors = { name, dimension, values, presence: new Uint8Array(rowCount) };
      this.#named.set(name, vectors);
    }
    vectors.presence[row] = 1;
    return readVectorInto(vectors.values, row * dimension, source, { ...shape, name });
  }

  /** The caller checks the vector against the collection. */
  #readAny(name: string, source: unknown, dimensionMax: number): Violation | null {
    const values = readVector(source, dimensionMax);
    if (!(values instanceof Float32Array)) return values;
    const vectors = { name, dimension: values.length, values, presence: Uint8Array.of(1) };
    this.#named.set(name, vectors);
    return null;
  }

  /** Undefined where no row has any. */
  build(): readonly NamedVectors[] | undefined {
    return this.#named.size === 0 ? undefined : [...this.#named.values()];
  }
}

export function unknownName(shapes: NamedShapes): Violation {
  const names = Object.keys(shapes);
  const expected = names.length === 0 ? 'the collection has none' : `expected ${names.join(', ')}`;
  return { code: 'unknown_parameter', detail: `There is no such named vector; ${expected}.` };
}
