// The queries of a batch as operands of products.

import type { ExactTopKSelector } from './exact-top-k-selector.js';
import type { DeviceMatrix, MatrixDevice } from './matrix-device.js';

/** The scanned queries as operands, kept while the same queries are scanned chunk by chunk. */
export class QueryOperands {
  readonly #device: MatrixDevice;
  readonly #dimension: number;
  #selections: readonly ExactTopKSelector[] = [];
  #rows: DeviceMatrix | null = null;
  #columns: DeviceMatrix | null = null;

  constructor(device: MatrixDevice, dimension: number) {
    this.#device = device;
    this.#dimension = dimension;
  }

  /** [selections.length, dimension]; null when the device has no room. */
  asRows(selections: readonly ExactTopKSelector[]): DeviceMatrix | null {
    this.#keepFor(selections);
    if (this.#rows === null) {
      const values = new Float32Array(selections.length * this.#dimension);
      for (const [index, { scaled }] of selections.entries()) {
        values.set(scaled, index * this.#dimension);
      }
      this.#rows = this.#device.load(values, selections.length, this.#dimension);
    }
    return this.#rows;
  }

  /** [dimension, selections.length]; null when the device has no room. */
  asColumns(selections: readonly ExactTopKSelector[]): DeviceMatrix | null {
    this.#keepFor(selections);
    if (this.#columns === null) {
      const count = selections.length;
      const values = new Float32Array(this.#dimension * count);
      for (const [index, { scaled }] of selections.entries()) {
        for (let i = 0; i < scaled.length; i++) values[i * count + index] = scaled[i]!;
      }
      this.#columns = this.#device.load(values, this.#dimension, count);
    }
    return this.#columns;
  }

  dispose(): void {
    this.#rows?.dispose();
    this.#columns?.dispose();
    this.#rows = null;
    this.#columns = null;
  }

  #keepFor(selections: readonly ExactTopKSelector[]): void {
    const isSame =
      selections.length === this.#selections.length &&
      selections.every((selection, index) => selection === this.#selections[index]);
    if (isSame) return;
    this.dispose();
    this.#selections = selections;
  }
}
