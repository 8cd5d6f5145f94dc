// The interface of a tensor device: float32 matrices, their product, and one of two ways to use a
// product. A device is used by one thread and knows nothing of vectors, scores or queries.
//
// Each entry of a product is a float32 sum of float32 products in any order, with or without fused
// multiply-add; values, products and sums below 2^-126 may be flushed to zero. `productError` bounds
// its error.

/** A row-major float32 matrix on the device, used as a left or a right operand, never as both. */
export interface DeviceMatrix {
  readonly rowCount: number;
  readonly columnCount: number;
  dispose(): void;
}

interface Device {
  /** A name for an operator: "WebAssembly", or a library, its version and the processor. */
  readonly name: string;
  /** Whether matrices are outside the memory of this process. */
  readonly hasOwnMemory: boolean;
  /** The largest resident right operand that suits the device, in values and in rows. */
  readonly chunkValuesMax: number;
  readonly chunkRowsMax: number;
  /** Bytes for resident operands: the default, and the limit. */
  readonly residentBytesUsual: number;
  readonly residentBytesMax: number;
  /** Copies `values`, row-major [rowCount, columnCount]. Returns null when there is no room. */
  load(values: Float32Array, rowCount: number, columnCount: number): DeviceMatrix | null;
  /**
   * E such that a sum of `dimension` products of a and b is within E |a| |b| of the exact one, if the
   * lengths of both are within 2^±20. E includes 8 · 2^-24 for the caller's own roundings.
   */
  productError(dimension: number): number;
  /** Bytes of a resident right operand on the device, including packed copies. */
  residentBytes(rowCount: number, columnCount: number): number;
  /** The number of matrices not disposed of, for tests. */
  matrixCount(): number;
}

/** A device in the memory of this process, whose whole products can be read in place. */
export interface ProductDevice extends Device {
  readonly kind: 'product';
  /**
   * Calls `use` with the product of left [m, d] and right [d, n], row-major [m, n], which is valid until
   * `use` returns. `use` must not call the device. Returns false, without calling `use`, when there is
   * no room for the product.
   */
  multiply(left: DeviceMatrix, right: DeviceMatrix, use: (product: Float32Array) => void): boolean;
}

/** The terms of the keys by which columns of a product are chosen. Each step is rounded to float32. */
export interface KeyTerms {
  /** [1, n]: products are multiplied by it. */
  readonly weights: DeviceMatrix | null;
  /** [1, n] and [m, 1]: their outer product is added next. Both are null or neither is. */
  readonly biases: DeviceMatrix | null;
  readonly biasScales: DeviceMatrix | null;
  /** [1, n]: added last; −Infinity excludes a column. */
  readonly mask: DeviceMatrix | null;
  /** [m, 1]: keys above it become −Infinity. */
  readonly caps: DeviceMatrix | null;
}

/** The columns with the largest keys of each row of a product, on the device. */
export interface TopColumns {
  readonly rowCount: number;
  /** Columns per row. */
  readonly count: number;
  dispose(): void;
}

/** Row-major [rowCount, count], largest key first. */
export interface TopKeys {
  readonly columns: Float32Array;
  readonly keys: Float32Array;
}

/** A device with its own memory, from which reading whole products would take too long: it returns the best columns. */
export interface TopDevice extends Device {
  readonly kind: 'top';
  /**
   * Chooses the `count` <= n columns with the largest keys of each row of left [m, d] · right [d, n]; other
   * columns have no larger keys. Returns null when there is no room.
   */
  topColumns(
    left: DeviceMatrix,
    right: DeviceMatrix,
    terms: KeyTerms,
    count: number,
  ): TopColumns | null;
  /** Reads and disposes of all in one transfer, which waits for the device. Returns null when there is no room. */
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
 * `productError` of a device that multiplies as TF32: truncating operands to 10 bits of mantissa is a
 * factor within 1 ± δ, δ = 2^-10, and sums may be truncated, too, which γ = D · 2^-21 bounds; so a sum
 * is within (1 + δ)² (1 + γ) − 1 of the exact one, relative to Σ|a_i b_i|.
 */
export function tf32ProductError(dimension: number): number {
  const sumError = dimension * 2 ** -21;
  return (1 + 2 ** -10) ** 2 * (1 + sumError / (1 - sumError)) - 1 + 8 * 2 ** -24;
}
