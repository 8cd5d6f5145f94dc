// One ranking of a fusion: the first rows, as far as they have been read, and the scores and ranks of other rows on
// request.

import { hasRow } from '../../common/bitmap.js';
import type { RankKey } from '../../common/rank-key.js';
import type { SearchHits } from '../../engine/core/engine.js';
import type { Segment } from '../../segment/segment.js';
import type { RowAddress } from '../collection/rows.js';
import { type SegmentView, viewsOfRows } from '../collection/snapshot.js';
import type { OpenRanking, Ranking } from './ranking.js';

/** Rows per search. */
const SEARCH_ROWS_MAX = 10_000;

/** Comes after nearly all ids. */
const LAST_ID = Buffer.from('\u{10ffff}');

export class RankedPart {
  readonly weight: number;
  readonly #opened: Omit<OpenRanking, 'engineSearch'>;
  readonly #ranking: Pick<Ranking, 'shownScore'>;
  readonly #viewOf: ReadonlyMap<Segment, SegmentView>;
  /** The rows that have been read, best first, and their scores. */
  readonly rows: RowAddress[] = [];
  readonly scores: number[] = [];
  isExhausted: boolean;
  scannedCount = 0;
  rescoredCount = 0;

  constructor(
    opened: Omit<OpenRanking, 'engineSearch'>,
    ranking: Pick<Ranking, 'shownScore'>,
    weight: number,
  ) {
    this.#opened = opened;
    this.#ranking = ranking;
    this.weight = weight;
    this.#viewOf = new Map(opened.views.map((view) => [view.segment, view]));
    this.isExhausted = opened.views.length === 0;
  }

  get views(): readonly SegmentView[] {
    return this.#opened.views;
  }

  /** The score that replies show, unrounded. */
  shownScore(score: number): number {
    return this.#ranking.shownScore(score);
  }

  has({ segment, row }: RowAddress): boolean {
    const view = this.#viewOf.get(segment);
    return view !== undefined && hasRow(view, row);
  }

  /** Reads until `depth` rows, or all, have been read. */
  async readTo(depth: number): Promise<void> {
    while (!this.isExhausted && this.rows.length < depth) {
      const k = Math.min(SEARCH_ROWS_MAX, depth - this.rows.length);
      const last = this.rows.at(-1);
      const after = last ? rankKeyOf(last, this.scores.at(-1)!) : null;
      const found = await this.#search(this.views, k, after);
      for (const [i, score] of found.scores.entries()) {
        const { segment } = this.views[found.viewIndexes[i]!]!;
        this.rows.push({ segment, row: found.rows[i]! });
        this.scores.push(score);
      }
      this.isExhausted = found.scores.length < k;
    }
  }

  /**
   * The greatest score of the rows after those with the last score that was read; minus infinity if there are none. It
   * may be that score itself if an id is greater than LAST_ID.
   */
  async scoreBelowLast(): Promise<number> {
    const score = this.scores.at(-1);
    if (this.isExhausted || score === undefined) return Number.NEGATIVE_INFINITY;
    const found = await this.#search(this.views, 1, { score, id: LAST_ID });
    return found.scores[0] ?? Number.NEGATIVE_INFINITY;
  }

  /** The scores of rows of this ranking, in order. */
  async scoresOf(rows: readonly RowAddress[]): Promise<Float64Array> {
    const scores = new Float64Array(rows.length);
    for (let from = 0; from < rows.length; from += SEARCH_ROWS_MAX) {
      const some = rows.slice(from, from + SEARCH_ROWS_MAX);
      const views = viewsOfRows(
        some.map(({ segment, row }) => ({ view: this.#viewOf.get(segment)!, row })),
      );
      const found = await this.#search(views, some.length, null);
      const indexes = new Map(some.map(({ segment }) => [segment, new Map<number, number>()]));
      for (const [i, { segment, row }] of some.entries()) indexes.get(segment)!.set(row, from + i);
      for (const [i, score] of found.scores.entries()) {
        const { segment } = views[found.viewIndexes[i]!]!;
        scores[indexes.get(segment)!.get(found.rows[i]!)!] = score;
      }
    }
    return scores;
  }

  /** The ranks of rows of this ranking, from their scores; the best row has rank 1. */
  async ranksOf(rows: readonly RowAddress[], scores: Float64Array): Promise<Float64Array> {
    const rankKeys = rows.map((row, i) => rankKeyOf(row, scores[i]!));
    const counts = await this.#opened.countBefore(this.views, rankKeys);
    return counts.map((count) => count + 1);
  }

  async #search(
    views: readonly SegmentView[],
    k: number,
    after: RankKey | null,
  ): Promise<SearchHits> {
    const found = await this.#opened.search({ views, k, after, scoreMin: null });
    this.scannedCount += found.scannedCount;
    this.rescoredCount += found.rescoredCount;
    return found;
  }
}

function rankKeyOf({ segment, row }: RowAddress, score: number): RankKey {
  return { score, id: segment.idBytes(row) };
}
