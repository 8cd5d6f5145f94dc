// What the tensor program needs of a device: float32 matrices, their product, and one of two ways to
// make use of a product. A device is used by one thread, and knows nothing of vectors, scores or queries.
//
// Each entry of a product is a float32 sum of float32 products in any order, with or without fused
// multiply-add; values, products and sums below 2^-126 may be taken for zero. How far it is from the
// true sum says `productError`.

/** A row-major float32 matrix on the device: a left operand or a right one, never both in turn. */
export interface DeviceMatrix {
  readonly rowCount: number;
  readonly columnCount: number;
  dispose(): void;
}

interface Device {
  /** For an operator: "WebAssembly", or a library, its version and the processor. */
  readonly name: string;
  /** Whether matrices are elsewhere than in the memory of this process. */
  readonly hasOwnMemory: boolean;
  /** Values and rows of a resident right operand that suit the device best: both are upper bounds. */
  readonly chunkValuesMax: number;
  readonly chunkRowsMax: number;
  /** Bytes for resident operands: what is sensible, and what is possible. */
  readonly residentBytesUsual: number;
  readonly residentBytesMax: number;
  /** Copies `values`, row-major [rowCount, columnCount]. Null when there is no room for it. */
  load(values: Float32Array, rowCount: number, columnCount: number): DeviceMatrix | null;
  /**
   * E such that a sum of `dimension` products of a and b is within E |a| |b| of the true one, as
   * long as neither has entries or a length beyond 2^20 nor a length below 2^-20; 8 · 2^-24 of it
   * are spare, for roundings of those who use the product.
   */
  productError(dimension: number): number;
  /** Bytes that a resident right operand takes on the device, what the device packs included. */
  residentBytes(rowCount: number, columnCount: number): number;
  /** Matrices that live: for tests. */
  matrixCount(): number;
}

/** A device in this process's memory: the whole product is read where it lies. */
export interface ProductDevice extends Device {
  readonly kind: 'product';
  /**
   * Lends `use` the product of left [m, d] and right [d, n], row-major [m, n]. The view is valid
   * until `use` returns, which must not call the device. False, and no call of `use`, when there
   * is no room for the product.
   */
  multiply(left: DeviceMatrix, right: DeviceMatrix, use: (product: Float32Array) => void): boolean;
}

/** The keys by which columns of a product are chosen; each step is rounded to float32. */
export interface KeyTerms {
  /** [1, n]: products are multiplied by it. */
  readonly weights: DeviceMatrix | null;
  /** [1, n] and [m, 1]: their outer product is added next. Both or none. */
  readonly biases: DeviceMatrix | null;
  readonly biasScales: DeviceMatrix | null;
  /** [1, n]: added last; −Infinity keeps a column out. */
  readonly mask: DeviceMatrix | null;
  /** [m, 1]: keys above it become −Infinity. */
  readonly caps: DeviceMatrix | null;
}

/** Columns with the largest keys of each row of a product, still on the device. */
export interface TopColumns {
  readonly rowCount: number;
  /** Columns a row. */
  readonly count: number;
  dispose(): void;
}

/** Row-major [rowCount, count], largest key first. */
export interface TopKeys {
  readonly columns: Float32Array;
  readonly keys: Float32Array;
}

/** A device from which a product is too large to be read: it hands out the best of it. */
export interface TopDevice extends Device {
  readonly kind: 'top';
  /**
   * The `count` columns, at most n, with the largest keys of each row of left [m, d] · right [d, n];
   * those that are left out have keys no larger. Null when there is no room.
   */
  topColumns(
    left: DeviceMatrix,
    right: DeviceMatrix,
    terms: KeyTerms,
    count: number,
  ): TopColumns | null;
  /** All of them in one transfer, which waits for the device; they are disposed of. Null when there is no room. */
  read(tops: readonly TopColumns[]): TopKeys[] | null;
}

export type MatrixDevice = ProductDevice | TopDevice;

/**
 * `productError` of a device that reads operands in full and rounds to nearest. With u = 2^-24 a sum
 * of D products, in any order, has an error of at most γ Σ|a_i b_i|, γ = Du / (1 − Du), which is at
 * most Du (1 + 2^-9) for D up to 2^14 (Higham, Accuracy and Stability of Numerical Algorithms,
 * section 3.1), and Σ|a_i b_i| <= |a| |b|.
 */
export function floatProductError(dimension: number): number {
  return (dimension + 8) * 2 ** -24 * (1 + 2 ** -9);
}

/**
 * `productError` of a device that multiplies as TF32: operands are cut to 10 bits of mantissa, each
 * by a factor within 1 ± δ, δ = 2^-10, and sums may be cut, too, which γ = D · 2^-21 bounds; so a
 * sum is within (1 + δ)² (1 + γ) − 1 of the true one, relative to Σ|a_i b_i|.
 */
export function tf32ProductError(dimension: number): number {
  const sumError = dimension * 2 ** -21;
  return (1 + 2 ** -10) ** 2 * (1 + sumError / (1 - sumError)) - 1 + 8 * 2 ** -24;
}
