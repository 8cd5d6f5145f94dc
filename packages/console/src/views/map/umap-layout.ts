// Lays out a graph of neighbours in two dimensions like UMAP, on typed arrays: connected points attract each
// other, and points chosen at random repel. The same seed gives the same layout.

import type { FuzzyEdges } from './fuzzy-edges.js';

export interface UmapOptions {
  readonly epochCount: number;
  readonly seed: number;
}

/** As in the reference implementation: more epochs for few points, where they cost little. */
export function epochCountFor(pointCount: number): number {
  return pointCount <= 10_000 ? 500 : 200;
}

/**
 * The connection of points at distance d is 1 / (1 + SCALE·d²). The reference implementation raises d to
 * 2·0.895 with this scale (for its min_dist of 0.1); the square is cheaper to compute and looks the same.
 */
const SCALE = 1.577;
const NEGATIVE_SAMPLES = 5;
/** The maximum change of a coordinate per step, to be multiplied by the learning rate. */
const STEP_MAX = 4;
/** Half the initial width of the layout. */
const START_EXTENT = 10;
/** Separates points with the same projection. */
const START_NOISE = 0.01;
/** Edges that would be sampled less often are left out. */
const SAMPLES_MIN = 1;

export class UmapLayout {
  /** Row-major [pointCount, 2]; each epoch moves them. */
  readonly positions: Float32Array;
  readonly epochCount: number;
  readonly #edges: FuzzyEdges;
  /** For each edge, the number of epochs between two samples, and the epoch of the next sample. */
  readonly #intervals: Float32Array;
  readonly #nextEpochs: Float32Array;
  #random: number;
  #epoch = 0;

  /** @param start row-major [pointCount, 2], such as the first two principal components. */
  constructor(edges: FuzzyEdges, start: Float32Array, { epochCount, seed }: UmapOptions) {
    this.epochCount = epochCount;
    this.#edges = edges;
    // The state of xorshift must not be 0, or it would stay 0.
    this.#random = (Math.imul(seed, 0x9e3779b9) ^ 0x5bd1e995) | 1;
    this.positions = this.#spread(start);
    const weightMax = edges.weights.reduce((max, weight) => Math.max(max, weight), 0);
    this.#intervals = edges.weights.map((weight) => {
      const interval = weightMax / weight;
      return epochCount / interval < SAMPLES_MIN ? Number.POSITIVE_INFINITY : interval;
    });
    this.#nextEpochs = this.#intervals.slice();
  }

  /** The number of completed epochs. */
  get epoch(): number {
    return this.#epoch;
  }

  get isDone(): boolean {
    return this.#epoch >= this.epochCount;
  }

  runEpoch(): void {
    const { heads, tails } = this.#edges;
    const epoch = ++this.#epoch;
    const rate = 1 - (epoch - 1) / this.epochCount;
    for (let edge = 0; edge < heads.length; edge++) {
      if (this.#nextEpochs[edge]! > epoch) continue;
      this.#nextEpochs[edge]! += this.#intervals[edge]!;
      // Alternates the direction, so that both ends are repelled from other points.
      const isForward = (epoch & 1) === 1;
      const head = isForward ? heads[edge]! : tails[edge]!;
      this.#attract(head, isForward ? tails[edge]! : heads[edge]!, rate);
      for (let sample = 0; sample < NEGATIVE_SAMPLES; sample++) this.#repelFromAny(head, rate);
    }
  }

  #attract(head: number, tail: number, rate: number): void {
    const { positions } = this;
    const [at, other] = [2 * head, 2 * tail];
    const x = positions[at]! - positions[other]!;
    const y = positions[at + 1]! - positions[other + 1]!;
    const force = (-2 * SCALE) / (1 + SCALE * (x * x + y * y));
    const stepX = rate * clip(force * x);
    const stepY = rate * clip(force * y);
    positions[at]! += stepX;
    positions[at + 1]! += stepY;
    positions[other]! -= stepX;
    positions[other + 1]! -= stepY;
  }

  #repelFromAny(head: number, rate: number): void {
    const { positions } = this;
    const other = 2 * (this.#next() % (positions.length / 2));
    const at = 2 * head;
    if (other === at) return;
    const x = positions[at]! - positions[other]!;
    const y = positions[at + 1]! - positions[other + 1]!;
    const square = x * x + y * y;
    const force = 2 / ((0.001 + square) * (1 + SCALE * square));
    positions[at]! += rate * clip(force * x);
    positions[at + 1]! += rate * clip(force * y);
  }

  #spread(start: Float32Array): Float32Array {
    const extent = start.reduce((max, value) => Math.max(max, Math.abs(value)), 0) || 1;
    return start.map((value) => {
      const noise = (this.#next() / 2 ** 32 - 0.5) * 2 * START_NOISE;
      return (value / extent) * START_EXTENT + noise;
    });
  }

  /** xorshift32: a whole number in [1, 2^32). */
  #next(): number {
    let state = this.#random;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#random = state;
    return state >>> 0;
  }
}

function clip(step: number): number {
  return step > STEP_MAX ? STEP_MAX : step < -STEP_MAX ? -STEP_MAX : step;
}
