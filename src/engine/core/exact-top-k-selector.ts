// Turns float32 products of one query with the rows of a block into its exact answer. The scan only
// proposes: a row is dropped iff its score plus a proven error bound is below a proven lower bound
// of the k-th best score; every other row is scored canonically. So the answer has the rows and the
// score bits of the reference engine, whatever the data.
//
// Notation: u = 2^-24 (float32), q and x the stored vectors, D their dimension (at most 2^14), s and
// r the powers of two by which query and row are scaled (scaling.ts): 1 <= |sq| <= 2, and |rx| is
// between 2^-20 and 2^20, unless the vector is 0. p is the scanned sum of products of sq and rx.
//
// 1. Summation. |p − Σ| <= (E − 8u) |sq| |rx| with E the device's productError: D u and a bit for
//    float32 (matrix-device.ts). Nothing overflows: every partial sum is below 2^22. Zeros that a
//    kernel pads with add nothing.
// 2. Underflow. What is below 2^-126, be it a value, a product or a sum, may lose its last bits or
//    all of them. Lost values move Σ by at most 2^-126 (Σ|sq_i| + Σ|rx_i|) <= 2^-126 √D (2 + 2^20),
//    lost products and sums by 2^-125 D: together below 2^-96, thus below u² |sq| |rx|, which is at
//    least 2^-68. Scaling by a power of two is exact but for values that become that small. A zero
//    vector has p = 0 without any error.
// 3. Steps in float64 (lengths, quotients, the canonical q·x, each of the few operations below) have
//    relative errors of at most (D + 16) 2^-53 <= 2^-38 of |q| |x| together.
// So, since the 8u of E cover 2 and 3:
//
//    |p / (s r) − q·x| <= E |q| |x|,   against the exact as well as the canonical q·x.
//
// With c = p / (r |x|), the scanned cosine times |sq|:
//    cosine     is within E of c / |sq|. Clamping moves the canonical value towards the exact one.
//    dot        is within E |q| |x| of (c / |sq|) |q| |x|.
//    euclidean  is within 2E |q| |x| + A (qq + xx) of 2 (c / |sq|) |q| |x| − xx − qq, where A =
//               (D + 16) 2^-52 covers the roundings of qq and xx, of the canonical sums of three
//               terms and of ours. The canonical max(0, …) moves towards the exact value.
//
// A device that hands out only the rows with the largest keys computes these in float32, for rows
// with r = 1 (row-terms.ts):
//    cosine     key = p · w, w the rounded 1 / |x|: two roundings, 3u |sq| at most.
//    dot        key = p.
//    euclidean  key = p − s · b, b the rounded xx / 2; multiplying by s is exact. Rounding b and the
//               difference moves the key by u |p| + u s xx and a bit; twice that, over s, is below
//               2 · 2u |q| |x| + 3u xx.
// So each score is within the bounds above of what its key says, once E is 4u wider and 4u xx is
// added. A row that was not handed out has no larger key than the last one that was; with
// the length of the longest row for |x| that bounds its score from above.

import { hasBit } from '../../common/bitmap.js';
import type { VectorBlock } from '../../common/types.js';
import type { BlockNorms } from './block-norms.js';
import type { CanonicalQuery } from './canonical.js';
import { createTopRows, scanRows, scoreRow, unpackQuery } from './canonical-scan.js';
import { KthLargest } from './kth-largest.js';
import type { TopRows } from './order.js';
import type { PackedQueries, PackedQuery } from './packed-queries.js';
import type { BlockHits } from './per-block.js';
import { unitScale } from './scaling.js';

/** Scanned products of one query: those of row `firstRow + i` are at `values[offset + i * stride]`. */
export interface ScannedProducts {
  readonly values: Float32Array;
  readonly offset: number;
  readonly stride: number;
  readonly firstRow: number;
  readonly rowCount: number;
}

/** Rows of a chunk that a device handed out, largest key first. */
export interface KeyedRows {
  readonly rows: ArrayLike<number>;
  readonly keys: ArrayLike<number>;
  /** Of the longest row of the chunk. */
  readonly lengthMax: number;
}

/** 4u of the proof. */
const KEY_ERROR = 2 ** -22;

/** Rows that may wait for rescoring beside twice k: waiting longer prunes more and costs memory. */
const PENDING_ROWS = 1024;

export class ExactTopKSelector {
  readonly query: PackedQuery;
  /** [dimension] float32: the query times its scale, as the scan wants it. */
  readonly scaled: Float32Array;

  private readonly block: VectorBlock;
  private readonly facts: BlockNorms;
  private readonly canonical: CanonicalQuery;
  private readonly length: number;
  /** s, and |sq|; 1 for a zero query, whose c is 0 anyway. */
  readonly scale: number;
  private readonly scaledLength: number;
  /** E and A of the proof. */
  private readonly productError: number;
  private readonly squareError: number;

