// Turns float32 products of one query with the rows of a block into its exact answer. The scan only
// proposes: a row is dropped iff its score plus a proven error bound is below a proven lower bound
// of the k-th best score; every other row is scored canonically. So the answer has the rows and the
// score bits of the reference engine, whatever the data.
//
// Notation: u = 2^-24 (float32), q and x the stored vectors, D their dimension (at most 2^14), s and
// r the powers of two by which query and row are scaled (scaling.ts): 1 <= |sq| <= 2, and |rx| is
// between 2^-20 and 2^20, unless the vector is 0. p is the scanned sum of products of sq and rx.
//
// 1. Summation. A float32 sum of D products, in any order, with or without fused multiply-add,
//    satisfies |p − Σ| <= γ Σ|sq_i · rx_i| + D · 2^-149 with γ = Du / (1 − Du) <= Du (1 + 2^-9)
//    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). The last term is the
//    underflow of products; sums that underflow are exact. By Cauchy-Schwarz Σ|sq_i · rx_i| is at
//    most |sq| |rx|. Nothing overflows: every partial sum is below 2^22. Zeros that a kernel pads
//    with add nothing.
// 2. Storage. Scaling by a power of two is exact but for values below 2^-126, which move by 2^-150
//    at most; all of them together move Σ by less than 2^-150 · √D · 2^21 <= 2^-122.
//    The absolute terms of 1 and 2 are below 2^-120, thus below u² |sq| |rx|, which is at least
//    2^-68; a zero vector has p = 0 without any error.
// 3. Steps in float64 (lengths, quotients, the canonical q·x, each of the few operations below) have
//    relative errors of at most (D + 16) 2^-53 <= 2^-38 of |q| |x| together.
// So with E = (D + 8) u (1 + 2^-9), which leaves 8u for the terms of 2 and 3:
//
//    |p / (s r) − q·x| <= E |q| |x|,   against the exact as well as the canonical q·x.
//
// With c = p / (r |x|), the scanned cosine times |sq|:
//    cosine     is within E of c / |sq|. Clamping moves the canonical value towards the exact one.
//    dot        is within E |q| |x| of (c / |sq|) |q| |x|.
//    euclidean  is within 2E |q| |x| + A (qq + xx) of 2 (c / |sq|) |q| |x| − xx − qq, where A =
//               (D + 16) 2^-52 covers the roundings of qq and xx, of the canonical sums of three
//               terms and of ours. The canonical max(0, …) moves towards the exact value.

import { hasBit } from '../bitmap.js';
import type { VectorBlock } from '../types.js';
import type { BlockFacts } from './block-facts.js';
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

/** Rows that may wait for rescoring beside twice k: waiting longer prunes more and costs memory. */
const PENDING_ROWS = 1024;

export class CertifiedSelection {
  readonly query: PackedQuery;
  /** [dimension] float32: the query times its scale, as the scan wants it. */
  readonly scaled: Float32Array;

  private readonly block: VectorBlock;
  private readonly facts: BlockFacts;
  private readonly canonical: CanonicalQuery;
  private readonly length: number;
  /** s, and |sq|; 1 for a zero query, whose c is 0 anyway. */
  private readonly scale: number;
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

  constructor(block: VectorBlock, facts: BlockFacts, packed: PackedQueries, index: number) {
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
    this.productError = (dimension + 8) * 2 ** -24 * (1 + 2 ** -9);
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
    const { rows, after } = this.query;
    if (rows !== null && !hasBit(rows, row)) return false;
    const center = this.center(row, scaledCosine);
    const error = this.errorOf(row);
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
