// The search of a fused ranking. It reads the first rows of each ranking and bounds the fused score of each row.
// Rows that may be among the k best get their missing scores and ranks, and the search ends when no other row can come
// before the k-th. The result equals that of fusing complete rankings.

import { hasRow } from '../../common/bitmap.js';
import { compareRankKeys, type RankKey } from '../../common/rank-key.js';
import type { SearchHits } from '../../engine/core/engine.js';
import { RankedHeap } from '../../inverted/ranked-heap.js';
import type { Segment } from '../../segment/segment.js';
import type { RowAddress } from '../collection/rows.js';
import { countVisible } from '../collection/snapshot.js';
import {
  addTerms,
  createTerm,
  expectedDepth,
  type FusionMethod,
  type Term,
} from './fusion-method.js';
import type { RankedPart } from './ranked-part.js';
import type { RowQuery } from './ranking.js';

/** A row that was read from a ranking, with its term from each ranking; NaN for unknown terms. */
interface Candidate extends RowAddress {
  readonly id: Uint8Array;
  readonly terms: number[];
  /** An upper bound of the score; the score itself once all terms are known. */
  upper: number;
  /** A lower bound of the score; minus infinity while an unbounded term is unknown. */
  lower: number;
}

/** What is known of the rows that were not read from a ranking yet. */
interface Unread {
  /** An upper bound of their terms. */
  readonly term: number;
  /** An upper bound of their terms if their scores are below that of the last row that was read. */
  readonly termBelow: number;
  /** The id of that row, to which those with an equal score are greater; null if that is not known to matter. */
  readonly lastId: Uint8Array | null;
}

/** A search for this many rows costs little more than one for ten, and avoids most counts of ranks. */
const DEPTH_MIN = 256;
const DEPTH_GROWTH = 4;
/** At most this many rows, or 2k, are resolved at first; with more open rows, rankings are read further instead. */
const RESOLVED_MAX = 128;
/** Each round resolves this many times the rows of the last one, so that there are few rounds. */
const RESOLVED_GROWTH = 4;

export class FusedSearch {
  readonly #parts: readonly RankedPart[];
  readonly #method: FusionMethod;
  /** Whether a part ranks the rows of all parts. */
  readonly #ranksAll: readonly boolean[];
  readonly #depthMin: number;
  /** Candidates by segment and row. */
  readonly #candidates = new Map<Segment, Map<number, Candidate>>();
  /** The number of rows of each part that have become candidates. */
  readonly #takenCounts: number[];
  #depth = 0;
  #terms: readonly Term[] | null = null;
  /** For each part. */
  #unread: readonly Unread[] = [];
  /** Whether `termBelow` is the term of the next lower score, and not of a score that may be the same to the sum. */
  #hasLevels = false;

  /**
   * @param rowCount the number of rows that any part ranks.
   * @param depthMin the minimum number of rows to read first from each ranking.
   */
  constructor(
    parts: readonly RankedPart[],
    method: FusionMethod,
    rowCount: number,
    depthMin = DEPTH_MIN,
  ) {
    this.#parts = parts;
    this.#method = method;
    this.#ranksAll = parts.map(({ views }) => countVisible(views) === rowCount);
    this.#depthMin = depthMin;
    this.#takenCounts = parts.map(() => 0);
  }

