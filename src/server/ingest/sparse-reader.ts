// The sparse vectors of the rows of a JSON body or of lines: the member `sparse_vectors` of each row, an object
// with some of the names of the collection. They become columns, like everything else that is written.

import type { FieldPath, Violation } from '../../common/errors.js';
import type { NamedSparse } from '../../common/types.js';
import { columnOfVectors, type SparseVector } from '../../common/vectors.js';
import type { SparseShapes } from '../../database/api.js';
import { describeKind } from './describe-kind.js';
import { isObject } from './json-body.js';
import type { Removed } from './named-reader.js';
import { readSparse } from './sparse-rules.js';

interface SparseOptions {
  /** Those of the collection; null when no collection is known yet: then there is one row, of any names. */
  readonly shapes: SparseShapes | null;
  readonly rowCount: number;
  readonly elementsMax: number;
  /** See `NamedReader`. */
  readonly removed: Removed | null;
}

/** Called with the members that lead to a value and with what is wrong with it. */
type Report = (path: FieldPath, violation: Violation) => void;

export class SparseReader {
  readonly #options: SparseOptions;
  /** By name, the vectors of the rows that have it. */
  readonly #vectors = new Map<string, Map<number, SparseVector>>();

  constructor(options: SparseOptions) {
    this.#options = options;
  }

  /** `source`: the member `sparse_vectors` of a row as sent. */
  read(row: number, source: unknown, report: Report): void {
    const { shapes, elementsMax, removed } = this.#options;
    if (!isObject(source)) {
      const detail = `Sparse vectors are an object of vectors by name; found ${describeKind(source)}.`;
      report(['sparse_vectors'], { code: 'invalid_request', detail });
      return;
    }
    for (const [name, sent] of Object.entries(source)) {
      if (sent === null && removed === null) continue;
      if (shapes !== null && !Object.hasOwn(shapes, name)) {
        report(['sparse_vectors', name], unknownSparse(shapes));
        continue;
      }
      if (sent === null) {
        removed?.add(row, name);
        continue;
      }
      const vector = readSparse(sent, elementsMax);
      if ('code' in vector) {
        const { path, ...violation } = vector;
        report(['sparse_vectors', name, ...path], violation);
        continue;
      }
      const vectors = this.#vectors.get(name) ?? new Map();
      this.#vectors.set(name, vectors.set(row, vector));
    }
  }

  /** Undefined where no row has any. */
  build(): readonly NamedSparse[] | undefined {
    if (this.#vectors.size === 0) return undefined;
    const { rowCount } = this.#options;
    return Array.from(this.#vectors, ([name, vectors]) => ({
      name,
      ...columnOfVectors(
        { kind: 'sparse' },
        Array.from({ length: rowCount }, (_, row) => vectors.get(row)),
      ),
    }));
  }
}

export function unknownSparse(shapes: SparseShapes): Violation {
  const names = Object.keys(shapes);
  const expected = names.length === 0 ? 'the collection has none' : `expected ${names.join(', ')}`;
  return { code: 'unknown_parameter', detail: `There is no such sparse vector; ${expected}.` };
}
