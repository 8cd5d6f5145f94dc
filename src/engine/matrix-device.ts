// What the tensor program needs of a device: float32 matrices and their product. A device is used
// by one thread, and knows nothing of vectors, scores or queries.

/** A row-major float32 matrix on the device: a left operand or a right one, never both in turn. */
export interface DeviceMatrix {
  readonly rowCount: number;
  readonly columnCount: number;
  dispose(): void;
}

export interface MatrixDevice {
  /** Copies `values`, row-major [rowCount, columnCount]. Null when there is no room for it. */
  load(values: Float32Array, rowCount: number, columnCount: number): DeviceMatrix | null;
  /**
   * Lends `use` the product of left [m, d] and right [d, n], row-major [m, n]. The view is valid
   * until `use` returns, which must not call the device. False, and no call of `use`, when there
   * is no room for the product.
   *
   * Each entry is a float32 sum of float32 products in any order, with or without fused
   * multiply-add, rounded to nearest with gradual underflow.
   */
  multiply(left: DeviceMatrix, right: DeviceMatrix, use: (product: Float32Array) => void): boolean;
  /** Bytes that a resident right operand takes on the device, what the device packs included. */
  residentBytes(rowCount: number, columnCount: number): number;
  /** Matrices that live: for tests. */
  matrixCount(): number;
}