  async search(query: RowQuery): Promise<SearchHits> {
    const before = this.#workCounts();
    const weights = this.#parts.map(({ weight }) => weight);
    await this.#readTo(Math.max(this.#depthMin, expectedDepth(this.#method, weights, query.k)));
    let resolvedMax = Math.max(RESOLVED_MAX, 2 * query.k);
    for (;;) {
      const rows = new EligibleRows(query, this.#all());
      const last = rows.lastOfBest();
      const open = rows.openBefore(last);
      const hasReadAll = this.#parts.some((part, p) => part.isExhausted && this.#ranksAll[p]);
      const canRead = this.#parts.some(({ isExhausted }) => !isExhausted);
      if (!this.#hasLevels && this.#isTied(last, open)) {
        await this.#findLevels();
      } else if (open.length > resolvedMax && canRead && this.#method.kind === 'rrf') {
        await this.#readTo(this.#depth * DEPTH_GROWTH);
      } else if (open.length > 0) {
        await this.#resolve(open.slice(0, resolvedMax));
        resolvedMax *= RESOLVED_GROWTH;
      } else if (canRead && !hasReadAll && this.#mayUnreadMatter(rows, last)) {
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
    if (depth <= this.#depth) return;
    await Promise.all(this.#parts.map((part) => part.readTo(depth)));
    this.#depth = depth;
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
    this.#hasLevels = this.#method.kind === 'rrf';
    this.#unread = this.#parts.map((part, p) =>
      this.#unreadOf(p, nextBelow(part.scores.at(-1) ?? 0)),
    );
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
      const terms = this.#parts.map((part) => (part.has(row) ? Number.NaN : 0));
      const id = row.segment.idBytes(row.row);
      candidate = { ...row, id, terms, upper: Number.NaN, lower: Number.NaN };
      rows.set(row.row, candidate);
    }
    return candidate;
  }

  #bound(row: Candidate): void {
    // Terms of `rrf` are above 0; other scores are unbounded.
    const least = this.#method.kind === 'rrf' ? 0 : Number.NEGATIVE_INFINITY;
    let upper = 0;
    let lower = 0;
    for (let p = 0; p < row.terms.length; p++) {
      const term = row.terms[p]!;
      const isUnknown = Number.isNaN(term);
      upper += isUnknown ? this.#termMax(row, this.#unread[p]!) : term;
      lower += isUnknown ? least : term;
    }
    row.upper = upper;
    row.lower = lower;
  }

  /** An upper bound of the term of a candidate that was not read from a part yet. */
  #termMax({ id }: Candidate, { term, termBelow, lastId }: Unread): number {
    const isBelow = lastId !== null && Buffer.compare(id, lastId) < 0;
    return isBelow ? termBelow : term;
  }

  /** @param scoreBelow the greatest score that a row after those with the last score may have. */
  #unreadOf(p: number, scoreBelow: number): Unread {
    const part = this.#parts[p]!;
    const last = part.rows.at(-1);
    const rank = part.rows.length + 1;
    const termOf = (score: number) => this.#terms![p]!({ rank, score });
    if (last === undefined) {
      const term = termOf(Number.POSITIVE_INFINITY);
      return { term, termBelow: term, lastId: null };
    }
    const term = termOf(part.shownScore(part.scores.at(-1)!));
    const isNone = scoreBelow === Number.NEGATIVE_INFINITY;
    const termBelow = isNone ? scoreBelow : termOf(part.shownScore(scoreBelow));
    const lastId = termBelow < term ? last.segment.idBytes(last.row) : null;
    return { term, termBelow, lastId };
  }

  /** Whether rows remain only because they may have the same score as the last of the best. */
  #isTied(last: RankKey | null, open: readonly Candidate[]): boolean {
    if (last === null) return false;
    if (open.length > 0) return open.some(({ upper }) => upper === last.score);
    return addTerms(this.#unreadBounds()) === last.score;
  }

