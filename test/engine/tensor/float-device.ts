// Matrix devices in plain TypeScript with limited memory that sum in random order and round each step to
// float32. One returns whole products, the other the best columns, optionally multiplied as TF32.

import {
  type DeviceMatrix,
  floatProductError,
  type KeyTerms,
  type ProductDevice,
  type TopColumns,
  type TopDevice,
  type TopKeys,
  tf32ProductError,
} from '../../../src/engine/tensor/matrix-device.js';
import { type Random, randomInt } from '../blocks.js';

interface FloatMatrix extends DeviceMatrix {
  readonly values: Float32Array;
  /** The packed copy, after the first product. */
  operand: Float32Array | null;
}

abstract class FloatMatrices {
  readonly name = 'TypeScript';
  readonly matrices = new Set<FloatMatrix>();
  chunkValuesMax = 2 ** 20;
  chunkRowsMax = 2 ** 14;
  readonly residentBytesUsual = 2 ** 30;
  readonly residentBytesMax = 2 ** 30;
  loadCount = 0;
  multiplyCount = 0;
  /** The number of values, including products, for which there is room. */
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
      operand: null,
      rowCount,
      columnCount,
      dispose: () => this.matrices.delete(matrix),
    };
    this.matrices.add(matrix);
    return matrix;
  }

  productError(dimension: number): number {
    return floatProductError(dimension);
  }

  residentBytes(rowCount: number, columnCount: number): number {
    return rowCount * columnCount * 4;
  }

  matrixCount(): number {
    return this.matrices.size;
  }

  /** Returns the product, row-major [m, n]; null when there is no room. */
  protected product(
    left: FloatMatrix,
    right: FloatMatrix,
    read = (value: number) => value,
  ): Float32Array | null {
    const { rowCount, columnCount: depth } = left;
    const { columnCount } = right;
    if (!this.hasRoom(rowCount * columnCount)) return null;
    this.multiplyCount++;
    const order = shuffle(this.random, depth);
    left.operand ??= left.values.map(read);
    right.operand ??= right.values.map(read);
    const lefts = left.operand;
    const rights = right.operand;
    const product = new Float32Array(rowCount * columnCount);
    for (let row = 0; row < rowCount; row++) {
      const sums = product.subarray(row * columnCount, (row + 1) * columnCount);
      for (const i of order) {
        const a = lefts[row * depth + i]!;
        const offset = i * columnCount;
        // Storing rounds the sum.
        for (let column = 0; column < columnCount; column++) {
          sums[column]! += Math.fround(a * rights[offset + column]!);
        }
      }
    }
    return product;
  }

  protected hasRoom(valueCount: number): boolean {
    let used = valueCount;
    for (const { values } of this.matrices) used += values.length;
    return used <= this.valuesMax;
  }
}

export class FloatDevice extends FloatMatrices implements ProductDevice {
  readonly kind = 'product';
  readonly hasOwnMemory = false;

  multiply(left: FloatMatrix, right: FloatMatrix, use: (product: Float32Array) => void): boolean {
    const product = this.product(left, right);
    if (product === null) return false;
    use(product);
    product.fill(Number.NaN);
    return true;
  }
}

interface FloatTop extends TopColumns {
  readonly best: TopKeys;
}

export class TopFloatDevice extends FloatMatrices implements TopDevice {
  readonly kind = 'top';
  readonly hasOwnMemory = true;
  /** Whether operands are truncated to the 10 mantissa bits of TF32. */
  isTf32 = false;
  readCount = 0;
  /** The number of columns requested, by product. */
  readonly counts: number[] = [];
  /** Results that were neither read nor disposed of. */
  readonly waiting = new Set<FloatTop>();

  topColumns(
    left: FloatMatrix,
    right: FloatMatrix,
    { weights, biases, biasScales, mask, caps }: KeyTerms,
    count: number,
  ): FloatTop | null {
    const product = this.product(left, right, this.isTf32 ? cutToTf32 : undefined);
    if (product === null) return null;
    const { rowCount } = left;
    const { columnCount } = right;
    const valuesOf = (matrix: DeviceMatrix | null) => (matrix as FloatMatrix | null)?.values;
    const [factors, summands, scales, masked, limits] = [
      weights,
      biases,
      biasScales,
      mask,
      caps,
    ].map(valuesOf);
    const best = {
      columns: new Float32Array(rowCount * count),
      keys: new Float32Array(rowCount * count),
    };
    for (let row = 0; row < rowCount; row++) {
      const keys = product.subarray(row * columnCount, (row + 1) * columnCount);
      const limit = limits?.[row] ?? Number.POSITIVE_INFINITY;
      for (let column = 0; column < columnCount; column++) {
        // Storing rounds each step.
        if (factors) keys[column]! *= factors[column]!;
        if (summands) keys[column]! += Math.fround(scales![row]! * summands[column]!);
        if (masked) keys[column]! += masked[column]!;
        if (keys[column]! > limit) keys[column] = Number.NEGATIVE_INFINITY;
      }
      best.columns.set(largest(keys, count), row * count);
      for (let i = row * count; i < (row + 1) * count; i++) best.keys[i] = keys[best.columns[i]!]!;
    }
    this.counts.push(count);
    const top: FloatTop = { rowCount, count, best, dispose: () => this.waiting.delete(top) };
    this.waiting.add(top);
    return top;
  }

  read(tops: readonly FloatTop[]): TopKeys[] | null {
    if (!this.hasRoom(tops.reduce((sum, { rowCount, count }) => sum + 2 * rowCount * count, 0))) {
      return null;
    }
    this.readCount++;
    for (const top of tops) top.dispose();
    return tops.map(({ best }) => best);
  }

  override productError(dimension: number): number {
    return this.isTf32 ? tf32ProductError(dimension) : floatProductError(dimension);
  }
}

const single = new Float32Array(1);
const bits = new Uint32Array(single.buffer);

/** Truncates to 10 bits of mantissa; flushes denormal numbers to zero. */
function cutToTf32(value: number): number {
  if (Math.abs(value) < 2 ** -126) return 0;
  single[0] = value;
  bits[0]! &= 0xffffe000;
  return single[0];
}

/** Returns the indexes of the `count` largest keys, largest first, equal keys in order; at most 2^20 keys. */
function largest(keys: Float32Array, count: number): Float64Array {
  const keyBits = new Uint32Array(keys.slice().buffer);
  // Combines key and index in one number that float64 represents exactly.
  const ranked = Float64Array.from(keyBits, (word, place) => {
    const descending = word >= 2 ** 31 ? word : 2 ** 31 - 1 - word;
    return descending * 2 ** 20 + place;
  });
  return ranked
    .sort()
    .subarray(0, count)
    .map((rank) => rank % 2 ** 20);
}

function shuffle(random: Random, length: number): number[] {
  const order = Array.from({ length }, (_, i) => i);
  for (let i = length - 1; i > 0; i--) {
    const other = randomInt(random, i + 1);
    [order[i], order[other]] = [order[other]!, order[i]!];
  }
  return order;
}
