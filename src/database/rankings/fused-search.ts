// The search of a fused ranking. It reads the first rows of each ranking and bounds the fused score of each row.
// Rows that may be among the k best get their missing scores and ranks, and the search ends when no other row can come
// before the k-th. The result equals that of fusing complete rankings.

import { hasRow } from '../../common/bitmap.js';
import { compareRankKeys } from '../../common/rank-key.js';
import type { SearchHits } from '../../engine/core/engine.js';
import type { Segment } from '../../segment/segment.js';
import type { RowAddress } from '../collection/rows.js';
import {
  addTerms,
  createTerm,
  expectedDepth,
  type FusionMethod,
  type Term,
} from './fusion-method.js';
import { type RankedPart, rankKeyOf } from './ranked-part.js';
import type { RowQuery } from './ranking.js';

/** A row that was read from a ranking, with its term from each ranking; NaN for unknown terms. */
interface Candidate extends RowAddress {
  readonly terms: Float64Array;
  /** An upper bound of the score; the score itself once all terms are known. */
  upper: number;
  /** A lower bound of the score; minus infinity while an unbounded term is unknown. */
  lower: number;
}

/** A search for this many rows costs little more than one for ten, and avoids most counts of ranks. */
const DEPTH_MIN = 256;
const DEPTH_GROWTH = 4;
/** At most this many rows, or 2k, are resolved individually; with more open rows, rankings are read further instead. */
const RESOLVED_MAX = 128;

export class FusedSearch {
  readonly #parts: readonly RankedPart[];
  readonly #method: FusionMethod;
  readonly #depthMin: number;
  /** Candidates by segment and row. */
  readonly #candidates = new Map<Segment, Map<number, Candidate>>();
  /** The number of rows of each part that have become candidates. */
  readonly #takenCounts: number[];
  #depth = 0;
  #terms: readonly Term[] | null = null;

  /** @param depthMin the minimum number of rows to read first from each ranking. */
  constructor(parts: readonly RankedPart[], method: FusionMethod, depthMin = DEPTH_MIN) {
    this.#parts = parts;
    this.#method = method;
    this.#depthMin = depthMin;
    this.#takenCounts = parts.map(() => 0);
  }

  async search(query: RowQuery): Promise<SearchHits> {
    const before = this.#workCounts();
    const weights = this.#parts.map(({ weight }) => weight);
    await this.#readTo(Math.max(this.#depthMin, expectedDepth(this.#method, weights, query.k)));
    for (;;) {
      const rows = new EligibleRows(query, [...this.#all()]);
      const floor = rows.leastOfBest();
      const open = rows.mayPrecede(floor).filter((row) => row.upper !== row.lower);
      const canRead = this.#parts.some(({ isExhausted }) => !isExhausted);
      const resolvedMax = Math.max(RESOLVED_MAX, 2 * query.k);
      if (open.length > resolvedMax && canRead && this.#method.kind === 'rrf') {
        await this.#readTo(this.#depth * DEPTH_GROWTH);
      } else if (open.length > 0) {
        await this.#resolve(open.slice(0, resolvedMax));
      } else if (canRead && rows.mayMatter(this.#unreadBound(), floor)) {
        await this.#readTo(this.#depth * DEPTH_GROWTH);
      } else {
        const after = this.#workCounts();
        return {
          ...rows.best(),
          scannedCount: after.scannedCount - before.scannedCount,
          rescoredCount: after.rescoredCount - before.rescoredCount,
        };
      }
    }
  }

  *#all(): Generator<Candidate> {
    for (const rows of this.#candidates.values()) yield* rows.values();
  }

  async #readTo(depth: number): Promise<void> {
    if (depth > this.#depth) {
      await Promise.all(this.#parts.map((part) => part.readTo(depth)));
      this.#depth = depth;
    }
    this.#terms ??= this.#parts.map((part) =>
      createTerm(this.#method, part.weight, part.shownScore(part.scores[0] ?? 0)),
    );
    for (const [p, part] of this.#parts.entries()) {
      for (let i = this.#takenCounts[p]!; i < part.rows.length; i++) {
        const rank = i + 1;
        const { terms } = this.#candidate(part.rows[i]!);
        terms[p] = this.#terms[p]!({ rank, score: part.shownScore(part.scores[i]!) });
      }
      this.#takenCounts[p] = part.rows.length;
    }
    for (const row of this.#all()) this.#bound(row);
  }

  #candidate(row: RowAddress): Candidate {
    let rows = this.#candidates.get(row.segment);
    if (rows === undefined) {
      rows = new Map();
      this.#candidates.set(row.segment, rows);
    }
    let candidate = rows.get(row.row);
    if (candidate === undefined) {
      const terms = Float64Array.from(this.#parts, (part) => (part.has(row) ? Number.NaN : 0));
      candidate = { ...row, terms, upper: Number.NaN, lower: Number.NaN };
      rows.set(row.row, candidate);
    }
    return candidate;
  }

  #bound(row: Candidate): void {
    const { terms } = row;
    row.upper = addTerms(terms.map((term, p) => (Number.isNaN(term) ? this.#nextTerm(p) : term)));
    // Terms of `rrf` are above 0; other scores are unbounded.
    const least = this.#method.kind === 'rrf' ? 0 : Number.NEGATIVE_INFINITY;
    row.lower = addTerms(terms.map((term) => (Number.isNaN(term) ? least : term)));
  }

  /** An upper bound of the term of a row that was not read from this part yet. */
  #nextTerm(p: number): number {
    const part = this.#parts[p]!;
    const { scores, rows } = part;
    const score = scores.length === 0 ? Number.POSITIVE_INFINITY : part.shownScore(scores.at(-1)!);
    return this.#terms![p]!({ rank: rows.length + 1, score });
  }

  /** An upper bound of the score of a row that was not read from any part. */
  #unreadBound(): number {
    return addTerms(
      this.#parts.map(({ isExhausted }, p) => (isExhausted ? 0 : Math.max(0, this.#nextTerm(p)))),
    );
  }

  /** Finds the unknown terms of these rows. */
  async #resolve(rows: readonly Candidate[]): Promise<void> {
    await Promise.all(
      this.#parts.map(async (part, p) => {
        const unknown = rows.filter(({ terms }) => Number.isNaN(terms[p]!));
        if (unknown.length === 0) return;
        const scores = await part.scoresOf(unknown);
        const ranks = this.#method.kind === 'rrf' ? await part.ranksOf(unknown, scores) : null;
        for (const [i, { terms }] of unknown.entries()) {
          const score = part.shownScore(scores[i]!);
          terms[p] = this.#terms![p]!({ rank: ranks?.[i] ?? 0, score });
        }
      }),
    );
    for (const row of rows) this.#bound(row);
  }

  #workCounts() {
    let scannedCount = 0;
    let rescoredCount = 0;
    for (const part of this.#parts) {
      scannedCount += part.scannedCount;
      rescoredCount += part.rescoredCount;
    }
    return { scannedCount, rescoredCount };
  }
}

