// Turns float32 products of one query with the rows of a block into its exact answer. The scan only
// proposes candidates: a row is dropped iff its score plus a proven error bound is below a proven
// lower bound of the k-th best score; every other row is scored canonically. So the answer has the
// rows and the score bits of the reference engine, whatever the data.
//
// Notation: u = 2^-24 (float32), q and x the stored vectors, D their dimension (at most 2^14), s and
// r the powers of two by which query and row are scaled (scaling.ts): 1 <= |sq| <= 2, and |rx| is
// between 2^-20 and 2^20, unless the vector is 0. p is the scanned sum of products of sq and rx.
//
// 1. Summation. |p − Σ| <= (E − 8u) |sq| |rx| with E the device's productError: D u and a bit for
//    float32 (matrix-device.ts). Nothing overflows: every partial sum is below 2^22. Zeros that a
//    kernel pads with add nothing.
// 2. Underflow. Values, products and sums below 2^-126 may lose some or all of their bits. Lost values
//    change Σ by at most 2^-126 (Σ|sq_i| + Σ|rx_i|) <= 2^-126 √D (2 + 2^20), lost products and sums
//    by 2^-125 D: together below 2^-96, thus below u² |sq| |rx|, which is at least 2^-68. Scaling by a
//    power of two is exact except for values that become that small. A zero vector has p = 0 without
//    any error.
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
// A device that returns only the rows with the largest keys computes the keys in float32, for rows with
// r = 1 (row-terms.ts):
//    cosine     key = p · w, w the rounded 1 / |x|: two roundings, at most 3u |sq|.
//    dot        key = p.
//    euclidean  key = p − s · b, b the rounded xx / 2; multiplying by s is exact. Rounding b and the
//               difference changes the key by little more than u |p| + u s xx; twice that, over s, is
//               below 2 · 2u |q| |x| + 3u xx.
// So each score is within the bounds above of the value that its key implies, once E is 4u wider and
// 4u xx is added. A row that was not returned has no larger key than the last one that was; with the
// length of the longest row for |x|, that bounds its score from above.

import { hasBit } from '../../common/bitmap.js';
import { isDistance, type VectorBlock } from '../../common/types.js';
import type { CanonicalQuery } from '../core/canonical.js';
import { createTopRows, scanRows, scoreRow, unpackQuery } from '../core/canonical-scan.js';

import type { TopRows } from '../core/order.js';
import type { PackedQueries, PackedQuery } from '../core/packed-queries.js';
import type { BlockHits } from '../core/per-block.js';
import type { BlockNorms } from './block-norms.js';
import { unitScale } from './scaling.js';

/** Scanned products of one query; `values[offset + i * stride]` belongs to row `firstRow + i`. */
interface ScannedProducts {
  readonly values: Float32Array;
  readonly offset: number;
  readonly stride: number;
  readonly firstRow: number;
  readonly rowCount: number;
}

/** Rows of a chunk that a device returned, largest key first. */
interface KeyedRows {
  readonly rows: ArrayLike<number>;
  readonly keys: ArrayLike<number>;
  /** The length of the longest row of the chunk. */
  readonly lengthMax: number;
}

/** 4u of the proof. */
const KEY_ERROR = 2 ** -22;

/** Room for candidates in addition to twice k: more room prunes more and costs memory. */
const PENDING_ROWS = 1024;

export class ExactTopKSelector {
  readonly query: PackedQuery;
  /** [dimension] float32: the query times its scale, for the scan. */
  readonly scaled: Float32Array;

  readonly #block: VectorBlock;
  readonly #norms: BlockNorms;
  readonly #canonical: CanonicalQuery;
  readonly #length: number;
  /** s, and |sq|; 1 for a zero query, whose c is 0 anyway. */
  readonly scale: number;
  readonly #scaledLength: number;
  /** E and A of the proof. */
  readonly #productError: number;
  readonly #squareError: number;

