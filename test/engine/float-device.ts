// A matrix device in plain TypeScript that sums in a random order, rounding each step to float32,
// with a bound on its room: what the tensor program must cope with.

import type { DeviceMatrix, MatrixDevice } from '../../src/engine/matrix-device.js';
import { type Random, randomInt } from './blocks.js';

interface FloatMatrix extends DeviceMatrix {
  readonly values: Float32Array;
}

export class FloatDevice implements MatrixDevice {
  readonly matrices = new Set<FloatMatrix>();
  loadCount = 0;
  multiplyCount = 0;
  /** Values for which there is room; products count. */
  valuesMax = Number.POSITIVE_INFINITY;
  private readonly random: Random;

  constructor(random: Random) {
    this.random = random;
  }

  load(values: Float32Array, rowCount: number, columnCount: number): DeviceMatrix | null {
    if (!this.hasRoom(values.length)) return null;
    this.loadCount++;
    const matrix: FloatMatrix = {
      values: Float32Array.from(values),
      rowCount,
      columnCount,
      dispose: () => this.matrices.delete(matrix),
    };
    this.matrices.add(matrix);
    return matrix;
  }

  multiply(left: FloatMatrix, right: FloatMatrix, use: (product: Float32Array) => void): boolean {
    const { rowCount, columnCount: depth } = left;
    const { columnCount } = right;
    if (!this.hasRoom(rowCount * columnCount)) return false;
    this.multiplyCount++;
    const order = shuffle(this.random, depth);
    const product = new Float32Array(rowCount * columnCount);
    for (let row = 0; row < rowCount; row++) {
      for (let column = 0; column < columnCount; column++) {
        let sum = 0;
        for (const i of order) {
          const term = left.values[row * depth + i]! * right.values[i * columnCount + column]!;
          sum = Math.fround(sum + Math.fround(term));
        }
        product[row * columnCount + column] = sum;
      }
    }
    use(product);
    product.fill(Number.NaN);
    return true;
  }

  residentBytes(rowCount: number, columnCount: number): number {
    return rowCount * columnCount * 4;
  }

  matrixCount(): number {
    return this.matrices.size;
  }

  private hasRoom(valueCount: number): boolean {
    let used = valueCount;
    for (const { values } of this.matrices) used += values.length;
    return used <= this.valuesMax;
  }
}

function shuffle(random: Random, length: number): number[] {
  const order = Array.from({ length }, (_, i) => i);
  for (let i = length - 1; i > 0; i--) {
    const other = randomInt(random, i + 1);
    [order[i], order[other]] = [order[other]!, order[i]!];
  }
  return order;
}
