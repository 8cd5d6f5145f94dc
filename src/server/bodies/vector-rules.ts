// What a kind of vectors does on the way in: it reads vectors as JSON has them, and checks of a column of Arrow what
// Arrow leaves to check. The kinds are in `vector-kinds.ts`.

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

/** The members of a row that are vectors by name, and what these are called. */
export const VECTOR_MEMBERS = { vectors: 'named', sparse_vectors: 'sparse' } as const;
export type VectorMember = keyof typeof VECTOR_MEMBERS;

export type ShapeOf<Kind extends VectorKind> = Extract<FieldShape, { readonly kind: Kind }>;

export type VectorLimits = Pick<Limits, 'multiValuesMax' | 'multiVectorsMax' | 'sparseElementsMax'>;

/** What is wrong with a vector, or with the part of it that the path leads to. */
export interface VectorViolation extends Violation {
  readonly path?: FieldPath;
}

export interface VectorRules<
  Shape extends FieldShape = FieldShape,
  Found = FoundVectors,
  Column = VectorColumn,
> {
  /** The member of a row with the vectors of this kind. */
  readonly member: VectorMember;
  /** For vectors as JSON, which are read row by row. */
  openColumn(options: ColumnOptions<Shape>): ColumnReader;
  /** A column as Arrow has it, when all of it was checked. Undefined content if anything was reported. */
  ofArrow(found: Found, rules: ArrowRules<Shape>): Column;
}

export interface ColumnOptions<Shape extends FieldShape = FieldShape> {
  readonly name: string;
  readonly shape: Shape;
  readonly rowCount: number;
  readonly limits: VectorLimits;
  /** Makes room for values, all of them zero unless every row has the vector. */
  readonly allocate: (length: number) => Float32Array;
}

/** Collects the vectors that rows have under one name. */
export interface ColumnReader {
  /** `source`: as sent, or a Float32Array of finite values. Returns what is wrong with it. */
  read(row: number, source: unknown): VectorViolation | null;
  /** Undefined content if anything was wrong. */
  build(): VectorColumn;
}

export interface ArrowRules<Shape extends FieldShape = FieldShape> {
  readonly name: string;
  readonly shape: Shape;
  readonly rowCount: number;
  readonly limits: VectorLimits;
  /** Whether there are as many issues as are reported. */
  readonly isFull: () => boolean;
  readonly report: (row: number, violation: VectorViolation) => void;
}

/** Keeps single vectors until the lengths of all of them are known. */
export class ListReader implements ColumnReader {
  readonly #spec: ColumnSpec;
  readonly #readOne: (source: unknown) => Vector | VectorViolation;
  readonly #vectors: (Vector | undefined)[];

  constructor(
    { shape, rowCount }: ColumnOptions,
    readOne: (source: unknown) => Vector | VectorViolation,
  ) {
    this.#spec = shape;
    this.#readOne = readOne;
    this.#vectors = new Array(rowCount).fill(undefined);
  }

  read(row: number, source: unknown): VectorViolation | null {
    const vector = this.#readOne(source);
    if ('code' in vector) return vector;
    this.#vectors[row] = vector;
    return null;
  }

  build(): VectorColumn {
    return columnOfVectors(this.#spec, this.#vectors);
  }
}
