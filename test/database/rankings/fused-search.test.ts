// Compares searches of fused rankings with the definition: random rankings with equal scores and missing rows,
// rank keys, thresholds and restricted rows. Rankings are read in small steps, so that bounds decide often.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBitmap, hasBit, setBit } from '../../../src/common/bitmap.js';
import { compareRankKeys, type RankKey } from '../../../src/common/rank-key.js';
import { type SegmentView, withRows } from '../../../src/database/collection/snapshot.js';
import { FusedSearch } from '../../../src/database/rankings/fused-search.js';
import type { FusionMethod } from '../../../src/database/rankings/fusion-method.js';
import { RankedPart } from '../../../src/database/rankings/ranked-part.js';
import type { OpenRanking, RowQuery } from '../../../src/database/rankings/ranking.js';
import { IS_NIGHTLY } from '../../support/nightly.js';
import { createRandom, testSeed } from '../harness.js';

type Random = () => number;

const SEGMENT_ROWS = [90, 1, 170];
const CASES = IS_NIGHTLY ? 400 : 80;

interface FakeSegment {
  readonly key: string;
  readonly view: SegmentView;
  readonly ids: readonly string[];
}

/** Ids in an order unrelated to that of the rows. */
function createSegments(random: Random): FakeSegment[] {
  return SEGMENT_ROWS.map((rowCount, s) => {
    const ids = Array.from(
      { length: rowCount },
      (_, row) => `${Math.floor(random() * 1e6)}-${s}-${row}`,
    );
    const bytes = Buffer.from(ids.join(''));
    const offsets = new Int32Array(rowCount + 1);
    for (const [row, id] of ids.entries()) offsets[row + 1] = offsets[row]! + id.length;
    const key = `segment-${s}`;
    const segment = { key, idBytes: (row: number) => Buffer.from(ids[row]!) };
    const metadata = { ids: { offsets, bytes } };
    const view = { segment, metadata, rowCount, rows: null, visibleCount: rowCount };
    return { key, ids, view: view as unknown as SegmentView };
  });
}

/** A ranking as the scores of its rows. */
type Ranking = ReadonlyMap<string, number>;

const keyOf = (segmentKey: string, row: number) => `${segmentKey}/${row}`;

function createRanking(random: Random, segments: readonly FakeSegment[]): Ranking {
  const share = random() < 0.3 ? 0.05 : random() < 0.3 ? 1 : random();
  const levels = [1, 2, 8, 1e6][Math.floor(random() * 4)]!;
  const ranking = new Map<string, number>();
  for (const { key, ids } of segments) {
    for (const row of ids.keys()) {
      if (random() >= share) continue;
      ranking.set(keyOf(key, row), Math.floor((random() - 0.3) * levels) / levels);
    }
  }
  return ranking;
}

function isIn({ rowCount, rows }: SegmentView, row: number): boolean {
  return row < rowCount && (rows === null || hasBit(rows, row));
}

interface Found {
  readonly view: number;
  readonly row: number;
  readonly rankKey: RankKey;
}

/** The rows of a query, found by sorting all of them. */
function rank(ranking: Ranking, segments: readonly FakeSegment[], query: RowQuery): Found[] {
  const found: Found[] = [];
  for (const [view, segmentView] of query.views.entries()) {
    const { key, ids } = segments.find((one) => one.key === segmentView.segment.key)!;
    for (const [row, id] of ids.entries()) {
      const score = ranking.get(keyOf(key, row));
      if (score === undefined || !isIn(segmentView, row)) continue;
      found.push({ view, row, rankKey: { score, id: Buffer.from(id) } });
    }
  }
  const { after, scoreMin } = query;
  return found
    .filter(({ rankKey }) => after === null || compareRankKeys(after, rankKey) < 0)
    .filter(({ rankKey }) => scoreMin === null || Math.fround(rankKey.score) >= scoreMin)
    .sort((left, right) => compareRankKeys(left.rankKey, right.rankKey));
}

function openRanking(ranking: Ranking, segments: readonly FakeSegment[]): OpenRanking {
  return {
    views: withRows(viewsOf(ranking, segments)),
    async search(query) {
      const found = rank(ranking, segments, query).slice(0, query.k);
      return {
        viewIndexes: Uint32Array.from(found, ({ view }) => view),
        rows: Uint32Array.from(found, ({ row }) => row),
        scores: Float64Array.from(found, ({ rankKey }) => rankKey.score),
        scannedCount: 0,
        rescoredCount: 0,
      };
    },
    async countBefore(views, rankKeys) {
      const all = rank(ranking, segments, { k: 1, views, after: null, scoreMin: null });
      return Float64Array.from(
        rankKeys,
        (rankKey) => all.filter((one) => compareRankKeys(one.rankKey, rankKey) < 0).length,
      );
    },
  };
}

