// Grades given answers by their recall: the share of the given ids whose exact score is at least that of the k-th
// nearest vector, where k is the number of ids. An answer with the other vector of a tie is right as well.

import { hasRow } from '../../common/bitmap.js';
import { cutByWeight } from '../../common/cut-by-weight.js';
import { field } from '../../common/errors.js';
import { observeQueries } from '../api/observer.js';
import type { RecallReply, RecallRequest } from '../api/query-api.js';
import type { Collection } from '../collection/collection.js';
import { reachSequence } from '../collection/reach-sequence.js';
import type { RowAddress } from '../collection/rows.js';
import { type SegmentView, type ViewRow, viewsOfRows } from '../collection/snapshot.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import { findUnknownPaths } from '../collection/unknown-paths.js';
import { openRankings, searchRankings } from '../rankings/open-rankings.js';
import type { Filter } from '../rankings/passing-rows.js';
import { VectorRanking } from '../rankings/vector.js';
import { type Hit, toHits } from '../search/hits.js';
import type { ReadServices } from '../search/read-services.js';

/** Bounds the bitmaps of the rows that are compared with the k-th nearest. */
const GROUP_QUERIES_MAX = 128;
const GROUP_IDS_MAX = 131_072;

/** Rejects with `dimension_mismatch`, `invalid_vector` and `invalid_filter` before any search. */
export async function runRecall(
  collection: Collection,
  request: RecallRequest,
  services: ReadServices,
  signal: AbortSignal | undefined,
): Promise<RecallReply> {
  const { vectors, ids, minSequence = 0 } = request;
  await reachSequence(collection, minSequence, signal);
  const view = new SnapshotView(collection, services.collections);
  try {
    const searched = collection.searchedVector(request, []);
    const { metric, using } = searched;
    for (const [i, vector] of vectors.entries()) {
      collection.checkQueryVector(vector, searched, field('vectors', i));
    }
    const { filter = null } = request;
    const filterNode = filter && collection.parseFilter(filter, services.limits);
    const queries = vectors.map((vector, i): GradedQuery => {
      const by = { vector, metric, using, excludedIds: [], origin: null };
      return { ranking: new VectorRanking(by), given: ids[i]! };
    });
    const groups = cutByWeight(queries, {
      countMax: GROUP_QUERIES_MAX,
      weightMax: GROUP_IDS_MAX,
      weightOf: ({ given }) => given.length,
    });
    const recalls: number[] = [];
    for (const group of groups) {
      recalls.push(...(await gradeGroup(view, group, { filter, filterNode }, services, signal)));
    }
    const { views } = view.snapshot();
    const warnings = findUnknownPaths(collection, views, { filter: filterNode });
    return { recalls, sequence: view.sequence, warnings };
  } finally {
    view.close();
  }
}

/** A query with the ids to grade. */
interface GradedQuery {
  readonly ranking: VectorRanking;
  readonly given: readonly string[];
}

/** Grades queries that are searched together. */
async function gradeGroup(
  view: SnapshotView,
  group: readonly GradedQuery[],
  filter: Filter,
  services: ReadServices,
  signal: AbortSignal | undefined,
): Promise<readonly number[]> {
  const startedAtMs = performance.now();
  const { sequence } = view;
  // Looked up before the first await, because compactions may move rows later.
  const given = group.map((graded) => findRows(view, graded.given));
  const ranked = group.map(({ ranking }) => ({ sequence, ranking, filters: [filter] }));
  const opened = await openRankings(view, ranked, services, signal);
  const filteredAtMs = performance.now();
  // All queries rank the same rows.
  const { views } = opened[0]!;
  const searches = group.map(({ given: { length: k } }, i) => {
    return { ranking: opened[i]!, query: { k, views, after: null, scoreMin: null } };
  });
  const nearest = await searchRankings(views.length === 0 ? [] : searches, services, signal);
  const grades = searches.map(({ query: { k } }, i) => {
    const hits = nearest.hits[i];
    return gradeIds(given[i]!, hits === undefined ? [] : toHits(views, hits), k, views);
  });
  const undecided = searches.flatMap(({ ranking, query }, i) => {
    const grade = grades[i]!;
    const k = grade.undecided.length;
    return k === 0
      ? []
      : { grade, ranking, query: { ...query, k, views: viewsOfRows(grade.undecided) } };
  });
  const scored = await searchRankings(undecided, services, signal);
  for (const [i, { grade }] of undecided.entries()) {
    grade.rightCount += scored.hits[i]!.scores.filter((score) => score >= grade.leastScore).length;
  }
  const waitMs = nearest.waitMs + scored.waitMs;
  const found = [...nearest.hits, ...scored.hits];
  observeQueries(
    services.observer,
    group.length,
    {
      startedAtMs,
      filterMs: filteredAtMs - startedAtMs,
      waitMs,
      searchMs: performance.now() - filteredAtMs - waitMs,
      assembleMs: 0,
    },
    {
      rowsScanned: found.reduce((sum, { scannedCount }) => sum + scannedCount, 0),
      candidatesRescored: found.reduce((sum, { rescoredCount }) => sum + rescoredCount, 0),
    },
  );
  return grades.map(({ rightCount }, i) => rightCount / searches[i]!.query.k);
}

/** The rows of the ids that exist; a repeated id counts once. */
function findRows(view: SnapshotView, ids: readonly string[]): readonly RowAddress[] {
  return [...new Set(ids)].flatMap((id) => view.find(id) ?? []);
}

interface Grade {
  rightCount: number;
  /** Unrounded score of the k-th nearest. */
  readonly leastScore: number;
  /** Rows that are not among the k nearest but may tie with the last of them. */
  readonly undecided: readonly Pick<ViewRow, 'view' | 'row'>[];
}

function gradeIds(
  given: readonly RowAddress[],
  nearest: readonly Hit[],
  k: number,
  views: readonly SegmentView[],
): Grade {
  const viewOf = new Map(views.map((view) => [view.segment, view]));
  const nearestRows = new Map<SegmentView, Set<number>>();
  for (const { view, row } of nearest) {
    const rows = nearestRows.get(view);
    if (rows === undefined) nearestRows.set(view, new Set([row]));
    else rows.add(row);
  }
  let rightCount = 0;
  const undecided: Pick<ViewRow, 'view' | 'row'>[] = [];
  for (const { segment, row } of given) {
    const view = viewOf.get(segment);
    if (view === undefined || !hasRow(view, row)) continue;
    if (nearestRows.get(view)?.has(row) === true) rightCount++;
    else undecided.push({ view, row });
  }
  // Fewer than k rows are all among the nearest, so none is undecided.
  const leastScore = nearest.length < k ? Number.NEGATIVE_INFINITY : nearest.at(-1)!.score;
  return { rightCount, leastScore, undecided };
}
