// The vectors of rows as JSON has them: the unnamed one in `values`, the others by name in the members of their
// kinds. They become columns, like everything else that is written.

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

/** The vectors of a row as sent, each member perhaps undefined; a Float32Array in place of values is finite. */
export interface SentVectors extends Partial<Readonly<Record<VectorMember, unknown>>> {
  readonly values?: unknown;
  /** A text stands for the values, which come later. */
  readonly embed?: unknown;
}

export interface VectorsOptions {
  /** The vectors of the collection. */
  readonly shapes: FieldShapes;
  readonly rowCount: number;
  readonly limits: VectorLimits;
  /** Whether rows change others: they may lack the unnamed vector then, and remove those that are null. */
  readonly isPatch: boolean;
  /** Makes room for the values of the unnamed vector, all of them zero unless every row has it. */
  readonly allocate: (length: number) => Float32Array;
}

/** Called with the members that lead to a value and with what is wrong with it. */
type Report = (path: FieldPath, violation: Violation) => void;

export interface ReadVectors {
  /** Those that any of the rows has. */
  readonly vectors: readonly Named[];
  /** By name, 1 for rows that remove the vector; undefined where rows do not change others. */
  readonly removed: ReadonlyMap<string, Uint8Array> | undefined;
}

export class VectorsReader {
  readonly #options: VectorsOptions;
  /** The names that each member may have. */
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

  /** Called only when nothing was reported. */
  build(): ReadVectors {
    const vectors = Array.from(this.#columns, ([name, column]) => ({ name, ...column.build() }));
    return { vectors, removed: this.#options.isPatch ? this.#removed : undefined };
  }
}

/** The vectors of a body that is one row. Throws everything that is wrong with them. */
export function readVectorsOfOne(
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

/** The names of the vectors that a member may have. */
function namesOf(shapes: FieldShapes, member: VectorMember): string[] {
  return Object.keys(shapes).filter(
    (name) => name !== UNNAMED && VECTOR_KINDS[shapes[name]!.kind].member === member,
  );
}
