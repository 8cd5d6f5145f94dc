// The vectors of the benches: real ones from files that bench/data/make-vectors.mjs writes, clusters, and noise.
// Generated ones are reproducible from a seed.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './machine.js';
import { normalize, readNpy } from './npy.js';

export const SEED = 20_251;
/** Spread of a row around its centre, whose coordinates have spread 1; cosines to it are about 0.8. */
const SPREAD = 0.5;
/** At most this share of a file serves as queries. */
const QUERY_SHARE_MAX = 1 / 8;
/** How far a mixture is moved from its row; its scores then spread like those of real rows. */
const MIXED_SHARE = 0.4;

export interface Shape {
  readonly rowCount: number;
  readonly dimension: number;
}

/** Where the vectors of a data set come from; plain data, since it is sent to other processes. */
export type VectorSource =
  /** Unit vectors around the square root of as many random centres. */
  | { readonly kind: 'clusters'; readonly shape: Shape }
  /** Values that are independent of each other: no direction is preferred, so scans prune least. */
  | { readonly kind: 'noise'; readonly shape: Shape }
  /**
   * Rows of a file, others of which are the queries. When `isMixed`, mixtures of the rows follow until there are
   * enough: they have the same spectrum.
   */
  | {
      readonly kind: 'real';
      /** Relative to the repository. */
      readonly file: string;
      readonly shape: Shape;
      readonly isMixed: boolean;
    };

interface Vectors {
  readonly queryCount: number;
  /** Writes the next vector to `target[offset..offset + dimension)`: rows first, then queries. */
  readonly fill: (target: Float32Array, offset: number) => void;
}

/** Returns why the vectors are unavailable, or null. */
export function findMissing(source: VectorSource): string | null {
  if (source.kind !== 'real' || existsSync(join(ROOT, source.file))) return null;
  return `${source.file} is missing; see bench/data/make-vectors.mjs`;
}

export function openVectors(source: VectorSource, queryCount: number): Vectors {
  switch (source.kind) {
    case 'clusters': {
      const { rowCount, dimension } = source.shape;
      const clusters = new Clusters(dimension, Math.ceil(Math.sqrt(rowCount)));
      return { queryCount, fill: (target, offset) => clusters.draw(target, offset) };
    }
    case 'noise':
      return { queryCount, fill: createNoise(source.shape) };
    case 'real':
      return readVectors(source, queryCount);
  }
}

/** Generates unit vectors. */
class Clusters {
  readonly #dimension: number;
  readonly #centreCount: number;
  /** Row-major [centreCount, dimension]. */
  readonly #centres: Float32Array;
  readonly #normal = new NormalNumbers(SEED);

  constructor(dimension: number, centreCount: number) {
    this.#dimension = dimension;
    this.#centreCount = centreCount;
    this.#centres = new Float32Array(centreCount * dimension);
    this.#normal.add(this.#centres, 1);
  }

  draw(target: Float32Array, offset: number): void {
    const centre = (this.#normal.step() % this.#centreCount) * this.#dimension;
    const vector = target.subarray(offset, offset + this.#dimension);
    vector.set(this.#centres.subarray(centre, centre + this.#dimension));
    this.#normal.add(vector, SPREAD);
    normalize(vector);
  }
}

function createNoise({ dimension }: Shape): Vectors['fill'] {
  const normal = new NormalNumbers(SEED);
  return (target, offset) => normal.add(target.subarray(offset, offset + dimension), 1);
}

/**
 * Approximately normal numbers. 768 million values must not take longer than the cases that use them, so a value
 * costs one step of xorshift32 and no logarithm or cosine: the sum of the step's four bytes is approximately normal
 * (Irwin–Hall), and a scan sums over hundreds of values anyway.
 */
class NormalNumbers {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** Adds a number of this spread to each value. */
  add(target: Float32Array, spread: number): void {
    /** Four uniform bytes have mean 510 and this standard deviation. */
    const scale = spread / Math.sqrt((4 * (256 * 256 - 1)) / 12);
    let state = this.#state;
    for (let i = 0; i < target.length; i++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      const sum =
        (state & 255) + ((state >>> 8) & 255) + ((state >>> 16) & 255) + ((state >>> 24) & 255);
      target[i]! += (sum - 510) * scale;
    }
    this.#state = state;
  }

  /** Returns a random integer below 2^32. */
  step(): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return this.#state >>> 0;
  }
}

function readVectors(
  { file, shape, isMixed }: Extract<VectorSource, { kind: 'real' }>,
  queryCountMax: number,
): Vectors {
  const { values, rowCount, dimension } = readNpy(join(ROOT, file));
  const queryCount = Math.min(queryCountMax, Math.floor(rowCount * QUERY_SHARE_MAX));
  const step = Math.floor(rowCount / Math.max(1, queryCount));
  const isQuery = (row: number) => row % step === 0 && row / step < queryCount;
  const rows: number[] = [];
  const queries: number[] = [];
  for (let row = 0; row < rowCount; row++) (isQuery(row) ? queries : rows).push(row);
  if (dimension !== shape.dimension || (!isMixed && rows.length < shape.rowCount)) {
    throw new Error(
      `${file}: expected ${shape.rowCount} × ${shape.dimension} beside ${queryCount} queries; ` +
        `found ${rows.length} × ${dimension}`,
    );
  }
  const vectorAt = (row: number) => values.subarray(row * dimension, (row + 1) * dimension);
  const random = new NormalNumbers(SEED);
  const anyRow = () => vectorAt(rows[random.step() % rows.length]!);
  let next = 0;
  const fill = (target: Float32Array, offset: number) => {
    const index = next++;
    const vector = target.subarray(offset, offset + dimension);
    if (index >= shape.rowCount) vector.set(vectorAt(queries[index - shape.rowCount]!));
    else if (index < rows.length) vector.set(vectorAt(rows[index]!));
    else mix(vector, anyRow(), anyRow(), anyRow());
  };
  return { queryCount, fill };
}

/** Writes a + share × (b − c), scaled to unit length. */
function mix(target: Float32Array, a: Float32Array, b: Float32Array, c: Float32Array): void {
  for (let i = 0; i < target.length; i++) target[i] = a[i]! + MIXED_SHARE * (b[i]! - c[i]!);
  normalize(target);
}
