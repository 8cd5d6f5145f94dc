// The principal components of a covariance matrix: the eigenvectors of the greatest eigenvalues, by subspace iteration
// with Rayleigh-Ritz steps (Saad, Numerical Methods for Large Eigenvalue Problems, chapter 5). The start, the order of
// sums and the signs are fixed and the arithmetic is float64, so that the result has the same bits on every machine.

import type { Task } from '../../platform/pool.js';

interface ComponentsInput {
  /** Row-major [columnCount, columnCount], shared; only the part on and right of the diagonal is read. */
  readonly covariance: Float64Array;
  readonly columnCount: number;
  readonly count: number;
}

export interface Components {
  /** [count, columnCount] vectors of unit length; zeros beyond the rank. */
  readonly vectors: readonly Float64Array[];
  /** [count] shares of the variance. */
  readonly varianceRatios: readonly number[];
}

/** Additional vectors make the wanted ones converge at the ratio to a much smaller eigenvalue. */
const SPARE_VECTORS = 16;

/** Residuals up to this fraction of the greatest eigenvalue do not show in float32 coordinates. */
const RESIDUAL_MAX = 1e-8;

/**
 * Bounds the iterations to two to three seconds. Without a gap between eigenvalues no direction is better than another,
 * and iterations would not end.
 */
const PRODUCTS_MAX = 3e9;
const ITERATIONS_MIN = 20;
const ITERATIONS_MAX = 100;

/** Eigenvalues below this fraction of the greatest come from rounding. */
const RANK_EPSILON = 1e-12;

export const findComponentsTask: Task<ComponentsInput, Components> = {
  name: 'projection.findComponents',
  run({ covariance, columnCount, count }) {
    mirror(covariance, columnCount);
    let trace = 0;
    for (let i = 0; i < columnCount; i++) trace += covariance[i * (columnCount + 1)]!;
    const { vectors, values } = iterate(covariance, columnCount, count);
    const isWithinRank = (i: number) =>
      i < vectors.length && values[i]! > RANK_EPSILON * values[0]!;
    const indexes = Array.from({ length: count }, (_, i) => i);
    return {
      vectors: indexes.map((i) =>
        isWithinRank(i) ? withSign(vectors[i]!) : new Float64Array(columnCount),
      ),
      varianceRatios: indexes.map((i) => (isWithinRank(i) ? Math.min(1, values[i]! / trace) : 0)),
    };
  },
};

interface EigenPairs {
  /** By descending eigenvalue. */
  readonly vectors: readonly Float64Array[];
  readonly values: readonly number[];
}

function iterate(covariance: Float64Array, columnCount: number, count: number): EigenPairs {
  const width = Math.min(columnCount, Math.max(2 * count, count + SPARE_VECTORS));
  const productsEach = columnCount * width * (columnCount + 6 * width);
  const iterationsMax = Math.min(
    ITERATIONS_MAX,
    Math.max(ITERATIONS_MIN, Math.floor(PRODUCTS_MAX / productsEach)),
  );
  let basis = orthonormalize(startVectors(width, columnCount));
  for (let iteration = 1; ; iteration++) {
    const products = multiply(covariance, basis);
    const { rotation, values } = diagonalize(
      basis.map((left) => Float64Array.from(products, (right) => dot(left, right))),
    );
    const rotated = combine(products, rotation);
    const vectors = combine(basis, rotation);
    const isDone = values
      .slice(0, count)
      .every((value, i) => residual(rotated[i]!, vectors[i]!, value) <= RESIDUAL_MAX * values[0]!);
    if (isDone || iteration === iterationsMax) return { vectors, values };
    basis = orthonormalize(rotated);
  }
}

/** Fixed pseudorandom numbers from -1 to 1. */
function startVectors(width: number, columnCount: number): Float64Array[] {
  let state = 0x9e3779b9;
  const next = () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x297a2d39) | 0;
    return (state ^ (state >>> 13)) / 2 ** 31;
  };
  return Array.from({ length: width }, () => Float64Array.from({ length: columnCount }, next));
}

/** Orthonormalizes in place by modified Gram-Schmidt, twice. A vector that depends on previous ones becomes zeros. */
function orthonormalize(vectors: readonly Float64Array[]): Float64Array[] {
  const made: Float64Array[] = [];
  for (const vector of vectors) {
    const lengthBefore = Math.sqrt(dot(vector, vector));
    for (let round = 0; round < 2; round++) {
      for (const other of made) addScaled(vector, other, -dot(vector, other));
    }
    const length = Math.sqrt(dot(vector, vector));
    const factor = length > 1e-13 * lengthBefore ? 1 / length : 0;
    for (let i = 0; i < vector.length; i++) vector[i]! *= factor;
    made.push(vector);
  }
  return made;
}