/** The views restricted to the rows of the ranking. */
function viewsOf(ranking: Ranking, segments: readonly FakeSegment[]): SegmentView[] {
  return segments.map(({ key, view }) => {
    const rows = createBitmap(view.rowCount);
    let visibleCount = 0;
    for (let row = 0; row < view.rowCount; row++) {
      if (!ranking.has(keyOf(key, row))) continue;
      setBit(rows, row);
      visibleCount++;
    }
    return { ...view, rows, visibleCount };
  });
}

interface Part {
  readonly ranking: Ranking;
  readonly weight: number;
  readonly shownScore: (score: number) => number;
}

/** Monotone, and some show different scores as equal ones. */
const SHOWN_SCORES: readonly Part['shownScore'][] = [
  (score) => score,
  (score) => Math.round(score * 4) / 4,
  (score) => -Math.sqrt(1 - score),
];

/** The fusion of complete rankings by the definition in fusion-method.ts. */
function fuse(
  method: FusionMethod,
  parts: readonly Part[],
  segments: readonly FakeSegment[],
): Ranking {
  const views = segments.map(({ view }) => ({ ...view, rows: null }));
  const query = { k: 1, after: null, scoreMin: null };
  const fused = new Map<string, number>();
  for (const { ranking, weight, shownScore } of parts) {
    const ranked = rank(ranking, segments, { ...query, views });
    const best = shownScore(ranked[0]?.rankKey.score ?? 0);
    const divisor =
      method.kind === 'weighted' && method.normalize === 'max' && best !== 0 ? Math.abs(best) : 1;
    for (const [i, { view, row, rankKey }] of ranked.entries()) {
      const key = keyOf(segments[view]!.key, row);
      const term =
        method.kind === 'rrf'
          ? weight / (method.rankConstant + i + 1)
          : weight * (shownScore(rankKey.score) / divisor);
      fused.set(key, (fused.get(key) ?? 0) + term);
    }
  }
  return fused;
}

function createMethod(random: Random): FusionMethod {
  if (random() < 0.5) return { kind: 'rrf', rankConstant: 1 + Math.floor(random() * 80) };
  return { kind: 'weighted', normalize: random() < 0.5 ? 'none' : 'max' };
}

describe('a search of a fused ranking', () => {
  const seed = testSeed();
  it(`finds what fusing complete rankings gives (seed ${seed})`, async () => {
    const random = createRandom(seed);
    for (let n = 0; n < CASES; n++) {
      const segments = createSegments(random);
      const method = createMethod(random);
      const parts = Array.from({ length: 2 + Math.floor(random() * 3) }, () => ({
        ranking: createRanking(random, segments),
        weight: random() < 0.5 ? 1 : 0.01 + random() * 5,
        shownScore: SHOWN_SCORES[Math.floor(random() * SHOWN_SCORES.length)]!,
      }));
      const fused = fuse(method, parts, segments);
      const source = new FusedSearch(
        parts.map(({ ranking, weight, shownScore }) => {
          return new RankedPart(openRanking(ranking, segments), { shownScore }, weight);
        }),
        method,
        fused.size,
        1 + Math.floor(random() * 6),
      );
      let after: RankKey | null = null;
      const scoreMin = random() < 0.2 ? Math.fround(random() * 0.1) : null;
      // Like pages and groups, searches repeatedly after the last row, among fewer and fewer rows.
      let views = withRows(viewsOf(fused, segments));
      for (let page = 0; page < 3; page++) {
        const k = 1 + Math.floor(random() * 25);
        const query: RowQuery = { k, views, after, scoreMin };
        const expected = rank(fused, segments, query).slice(0, k);
        const found = await source.search(query);
        const context = `case ${n}, page ${page}, ${JSON.stringify(method)}`;
        assert.deepEqual(
          [...found.scores],
          expected.map(({ rankKey }) => rankKey.score),
          context,
        );
        assert.deepEqual(
          [...found.rows],
          expected.map(({ row }) => row),
          context,
        );
        assert.deepEqual(
          [...found.viewIndexes],
          expected.map(({ view }) => view),
          context,
        );
        const last = expected.at(-1);
        if (last === undefined) break;
        after = last.rankKey;
        if (random() < 0.3) views = views.map((view) => narrow(random, view));
      }
    }
  });
});

function narrow(random: Random, view: SegmentView): SegmentView {
  const rows = createBitmap(view.rowCount);
  for (let row = 0; row < view.rowCount; row++) {
    if (isIn(view, row) && random() < 0.6) setBit(rows, row);
  }
  return { ...view, rows };
}