  private readonly top: TopRows;
  private readonly lowerBounds: KthLargest;
  private readonly pendingMax: number;
  private pendingRows = new Uint32Array(64);
  private pendingUpper = new Float64Array(64);
  private pendingCount = 0;
  /** A row whose upper bound is below this is out: the best of what is proven so far. */
  private threshold: number;
  private scannedCount = 0;
  private rescoredCount = 0;

  /** `productError` is the device's, for the dimension of the block. */
  constructor(
    block: VectorBlock,
    facts: BlockNorms,
    { packed, index, productError }: { packed: PackedQueries; index: number; productError: number },
  ) {
    const query = packed.queries[index]!;
    const { dimension } = block;
    this.query = query;
    this.block = block;
    this.facts = facts;
    this.canonical = unpackQuery(packed, index, dimension);
    this.length = Math.sqrt(this.canonical.square);
    this.scale = unitScale(this.canonical.square);
    this.scaledLength = this.length === 0 ? 1 : this.length * this.scale;
    this.scaled = Float32Array.from(this.canonical.values, (value) => value * this.scale);
    this.productError = productError;
    this.squareError = (dimension + 16) * 2 ** -52;
    this.top = createTopRows(block, query, query.rowCount);
    this.lowerBounds = new KthLargest(Math.min(query.k, query.rowCount));
    this.pendingMax = 2 * query.k + PENDING_ROWS;
    this.threshold = this.top.floor;
  }

  /** Counts rows that pass, whichever way they are scored. */
  countScanned(rowCount: number): void {
    this.scannedCount += rowCount;
  }

  /** Scores the selected rows of from..to canonically. */
  score(from: number, to: number): void {
    const range = { from, to, squares: this.facts.rowSquares };
    this.rescoredCount += scanRows(this.block, this.canonical, this.query, range, this.top);
    this.threshold = Math.max(this.threshold, this.top.cutoff);
  }

  /** Takes the candidates among scanned rows. Each row is scored or collected, once. */
  collect(products: ScannedProducts): void {
    const { values, offset, stride, firstRow } = products;
    const rowCount = Math.min(products.rowCount, this.query.rowCount - firstRow);
    const { inverseLengths, lengths, squares } = this.facts;
    // The tests below are "upper bound >= threshold", divided by what does not depend on the row.
    const error = this.productError * this.scaledLength;
    let limit = this.scanLimit();
    switch (this.query.metric) {
      case 'cosine':
        for (let i = 0; i < rowCount; i++) {
          const cosine = values[offset + i * stride]! * inverseLengths[firstRow + i]!;
          if (cosine >= limit && this.consider(firstRow + i, cosine)) limit = this.scanLimit();
        }
        break;
      case 'dot':
        for (let i = 0; i < rowCount; i++) {
          const cosine = values[offset + i * stride]! * inverseLengths[firstRow + i]!;
          if (
            (cosine + error) * lengths[firstRow + i]! >= limit &&
            this.consider(firstRow + i, cosine)
          ) {
            limit = this.scanLimit();
          }
        }
        break;
      case 'euclidean': {
        const squareWeight = (1 - this.squareError) * this.scale;
        for (let i = 0; i < rowCount; i++) {
          const row = firstRow + i;
          const cosine = values[offset + i * stride]! * inverseLengths[row]!;
          if (
            2 * (cosine + error) * lengths[row]! - squareWeight * squares[row]! >= limit &&
            this.consider(row, cosine)
          ) {
            limit = this.scanLimit();
          }
        }
        break;
      }
    }
  }

  /** Whether the keys of rows, as of the proof, neither overflow nor underflow. */
  get hasKeys(): boolean {
    return this.query.metric !== 'euclidean' || (this.scale >= 2 ** -80 && this.scale <= 2 ** 80);
  }

  /**
   * Takes the candidates among rows that a device handed out, largest key first; those that do not
   * pass are left out. Each row is scored or collected, once.
   */
  collectKeyed({ rows, keys, lengthMax }: KeyedRows): void {
    const { rowCount, rows: passing } = this.query;
    for (let i = 0; i < keys.length; i++) {
      if (this.boundOf(keys[i]!, lengthMax) < this.threshold) return;
      const row = rows[i]!;
      if (row >= rowCount || (passing !== null && !hasBit(passing, row))) continue;
      this.considerBetween(
        row,
        this.centerOfKey(keys[i]!),
        this.keyError(this.facts.lengths[row]!),
      );
    }
  }

  /** Whether no row that passes and has at most this key and this length is in the answer. */
  isBelow(key: number, lengthMax: number): boolean {
    return this.boundOf(key, lengthMax) < this.threshold;
  }

  /** A key such that rows with a larger one, up to this length, are before the query's position; Infinity where none is. */
  keyCap(lengthMax: number): number {
    const { after, metric } = this.query;
    if (after === null) return Number.POSITIVE_INFINITY;
    const score = after.score + this.keyError(lengthMax);
    if (metric === 'cosine') return score * this.scaledLength;
    if (metric === 'dot') return score * this.scale;
    return ((score + this.canonical.square) * this.scale) / 2;
  }

  /** Scores what was collected and may be in the answer: the threshold is then as high as can be. */
  rescore(): void {
    this.rescorePending();
  }

