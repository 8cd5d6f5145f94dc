// Reads the vectors of JSON rows into columns: the unnamed one from `values`, the others by name from the members
// of their kinds.

import {
  type FieldPath,
  field,
  type ValidationIssue,
  type Violation,
  validationError,
} from '../../common/errors.js';
import { isJsonObject } from '../../common/metadata-path.js';
import { sharedFloat32 } from '../../common/shared-array.js';
import type { FieldShape, FieldShapes } from '../../common/types.js';
import { type Named, UNNAMED } from '../../common/vectors.js';
import { describeKind } from './value-kinds.js';
import { pathOf, VECTOR_KINDS } from './vector-kinds.js';
import {
  type ColumnReader,
  VECTOR_MEMBERS,
  type VectorLimits,
  type VectorMember,
} from './vector-rules.js';

/** The vectors of a row before validation. A Float32Array in place of `values` is finite. */
export interface SentVectors extends Partial<Readonly<Record<VectorMember, unknown>>> {
  readonly values?: unknown;
  /** A text to embed in place of `values`. */
  readonly embed?: unknown;
}

export interface VectorsOptions {
  /** The vectors of the collection. */
  readonly shapes: FieldShapes;
  readonly rowCount: number;
  readonly limits: VectorLimits;
  /** Whether the rows are patches, which may omit the unnamed vector, and remove vectors that are null. */
  readonly isPatch: boolean;
  /** Allocates the values of the unnamed vector, which are zero unless every row contains it. */
  readonly allocate: (length: number) => Float32Array;
}

/** Called with the path of a value in the row and its violation. */
type Report = (path: FieldPath, violation: Violation) => void;

export interface ReadVectors {
  /** The vectors that at least one row contains. */
  readonly vectors: readonly Named[];
  /** By name, 1 for rows that remove the vector; undefined unless the rows are patches. */
  readonly removed: ReadonlyMap<string, Uint8Array> | undefined;
}

export class VectorsReader {
  readonly #options: VectorsOptions;
  /** The valid names in each member. */
  readonly #names: ReadonlyMap<VectorMember, readonly string[]>;
  readonly #columns = new Map<string, ColumnReader>();
  readonly #removed = new Map<string, Uint8Array>();

  constructor(options: VectorsOptions) {
    this.#options = options;
    this.#names = new Map(MEMBERS.map((member) => [member, namesOf(options.shapes, member)]));
  }

  read(row: number, sent: SentVectors, report: Report): void {
    if (sent.embed === undefined) this.#readUnnamed(row, sent.values, report);
    for (const member of MEMBERS) {
      if (sent[member] !== undefined) this.#readMember(row, member, sent[member], report);
    }
  }

  #readUnnamed(row: number, source: unknown, report: Report): void {
    const { shapes, isPatch } = this.#options;
    const shape = shapes[UNNAMED];
    if (source === undefined) {
      if (shape !== undefined && !isPatch) report(['values'], NO_VALUES);
    } else if (shape === undefined) {
      report(['values'], noUnnamed(shapes));
    } else {
      this.#readVector(row, UNNAMED, shape, source, report);
    }
  }

  #readMember(row: number, member: VectorMember, source: unknown, report: Report): void {
    const { shapes, isPatch } = this.#options;
    const what = VECTOR_MEMBERS[member];
    if (!isJsonObject(source)) {
      const detail = `${what.replace(/^./, (first) => first.toUpperCase())} vectors are an object of vectors by name; found ${describeKind(source)}.`;
      report([member], { code: 'invalid_request', detail });
      return;
    }
    const known = this.#names.get(member)!;
    for (const [name, vector] of Object.entries(source)) {
      if (vector === null && !isPatch) continue;
      if (!known.includes(name)) {
        const expected =
          known.length === 0 ? 'the collection has none' : `expected ${known.join(', ')}`;
        const detail = `There is no such ${what} vector; ${expected}.`;
        report([member, name], { code: 'unknown_parameter', detail });
      } else if (vector === null) {
        this.#remove(row, name);
      } else {
        this.#readVector(row, name, shapes[name]!, vector, report);
      }
    }
  }

  #remove(row: number, name: string): void {
    const rows = this.#removed.get(name) ?? new Uint8Array(this.#options.rowCount);
    rows[row] = 1;
    this.#removed.set(name, rows);
  }

  #readVector(row: number, name: string, shape: FieldShape, source: unknown, report: Report): void {
    const violation = this.#columnOf(name, shape).read(row, source);
    if (violation === null) return;
    const { path = [], ...rest } = violation;
    report([...pathOf(name, shape), ...path], rest);
  }

  #columnOf(name: string, shape: FieldShape): ColumnReader {
    const known = this.#columns.get(name);
    if (known !== undefined) return known;
    const { rowCount, limits } = this.#options;
    // The pool encodes large writes from shared memory.
    const allocate = name === UNNAMED ? this.#options.allocate : sharedFloat32;
    const options = { name, shape, rowCount, limits, allocate };
    const column = VECTOR_KINDS[shape.kind].openColumn(options);
    this.#columns.set(name, column);
    return column;
  }

  /** Called only if nothing was reported. */
  build(): ReadVectors {
    const vectors = Array.from(this.#columns, ([name, column]) => ({ name, ...column.build() }));
    return { vectors, removed: this.#options.isPatch ? this.#removed : undefined };
  }
}

/** The vectors of a body that is a single row. Throws all violations. */
export function readRowVectors(
  sent: SentVectors,
  options: Pick<VectorsOptions, 'shapes' | 'limits' | 'isPatch'>,
): ReadVectors {
  const reader = new VectorsReader({ ...options, rowCount: 1, allocate: sharedFloat32 });
  const issues: ValidationIssue[] = [];
  reader.read(0, sent, (path, violation) => {
    issues.push({ location: field(...path), ...violation });
  });
  if (issues.length > 0) throw validationError(issues);
  return reader.build();
}

const MEMBERS = Object.keys(VECTOR_MEMBERS) as VectorMember[];

const NO_VALUES: Violation = { code: 'invalid_vector', detail: 'The vector has no values.' };

function noUnnamed(shapes: FieldShapes): Violation {
  const names = namesOf(shapes, 'vectors');
  const expected = names.length === 0 ? 'no values' : `vectors with any of ${names.join(', ')}`;
  const detail = `The collection has no unnamed vector; expected ${expected}.`;
  return { code: 'invalid_request', detail };
}

/** The names of the vectors that belong into a member. */
function namesOf(shapes: FieldShapes, member: VectorMember): string[] {
  return Object.keys(shapes).filter(
    (name) => name !== UNNAMED && VECTOR_KINDS[shapes[name]!.kind].member === member,
  );
}