  async #findLevels(): Promise<void> {
    const scores = await Promise.all(this.#parts.map((part) => part.scoreBelowLast()));
    this.#hasLevels = true;
    this.#unread = scores.map((score, p) => this.#unreadOf(p, score));
    for (const row of this.#all()) this.#bound(row);
  }

  /** Upper bounds of the terms of a row that was not read from any part. */
  #unreadBounds(): number[] {
    return this.#parts.map(({ isExhausted }, p) =>
      isExhausted ? 0 : this.#termOrNone(p, this.#unread[p]!.term),
    );
  }

  /** An upper bound of the term of a row from one part: 0 if the part does not rank it. */
  #termOrNone(p: number, termMax: number): number {
    return this.#ranksAll[p] === true ? termMax : Math.max(0, termMax);
  }

  /** Whether a row that was not read from any part may be among the k best, of which the last one is known. */
  #mayUnreadMatter(rows: EligibleRows, last: RankKey | null): boolean {
    const bounds = this.#unreadBounds();
    const bound = addTerms(bounds);
    if (rows.isBelow(bound) || (last !== null && bound < last.score)) return false;
    if (last === null || bound > last.score) return true;
    // Such a row has the score of the last one. It comes later if its id is greater, which is certain if that score
    // requires the score of the last row that was read from a part.
    return !this.#unread.some(({ termBelow, lastId }, p) => {
      if (lastId === null || this.#parts[p]!.isExhausted) return false;
      if (Buffer.compare(lastId, last.id) < 0) return false;
      return addTerms(bounds.with(p, this.#termOrNone(p, termBelow))) < last.score;
    });
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
  /** Candidates that, by their bounds, may come after the rank key and reach the threshold. */
  readonly #rows: Candidate[] = [];
  /** The index of the view of each of them. */
  readonly #viewIndexes: number[] = [];

  constructor(query: RowQuery, rows: Iterable<Candidate>) {
    this.#query = query;
    const indexes = new Map(query.views.map(({ segment }, i) => [segment, i]));
    for (const row of rows) {
      const index = indexes.get(row.segment);
      if (index === undefined || !hasRow(query.views[index]!, row.row)) continue;
      if (this.isBelow(row.upper) || !this.#isAfter(row, row.lower)) continue;
      this.#rows.push(row);
      this.#viewIndexes.push(index);
    }
  }

  /** The last of the k best certain hits by their lower bounds, so that it bounds the k-th row; null for no bound. */
  lastOfBest(): RankKey | null {
    const { viewIndexes, rows, scores } = this.#rank(() => true);
    const score = scores.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (rows.length < this.#query.k || score === Number.NEGATIVE_INFINITY) return null;
    const { segment } = this.#query.views[viewIndexes.at(-1)!]!;
    return { score, id: segment.idBytes(rows.at(-1)!) };
  }

  /** The rows of unknown score that may come before the given one, by descending upper bound. */
  openBefore(last: RankKey | null): readonly Candidate[] {
    return this.#rows
      .filter((row) => row.upper !== row.lower && (last === null || mayPrecede(row, last)))
      .sort((left, right) => right.upper - left.upper);
  }

  isBelow(score: number): boolean {
    const { scoreMin } = this.#query;
    return scoreMin !== null && Math.fround(score) < scoreMin;
  }

  /** The k best rows with a known score. */
  best(): Pick<SearchHits, 'viewIndexes' | 'rows' | 'scores'> {
    return this.#rank(({ upper, lower }) => upper === lower);
  }

  /** The k best certain hits by their lower bounds. */
  #rank(isRanked: (row: Candidate) => boolean) {
    const { k, views } = this.#query;
    const ids = views.map(({ metadata }) => metadata.ids);
    const heap = new RankedHeap(k, ids);
    for (const [i, row] of this.#rows.entries()) {
      if (row.lower < heap.scoreMin || !isRanked(row)) continue;
      if (this.isBelow(row.lower) || !this.#isAfter(row, row.upper)) continue;
      heap.offer(row.lower, this.#viewIndexes[i]!, row.row);
    }
    return heap.ranked();
  }

  /** Whether the row with this score comes after the rank key of the search. */
  #isAfter({ id }: Candidate, score: number): boolean {
    const { after } = this.#query;
    return after === null || compareRankKeys(after, { score, id }) < 0;
  }
}

function mayPrecede({ upper, id }: Candidate, last: RankKey): boolean {
  return upper === last.score ? Buffer.compare(id, last.id) < 0 : upper > last.score;
}

const DOUBLE = new Float64Array(1);
const DOUBLE_BITS = new BigInt64Array(DOUBLE.buffer);

/** The greatest number below, for a finite number. */
function nextBelow(value: number): number {
  if (value === 0) return -Number.MIN_VALUE;
  if (value === Number.NEGATIVE_INFINITY) return value;
  DOUBLE[0] = value;
  DOUBLE_BITS[0]! += value > 0 ? -1n : 1n;
  return DOUBLE[0];
}