  readonly #top: TopRows;
  readonly #lowerBounds: KthLargest;
  readonly #pendingMax: number;
  #pendingRows = new Uint32Array(64);
  #pendingUpper = new Float64Array(64);
  #pendingCount = 0;
  /** Rows whose upper bound is below this are not in the answer: the best bound proven so far. */
  #threshold: number;
  #scannedCount = 0;
  #rescoredCount = 0;

  /** `productError` is that of the device for the dimension of the block. */
  constructor(
    block: VectorBlock,
    norms: BlockNorms,
    { packed, index, productError }: { packed: PackedQueries; index: number; productError: number },
  ) {
    const query = packed.queries[index]!;
    const { dimension } = block;
    this.query = query;
    this.#block = block;
    this.#norms = norms;
    this.#canonical = unpackQuery(packed, index, dimension);
    this.#length = Math.sqrt(this.#canonical.square);
    this.scale = unitScale(this.#canonical.square);
    this.#scaledLength = this.#length === 0 ? 1 : this.#length * this.scale;
    this.scaled = Float32Array.from(this.#canonical.values, (value) => value * this.scale);
    this.#productError = productError;
    this.#squareError = (dimension + 16) * 2 ** -52;
    this.#top = createTopRows(block, query, query.rowCount);
    this.#lowerBounds = new KthLargest(Math.min(query.k, query.rowCount));
    this.#pendingMax = 2 * query.k + PENDING_ROWS;
    this.#threshold = this.#top.floor;
  }

  /** Counts rows that pass the filter, whether they are scanned or scored. */
  countScanned(rowCount: number): void {
    this.#scannedCount += rowCount;
  }

  /** Scores the selected rows of from..to canonically. */
  score(from: number, to: number): void {
    const range = { from, to, squares: this.#norms.rowSquares };
    this.#rescoredCount += scanRows(this.#block, this.#canonical, this.query, range, this.#top);
    this.#threshold = Math.max(this.#threshold, this.#top.cutoff);
  }

  /** Collects candidates among scanned rows. Each row must be scored or collected exactly once. */
  collect(products: ScannedProducts): void {
    const { values, offset, stride, firstRow } = products;
    const rowCount = Math.min(products.rowCount, this.query.rowCount - firstRow);
    const { inverseLengths, lengths, squares } = this.#norms;
    // The tests below are "upper bound >= threshold", without the factors that all rows share.
    const error = this.#productError * this.#scaledLength;
    let limit = this.#scanLimit();
    switch (this.query.metric) {
      case 'cosine':
        for (let i = 0; i < rowCount; i++) {
          const cosine = values[offset + i * stride]! * inverseLengths[firstRow + i]!;
          if (cosine >= limit && this.#consider(firstRow + i, cosine)) limit = this.#scanLimit();
        }
        break;
      case 'dot':
        for (let i = 0; i < rowCount; i++) {
          const cosine = values[offset + i * stride]! * inverseLengths[firstRow + i]!;
          if (
            (cosine + error) * lengths[firstRow + i]! >= limit &&
            this.#consider(firstRow + i, cosine)
          ) {
            limit = this.#scanLimit();
          }
        }
        break;
      case 'euclidean':
      case 'hamming': {
        const squareWeight = (1 - this.#squareError) * this.scale;
        for (let i = 0; i < rowCount; i++) {
          const row = firstRow + i;
          const cosine = values[offset + i * stride]! * inverseLengths[row]!;
          if (
            2 * (cosine + error) * lengths[row]! - squareWeight * squares[row]! >= limit &&
            this.#consider(row, cosine)
          ) {
            limit = this.#scanLimit();
          }
        }
        break;
      }
      case 'jaccard':
        // This metric has no bound: all rows are scored.
        this.score(firstRow, firstRow + rowCount);
        break;
    }
  }

  /** Whether keys can be used: whether those of the proof neither overflow nor underflow. */
  get hasKeys(): boolean {
    const { metric } = this.query;
    if (metric === 'jaccard') return false;
    return !isDistance(metric) || (this.scale >= 2 ** -80 && this.scale <= 2 ** 80);
  }

  /**
   * Collects candidates among rows that a device returned, largest key first; rows that the query's
   * view excludes are skipped. Each row must be scored or collected exactly once.
   */
  collectKeyed({ rows, keys, lengthMax }: KeyedRows): void {
    const { rowCount, rows: passing } = this.query;
    for (let i = 0; i < keys.length; i++) {
      if (this.#boundOf(keys[i]!, lengthMax) < this.#threshold) return;
      const row = rows[i]!;
      if (row >= rowCount || (passing !== null && !hasBit(passing, row))) continue;
      this.#considerBetween(
        row,
        this.#centerOfKey(keys[i]!),
        this.#keyError(this.#norms.lengths[row]!),
      );
    }
  }

  /** Whether a row with at most this key and this length cannot be in the answer. */
  isBelow(key: number, lengthMax: number): boolean {
    return this.#boundOf(key, lengthMax) < this.#threshold;
  }

  /** A key above which rows up to this length come before the query's rank key; Infinity if there is none. */
  keyCap(lengthMax: number): number {
    const { after, metric } = this.query;
    if (after === null) return Number.POSITIVE_INFINITY;
    const score = after.score + this.#keyError(lengthMax);
    if (metric === 'cosine') return score * this.#scaledLength;
    if (metric === 'dot') return score * this.scale;
    return ((score + this.#canonical.square) * this.scale) / 2;
  }

  /** Scores the candidates, which raises the threshold as far as possible. */
  rescore(): void {
    this.#rescorePending();
  }

  /** Returns the answer, after every row has been scored or collected. */
  finish(): BlockHits {
    this.#rescorePending();
    const scannedCount = this.#scannedCount;
    const rescoredCount = this.#rescoredCount;
    return { ...this.#top.take(), scannedCount, rescoredCount };
  }

  /** The threshold in the units of the loops of `collect`. */
  #scanLimit(): number {
    switch (this.query.metric) {
      case 'cosine':
        return (this.#threshold - this.#productError) * this.#scaledLength;
      case 'dot':
        return this.#threshold * this.scale;
      case 'euclidean':
      case 'hamming':
        return (this.#threshold + this.#canonical.square * (1 - this.#squareError)) * this.scale;
      case 'jaccard':
        return Number.NEGATIVE_INFINITY;
    }
  }

  /** Adds the row to the candidates if it may be in the answer. Returns true if the threshold may have risen. */
  #consider(row: number, scaledCosine: number): boolean {
    const { rows } = this.query;
    if (rows !== null && !hasBit(rows, row)) return false;
    return this.#considerBetween(row, this.#center(row, scaledCosine), this.#errorOf(row));
  }

  /** Like `consider`, for a row that passes and whose score is within `error` of `center`. */
  #considerBetween(row: number, center: number, error: number): boolean {
    const { after } = this.query;
    const upper = center + error;
    const lower = center - error;
    if (upper < this.#threshold) return false;
    if (after !== null && lower > after.score) return false;
    this.#addPending(row, upper);
    // Only rows that certainly come after the rank key prove anything about the k-th best. Rows below
    // the floor prove nothing either, but they cannot raise the threshold, which starts at the floor.
    if (after === null || upper < after.score) {
      this.#lowerBounds.add(lower);
      this.#threshold = Math.max(this.#threshold, this.#lowerBounds.value);
    }
    return true;
  }

  /** Returns the scanned score. */
  #center(row: number, scaledCosine: number): number {
    const cosine = scaledCosine / this.#scaledLength;
    if (this.query.metric === 'cosine') return cosine;
    const product = cosine * this.#length * this.#norms.lengths[row]!;
    if (this.query.metric === 'dot') return product;
    return 2 * product - this.#norms.squares[row]! - this.#canonical.square;
  }

  /** Returns the largest difference between the canonical score and the scanned one. */
  #errorOf(row: number): number {
    if (this.query.metric === 'cosine') return this.#productError;
    const productError = this.#productError * this.#length * this.#norms.lengths[row]!;
    if (this.query.metric === 'dot') return productError;
    const squareSum = this.#norms.squares[row]! + this.#canonical.square;
    return 2 * productError + this.#squareError * squareSum;
  }

  /** Returns the score that a key implies. */
  #centerOfKey(key: number): number {
    if (this.query.metric === 'cosine') return key / this.#scaledLength;
    if (this.query.metric === 'dot') return key / this.scale;
    return (2 * key) / this.scale - this.#canonical.square;
  }

  /** Returns the largest difference between the canonical score of a row of this length and `centerOfKey`. */
  #keyError(length: number): number {
    const error = this.#productError + KEY_ERROR;
    if (this.query.metric === 'cosine') return error;
    const productError = error * this.#length * length;
    if (this.query.metric === 'dot') return productError;
    const square = length * length;
    const squareSum = square + this.#canonical.square;
    return 2 * productError + KEY_ERROR * square + this.#squareError * squareSum;
  }

  /** Returns the best score that a row with at most this key and this length may have. */
  #boundOf(key: number, lengthMax: number): number {
    return this.#centerOfKey(key) + this.#keyError(lengthMax);
  }

  #addPending(row: number, upper: number): void {
    if (this.#pendingCount === this.#pendingMax) this.#shrinkPending();
    if (this.#pendingCount === this.#pendingRows.length) this.#growPending();
    this.#pendingRows[this.#pendingCount] = row;
    this.#pendingUpper[this.#pendingCount] = upper;
    this.#pendingCount++;
  }

  #growPending(): void {
    const capacity = Math.min(2 * this.#pendingCount, this.#pendingMax);
    const rows = new Uint32Array(capacity);
    const upper = new Float64Array(capacity);
    rows.set(this.#pendingRows);
    upper.set(this.#pendingUpper);
    this.#pendingRows = rows;
    this.#pendingUpper = upper;
  }

  /**
   * Drops candidates below the threshold. If most remain, their bounds are too close to decide, and they are scored.
   */
  #shrinkPending(): void {
    let kept = 0;
    for (let i = 0; i < this.#pendingCount; i++) {
      if (this.#pendingUpper[i]! < this.#threshold) continue;
      this.#pendingRows[kept] = this.#pendingRows[i]!;
      this.#pendingUpper[kept] = this.#pendingUpper[i]!;
      kept++;
    }
    this.#pendingCount = kept;
    if (kept > this.#pendingMax / 2) this.#rescorePending();
  }

  #rescorePending(): void {
    const squares = this.#norms.rowSquares;
    for (let i = 0; i < this.#pendingCount; i++) {
      if (this.#pendingUpper[i]! < this.#threshold) continue;
      const row = this.#pendingRows[i]!;
      this.#top.offer(scoreRow(this.#block, this.#canonical, squares, row), row);
      this.#threshold = Math.max(this.#threshold, this.#top.cutoff);
      this.#rescoredCount++;
    }
    this.#pendingCount = 0;
  }
}

/** The k-th largest of the numbers added: a heap of the k largest, with the smallest of them on top. */
export class KthLargest {
  readonly #heap: Float64Array;
  #count = 0;

  constructor(k: number) {
    this.#heap = new Float64Array(k);
  }

  /** −Infinity until k numbers were added. */
  get value(): number {
    return this.#count < this.#heap.length || this.#count === 0
      ? Number.NEGATIVE_INFINITY
      : this.#heap[0]!;
  }

  add(value: number): void {
    if (this.#count < this.#heap.length) this.#siftUp(this.#count++, value);
    else if (this.#count > 0 && value > this.#heap[0]!) this.#siftDown(value);
  }

  #siftUp(from: number, value: number): void {
    const heap = this.#heap;
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (heap[parent]! <= value) break;
      heap[place] = heap[parent]!;
      place = parent;
    }
    heap[place] = value;
  }

  #siftDown(value: number): void {
    const heap = this.#heap;
    const count = this.#count;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= count) break;
      if (child + 1 < count && heap[child + 1]! < heap[child]!) child++;
      if (heap[child]! >= value) break;
      heap[place] = heap[child]!;
      place = child;
    }
    heap[place] = value;
  }
}
