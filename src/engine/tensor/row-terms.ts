// What a chunk of rows on a device needs beside its values so that the device chooses rows by their
// keys (certified-selection.ts): a weight and a bias for each, and which rows it must not choose among.

import type { BlockNorms } from '../core/block-norms.js';
import { PLAIN_SQUARE_MAX, PLAIN_SQUARE_MIN } from '../core/scaling.js';
import type { DeviceMatrix, MatrixDevice } from './matrix-device.js';

/**
 * A row that is this much longer than the rest, in the root of the mean square, is scored apart: the
 * longest row decides how certain keys are. At most one row in 64 can be.
 */
const LENGTH_RATIO_MAX = 8;

/** A chunk of which more than one row in this many must be scored apart is not worth a scan. */
const ROWS_PER_ODD_ROW_MIN = 16;

export class RowTerms {
  /** Rows of the block that are scored apart. */
  readonly oddRows: readonly number[];
  /** Of the longest row that is not. */
  readonly lengthMax: number;
  /** [1, rows] float32: 1 / |x|, 0 for odd rows and zero vectors. */
  readonly weights: DeviceMatrix;
  /** [1, rows] float32: −xx / 2, −Infinity for odd rows. */
  readonly biases: DeviceMatrix;

  private readonly odd: ReadonlySet<number>;

  private constructor(parts: Pick<RowTerms, 'oddRows' | 'lengthMax' | 'weights' | 'biases'>) {
    this.oddRows = parts.oddRows;
    this.lengthMax = parts.lengthMax;
    this.weights = parts.weights;
    this.biases = parts.biases;
    this.odd = new Set(parts.oddRows);
  }

  /** Null when the device has no room. */
  static load(
    device: MatrixDevice,
    facts: BlockNorms,
    { from, to }: { from: number; to: number },
  ): RowTerms | null {
    const weights = new Float32Array(to - from);
    const biases = new Float32Array(to - from);
    const oddRows: number[] = [];
    const isOdd = oddTest(facts, from, to);
    let lengthMax = 0;
    for (let row = from; row < to; row++) {
      const square = facts.squares[row]!;
      if (isOdd(square)) {
        oddRows.push(row);
        biases[row - from] = Number.NEGATIVE_INFINITY;
        continue;
      }
      weights[row - from] = facts.inverseLengths[row]!;
      biases[row - from] = -square / 2;
      lengthMax = Math.max(lengthMax, facts.lengths[row]!);
    }
    const loadedWeights = device.load(weights, 1, to - from);
    if (loadedWeights === null) return null;
    const loadedBiases = device.load(biases, 1, to - from);
    if (loadedBiases === null) {
      loadedWeights.dispose();
      return null;
    }
    return new RowTerms({ oddRows, lengthMax, weights: loadedWeights, biases: loadedBiases });
  }

  isOdd(row: number): boolean {
    return this.odd.has(row);
  }

  dispose(): void {
    this.weights.dispose();
    this.biases.dispose();
  }
}

/** Whether so few rows must be scored apart that the others are worth a scan. */
export function isWorthScanning(facts: BlockNorms, from: number, to: number): boolean {
  const isOdd = oddTest(facts, from, to);
  let oddCount = 0;
  for (let row = from; row < to; row++) if (isOdd(facts.squares[row]!)) oddCount++;
  return oddCount * ROWS_PER_ODD_ROW_MIN <= to - from;
}

/** By x·x: a row that is scaled, or much longer than the others that are not. */
function oddTest(facts: BlockNorms, from: number, to: number): (square: number) => boolean {
  const isScaled = (square: number) =>
    square !== 0 && (square < PLAIN_SQUARE_MIN || square > PLAIN_SQUARE_MAX);
  let sum = 0;
  let count = 0;
  for (let row = from; row < to; row++) {
    const square = facts.squares[row]!;
    if (isScaled(square)) continue;
    sum += square;
    count++;
  }
  const squareMax = (sum / count) * LENGTH_RATIO_MAX ** 2;
  return (square) => isScaled(square) || square > squareMax;
}
