// The terms by which a device computes the keys of a chunk's rows (exact-top-k-selector.ts): a weight and a
// bias per row, and the outlier rows that the device must not choose, which are scored separately.

import type { BlockNorms } from './block-norms.js';
import type { DeviceMatrix, MatrixDevice } from './matrix-device.js';
import { PLAIN_SQUARE_MAX, PLAIN_SQUARE_MIN } from './scaling.js';

/**
 * A row longer than this multiple of the chunk's root mean square length is an outlier: the longest
 * row determines the error bound of keys. At most one row in 64 can be that long.
 */
const LENGTH_RATIO_MAX = 8;

/** A chunk with more than one outlier per this many rows is not scanned. */
const ROWS_PER_OUTLIER_MIN = 16;

export class RowTerms {
  /** Row numbers in the block. */
  readonly outlierRows: readonly number[];
  /** The length of the longest row that is not an outlier. */
  readonly lengthMax: number;
  /** [1, rows] float32: 1 / |x|, 0 for outliers and zero vectors. */
  readonly weights: DeviceMatrix;
  /** [1, rows] float32: −xx / 2, −Infinity for outliers. */
  readonly biases: DeviceMatrix;

  readonly #outliers: ReadonlySet<number>;

  private constructor(terms: Pick<RowTerms, 'outlierRows' | 'lengthMax' | 'weights' | 'biases'>) {
    this.outlierRows = terms.outlierRows;
    this.lengthMax = terms.lengthMax;
    this.weights = terms.weights;
    this.biases = terms.biases;
    this.#outliers = new Set(terms.outlierRows);
  }

  /** Loads the terms of the rows from..to. Returns null when the device has no room. */
  static load(
    device: MatrixDevice,
    norms: BlockNorms,
    { from, to }: { from: number; to: number },
  ): RowTerms | null {
    const weights = new Float32Array(to - from);
    const biases = new Float32Array(to - from);
    const outlierRows: number[] = [];
    const isOutlier = outlierTest(norms, from, to);
    let lengthMax = 0;
    for (let row = from; row < to; row++) {
      const square = norms.squares[row]!;
      if (isOutlier(square)) {
        outlierRows.push(row);
        biases[row - from] = Number.NEGATIVE_INFINITY;
        continue;
      }
      weights[row - from] = norms.inverseLengths[row]!;
      biases[row - from] = -square / 2;
      lengthMax = Math.max(lengthMax, norms.lengths[row]!);
    }
    const loadedWeights = device.load(weights, 1, to - from);
    if (loadedWeights === null) return null;
    const loadedBiases = device.load(biases, 1, to - from);
    if (loadedBiases === null) {
      loadedWeights.dispose();
      return null;
    }
    return new RowTerms({ outlierRows, lengthMax, weights: loadedWeights, biases: loadedBiases });
  }

  isOutlier(row: number): boolean {
    return this.#outliers.has(row);
  }

  dispose(): void {
    this.weights.dispose();
    this.biases.dispose();
  }
}

/** Whether there are few enough outliers that a scan of the other rows is worthwhile. */
export function shouldScan(norms: BlockNorms, from: number, to: number): boolean {
  const isOutlier = outlierTest(norms, from, to);
  let outlierCount = 0;
  for (let row = from; row < to; row++) if (isOutlier(norms.squares[row]!)) outlierCount++;
  return outlierCount * ROWS_PER_OUTLIER_MIN <= to - from;
}

/** Returns the test for outliers by x·x: rows that need scaling or are much longer than those that do not. */
function outlierTest(norms: BlockNorms, from: number, to: number): (square: number) => boolean {
  const isScaled = (square: number) =>
    square !== 0 && (square < PLAIN_SQUARE_MIN || square > PLAIN_SQUARE_MAX);
  let sum = 0;
  let count = 0;
  for (let row = from; row < to; row++) {
    const square = norms.squares[row]!;
    if (isScaled(square)) continue;
    sum += square;
    count++;
  }
  const squareMax = (sum / count) * LENGTH_RATIO_MAX ** 2;
  return (square) => isScaled(square) || square > squareMax;
}