/** The matrix times each vector. */
function multiply(matrix: Float64Array, vectors: readonly Float64Array[]): Float64Array[] {
  const { length } = vectors[0]!;
  const products = vectors.map(() => new Float64Array(length));
  for (let row = 0; row < length; row++) {
    const values = matrix.subarray(row * length, (row + 1) * length);
    let i = 0;
    for (; i + 4 <= vectors.length; i += 4) {
      const [a, b, c, d] = vectors.slice(i, i + 4) as [
        Float64Array,
        Float64Array,
        Float64Array,
        Float64Array,
      ];
      let sumA = 0;
      let sumB = 0;
      let sumC = 0;
      let sumD = 0;
      for (let column = 0; column < length; column++) {
        const value = values[column]!;
        sumA += value * a[column]!;
        sumB += value * b[column]!;
        sumC += value * c[column]!;
        sumD += value * d[column]!;
      }
      products[i]![row] = sumA;
      products[i + 1]![row] = sumB;
      products[i + 2]![row] = sumC;
      products[i + 3]![row] = sumD;
    }
    for (; i < vectors.length; i++) products[i]![row] = dot(values, vectors[i]!);
  }
  return products;
}

/** Multiplies the vectors with each column of the rotation. */
function combine(
  vectors: readonly Float64Array[],
  rotation: readonly Float64Array[],
): Float64Array[] {
  return rotation.map((factors) => {
    const sum = new Float64Array(vectors[0]!.length);
    for (const [i, vector] of vectors.entries()) addScaled(sum, vector, factors[i]!);
    return sum;
  });
}

/** Bounds the sweeps until a matrix of at most 128 rows is diagonal; six are usual. */
const SWEEPS_MAX = 30;

/** Eigenvectors and eigenvalues of a small symmetric matrix, greatest first, by Jacobi rotations. */
function diagonalize(matrix: readonly Float64Array[]): {
  readonly rotation: readonly Float64Array[];
  readonly values: readonly number[];
} {
  const size = matrix.length;
  const vectors = matrix.map((_, i) => {
    const unit = new Float64Array(size);
    unit[i] = 1;
    return unit;
  });
  for (let sweep = 0; sweep < SWEEPS_MAX; sweep++) {
    let isDiagonal = true;
    for (let p = 0; p < size; p++) {
      for (let q = p + 1; q < size; q++) {
        if (rotate(matrix, vectors, p, q)) isDiagonal = false;
      }
    }
    if (isDiagonal) break;
  }
  const order = matrix.map((_, i) => i).sort((a, b) => matrix[b]![b]! - matrix[a]![a]! || a - b);
  return {
    rotation: order.map((i) => vectors[i]!),
    values: order.map((i) => Math.max(0, matrix[i]![i]!)),
  };
}

/** Makes the element (p, q) zero. Returns false if it is already negligible. */
function rotate(
  matrix: readonly Float64Array[],
  vectors: readonly Float64Array[],
  p: number,
  q: number,
): boolean {
  const [rowP, rowQ] = [matrix[p]!, matrix[q]!];
  const element = rowP[q]!;
  if (Math.abs(element) <= 1e-16 * (Math.abs(rowP[p]!) + Math.abs(rowQ[q]!))) return false;
  const half = (rowQ[q]! - rowP[p]!) / (2 * element);
  const tangent = (half < 0 ? -1 : 1) / (Math.abs(half) + Math.sqrt(half * half + 1));
  const cosine = 1 / Math.sqrt(tangent * tangent + 1);
  const sine = tangent * cosine;
  turn(rowP, rowQ, cosine, sine);
  for (const row of matrix) {
    const [left, right] = [row[p]!, row[q]!];
    row[p] = cosine * left - sine * right;
    row[q] = sine * left + cosine * right;
  }
  rowP[q] = 0;
  rowQ[p] = 0;
  turn(vectors[p]!, vectors[q]!, cosine, sine);
  return true;
}

function turn(left: Float64Array, right: Float64Array, cosine: number, sine: number): void {
  for (let i = 0; i < left.length; i++) {
    const [a, b] = [left[i]!, right[i]!];
    left[i] = cosine * a - sine * b;
    right[i] = sine * a + cosine * b;
  }
}

function residual(product: Float64Array, vector: Float64Array, value: number): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += (product[i]! - value * vector[i]!) ** 2;
  return Math.sqrt(sum);
}

/** Fixes the sign of an eigenvector: the element with the greatest magnitude, of equal ones the first, is positive. */
function withSign(vector: Float64Array): Float64Array {
  let greatest = 0;
  for (const value of vector) if (Math.abs(value) > Math.abs(greatest)) greatest = value;
  return greatest < 0 ? vector.map((value) => -value) : vector;
}

function mirror(matrix: Float64Array, size: number): void {
  for (let row = 1; row < size; row++) {
    for (let column = 0; column < row; column++) {
      matrix[row * size + column] = matrix[column * size + row]!;
    }
  }
}

function dot(left: Float64Array, right: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < left.length; i++) sum += left[i]! * right[i]!;
  return sum;
}

function addScaled(target: Float64Array, other: Float64Array, factor: number): void {
  for (let i = 0; i < target.length; i++) target[i]! += other[i]! * factor;
}