/** The candidates that a search can return: in its views, after its rank key, and not below its threshold. */
class EligibleRows {
  readonly #query: RowQuery;
  readonly #viewIndexes: ReadonlyMap<Segment, number>;
  /** Candidates that, by their bounds, may come after the rank key and reach the threshold. */
  readonly #rows: readonly Candidate[];

  constructor(query: RowQuery, rows: readonly Candidate[]) {
    this.#query = query;
    this.#viewIndexes = new Map(query.views.map(({ segment }, i) => [segment, i]));
    this.#rows = rows.filter((row) => this.#isSearched(row) && this.#mayBeHit(row));
  }

  /** The k-th greatest lower bound of the certain hits. */
  leastOfBest(): number {
    const { k } = this.#query;
    const lowers = this.#rows.filter((row) => this.#isHit(row)).map(({ lower }) => lower);
    if (lowers.length < k) return Number.NEGATIVE_INFINITY;
    return Float64Array.from(lowers).sort().at(-k)!;
  }

  /** The rows whose upper bound reaches the score, by descending upper bound. */
  mayPrecede(score: number): readonly Candidate[] {
    return this.#rows
      .filter(({ upper }) => upper >= score)
      .sort((left, right) => right.upper - left.upper);
  }

  /** Whether unread rows with scores up to `bound` may be among the k best. */
  mayMatter(bound: number, floor: number): boolean {
    return !(floor > bound) && !this.#isBelow(bound);
  }

  #isBelow(score: number): boolean {
    const { scoreMin } = this.#query;
    return scoreMin !== null && Math.fround(score) < scoreMin;
  }

  /** The k best rows with a known score. */
  best(): Pick<SearchHits, 'viewIndexes' | 'rows' | 'scores'> {
    const hits = this.#rows
      .filter((row) => row.upper === row.lower && this.#isHit(row))
      .map((row) => ({ row, rankKey: rankKeyOf(row, row.upper) }))
      .sort((left, right) => compareRankKeys(left.rankKey, right.rankKey))
      .slice(0, this.#query.k);
    return {
      viewIndexes: Uint32Array.from(hits, ({ row }) => this.#viewIndexes.get(row.segment)!),
      rows: Uint32Array.from(hits, ({ row }) => row.row),
      scores: Float64Array.from(hits, ({ rankKey }) => rankKey.score),
    };
  }

  #isSearched({ segment, row }: RowAddress): boolean {
    const index = this.#viewIndexes.get(segment);
    return index !== undefined && hasRow(this.#query.views[index]!, row);
  }

  #mayBeHit(row: Candidate): boolean {
    return !this.#isBelow(row.upper) && this.#isAfter(row, row.lower);
  }

  #isHit(row: Candidate): boolean {
    return !this.#isBelow(row.lower) && this.#isAfter(row, row.upper);
  }

  /** Whether the row with this score comes after the rank key of the search. */
  #isAfter(row: RowAddress, score: number): boolean {
    const { after } = this.#query;
    return after === null || compareRankKeys(after, rankKeyOf(row, score)) < 0;
  }
}
