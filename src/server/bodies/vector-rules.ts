// The interface of a kind of vectors for input: it reads vectors of JSON, and validates columns of Arrow beyond the
// Arrow format itself. The kinds are in `vector-kinds.ts`.

import type { FieldPath, Violation } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { FieldShape } from '../../common/types.js';
import {
  type ColumnSpec,
  columnOfVectors,
  type Vector,
  type VectorColumn,
  type VectorKind,
} from '../../common/vectors.js';
import type { FoundVectors } from '../../formats/arrow/vector-kinds.js';

/** The members of a row that contain vectors by name, and the names of their kinds in messages. */
export const VECTOR_MEMBERS = { vectors: 'named', sparse_vectors: 'sparse' } as const;
export type VectorMember = keyof typeof VECTOR_MEMBERS;

export type ShapeOf<Kind extends VectorKind> = Extract<FieldShape, { readonly kind: Kind }>;

export type VectorLimits = Pick<Limits, 'multiValuesMax' | 'multiVectorsMax' | 'sparseElementsMax'>;

/** A violation, at a path within the value if there is one. */
export interface LocatedViolation extends Violation {
  readonly path?: FieldPath;
}

export interface VectorRules<
  Shape extends FieldShape = FieldShape,
  Found = FoundVectors,
  Column = VectorColumn,
> {
  /** The member of a row that contains the vectors of this kind. */
  readonly member: VectorMember;
  /** Starts a column of vectors of JSON, which are read row by row. */
  openColumn(options: ColumnOptions<Shape>): ColumnReader;
  /** Validates a column of Arrow. The content of the result is undefined if anything was reported. */
  ofArrow(found: Found, rules: ArrowRules<Shape>): Column;
}

export interface ColumnOptions<Shape extends FieldShape = FieldShape> {
  readonly name: string;
  readonly shape: Shape;
  readonly rowCount: number;
  readonly limits: VectorLimits;
  /** Allocates values, which are zero unless every row contains the vector. */
  readonly allocate: (length: number) => Float32Array;
}

/** Collects the vectors of all rows under one name. */
export interface ColumnReader {
  /** `source` is a value of the body, or a Float32Array of finite values. */
  read(row: number, source: unknown): LocatedViolation | null;
  /** The content of the result is undefined if there was a violation. */
  build(): VectorColumn;
}

export interface ArrowRules<Shape extends FieldShape = FieldShape> {
  readonly name: string;
  readonly shape: Shape;
  readonly rowCount: number;
  readonly limits: VectorLimits;
  /** Whether the maximum number of issues has been reported. */
  readonly isFull: () => boolean;
  readonly report: (row: number, violation: LocatedViolation) => void;
}

/** Collects vectors of different lengths. */
export class ListReader implements ColumnReader {
  readonly #spec: ColumnSpec;
  readonly #readOne: (source: unknown) => Vector | LocatedViolation;
  readonly #vectors: (Vector | undefined)[];

  constructor(
    { shape, rowCount }: ColumnOptions,
    readOne: (source: unknown) => Vector | LocatedViolation,
  ) {
    this.#spec = shape;
    this.#readOne = readOne;
    this.#vectors = new Array(rowCount).fill(undefined);
  }

  read(row: number, source: unknown): LocatedViolation | null {
    const vector = this.#readOne(source);
    if ('code' in vector) return vector;
    this.#vectors[row] = vector;
    return null;
  }

  build(): VectorColumn {
    return columnOfVectors(this.#spec, this.#vectors);
  }
}