  /** The answer, when every row has been scored or collected. */
  finish(): BlockHits {
    this.rescorePending();
    const { scannedCount, rescoredCount } = this;
    return { ...this.top.take(), scannedCount, rescoredCount };
  }

  /** The threshold in the units of the loops of `collect`. */
  private scanLimit(): number {
    switch (this.query.metric) {
      case 'cosine':
        return (this.threshold - this.productError) * this.scaledLength;
      case 'dot':
        return this.threshold * this.scale;
      case 'euclidean':
        return (this.threshold + this.canonical.square * (1 - this.squareError)) * this.scale;
    }
  }

  /** Keeps the row if it may be in the answer; true when the threshold may have risen. */
  private consider(row: number, scaledCosine: number): boolean {
    const { rows } = this.query;
    if (rows !== null && !hasBit(rows, row)) return false;
    return this.considerBetween(row, this.center(row, scaledCosine), this.errorOf(row));
  }

  /** As `consider`, for a row that passes and whose score is within `error` of `center`. */
  private considerBetween(row: number, center: number, error: number): boolean {
    const { after } = this.query;
    const upper = center + error;
    const lower = center - error;
    if (upper < this.threshold) return false;
    if (after !== null && lower > after.score) return false;
    this.addPending(row, upper);
    // Only rows that are after the position for certain prove anything about the k-th best. Those
    // below the floor prove nothing, either, but never raise the threshold, which starts there.
    if (after === null || upper < after.score) {
      this.lowerBounds.add(lower);
      this.threshold = Math.max(this.threshold, this.lowerBounds.value);
    }
    return true;
  }

  /** The score as scanned. */
  private center(row: number, scaledCosine: number): number {
    const cosine = scaledCosine / this.scaledLength;
    if (this.query.metric === 'cosine') return cosine;
    const product = cosine * this.length * this.facts.lengths[row]!;
    if (this.query.metric === 'dot') return product;
    return 2 * product - this.facts.squares[row]! - this.canonical.square;
  }

  /** How far the canonical score may be from the scanned one. */
  private errorOf(row: number): number {
    if (this.query.metric === 'cosine') return this.productError;
    const productError = this.productError * this.length * this.facts.lengths[row]!;
    if (this.query.metric === 'dot') return productError;
    const squareSum = this.facts.squares[row]! + this.canonical.square;
    return 2 * productError + this.squareError * squareSum;
  }

  /** The score that a key stands for. */
  private centerOfKey(key: number): number {
    if (this.query.metric === 'cosine') return key / this.scaledLength;
    if (this.query.metric === 'dot') return key / this.scale;
    return (2 * key) / this.scale - this.canonical.square;
  }

  /** How far the canonical score of a row of this length may be from `centerOfKey`. */
  private keyError(length: number): number {
    const error = this.productError + KEY_ERROR;
    if (this.query.metric === 'cosine') return error;
    const productError = error * this.length * length;
    if (this.query.metric === 'dot') return productError;
    const square = length * length;
    const squareSum = square + this.canonical.square;
    return 2 * productError + KEY_ERROR * square + this.squareError * squareSum;
  }

  /** The best score that a row with at most this key and this length may have. */
  private boundOf(key: number, lengthMax: number): number {
    return this.centerOfKey(key) + this.keyError(lengthMax);
  }

  private addPending(row: number, upper: number): void {
    if (this.pendingCount === this.pendingMax) this.shrinkPending();
    if (this.pendingCount === this.pendingRows.length) this.growPending();
    this.pendingRows[this.pendingCount] = row;
    this.pendingUpper[this.pendingCount] = upper;
    this.pendingCount++;
  }

  private growPending(): void {
    const capacity = Math.min(2 * this.pendingCount, this.pendingMax);
    const rows = new Uint32Array(capacity);
    const upper = new Float64Array(capacity);
    rows.set(this.pendingRows);
    upper.set(this.pendingUpper);
    this.pendingRows = rows;
    this.pendingUpper = upper;
  }

  /** Makes room: drops what the threshold has overtaken; where that is little, bounds are too close together and scores decide. */
  private shrinkPending(): void {
    let kept = 0;
    for (let i = 0; i < this.pendingCount; i++) {
      if (this.pendingUpper[i]! < this.threshold) continue;
      this.pendingRows[kept] = this.pendingRows[i]!;
      this.pendingUpper[kept] = this.pendingUpper[i]!;
      kept++;
    }
    this.pendingCount = kept;
    if (kept > this.pendingMax / 2) this.rescorePending();
  }

  private rescorePending(): void {
    const squares = this.facts.rowSquares;
    for (let i = 0; i < this.pendingCount; i++) {
      if (this.pendingUpper[i]! < this.threshold) continue;
      const row = this.pendingRows[i]!;
      this.top.offer(scoreRow(this.block, this.canonical, squares, row), row);
      this.threshold = Math.max(this.threshold, this.top.cutoff);
      this.rescoredCount++;
    }
    this.pendingCount = 0;
  }
}
