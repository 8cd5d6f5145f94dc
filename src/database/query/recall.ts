// Recall of given answers: for each query the share of the given ids whose exact score is at least
// that of the k-th nearest, k being the number of ids. An answer that took the other row of a tie is
// right as well.

import { type Bitmap, createBitmap, hasBit, setBit } from '../../common/bitmap.js';
import { cutByWeight } from '../../common/cut-by-weight.js';
import { field } from '../../common/errors.js';
import type { JsonObject } from '../../common/types.js';
import type { BlockView, SearchQuery } from '../../engine/core/engine.js';
import type { FilterNode } from '../../filter/filter-node.js';
import type { Collection } from '../collection/collection.js';
import type { RowAddress } from '../collection/rows.js';
import {
  type FieldView,
  type SegmentView,
  viewsOfField,
  withRows,
} from '../collection/snapshot.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import type { DatabaseServices } from '../database-services.js';
import { observeQueries } from '../observer.js';
import { findUnknownPaths } from '../unknown-paths.js';
import { type Hit, toHits } from './hits.js';
import { reachSequence } from './paging.js';
import type { RecallReply, RecallRequest } from './query-api.js';
import { sharedRows } from './rankings/scored.js';
import { searchByEngine } from './scattered-search.js';

/** Bounds the bitmaps of the rows that are compared with the k-th nearest. */
const GROUP_QUERIES_MAX = 128;
const GROUP_IDS_MAX = 131_072;

/** Throws `dimension_mismatch`, `invalid_vector` and `invalid_filter`, before any search. */
export async function runRecall(
  collection: Collection,
  request: RecallRequest,
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<RecallReply> {
  const { vectors, ids, minSequence = 0 } = request;
  await reachSequence(collection, minSequence, signal);
  const view = new SnapshotView(collection, () => services.collections.isServing(collection));
  try {
    const searched = collection.searchedVector(request, []);
    const { metric, using } = searched;
    for (const [i, vector] of vectors.entries()) {
      collection.checkQueryVector(vector, searched, field('vectors', i));
    }
    const { filter = null } = request;
    const filterNode = filter && collection.parseFilter(filter, services.limits);
    const chosen = { filter, filterNode, using };
    const recalls: number[] = [];
    const queries = vectors.map((vector, i): GradedQuery => {
      const given = ids[i]!;
      return { query: { vector, metric, k: given.length, after: null, scoreMin: null }, given };
    });
    const groups = cutByWeight(queries, {
      countMax: GROUP_QUERIES_MAX,
      weightMax: GROUP_IDS_MAX,
      weightOf: ({ given }) => given.length,
    });
    for (const group of groups) {
      recalls.push(...(await gradeGroup(view, group, chosen, services, signal)));
    }
    const { views } = view.snapshot();
    const warnings = findUnknownPaths(collection, views, { filter: filterNode });
    return { recalls, sequence: view.sequence, warnings };
  } finally {
    view.close();
  }
}

type QueryWithoutViews = Omit<SearchQuery, 'views'>;

/** A query with the ids that are graded for it. */
interface GradedQuery {
  readonly query: QueryWithoutViews;
  readonly given: readonly string[];
}

interface ChosenRows {
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
  readonly using: string;
}

/** Grades queries that are searched together. */
async function gradeGroup(
  view: SnapshotView,
  group: readonly GradedQuery[],
  { filter, filterNode, using }: ChosenRows,
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<readonly number[]> {
  const startedAtMs = performance.now();
  const { filters, scheduler, observer } = services;
  const snapshot = view.snapshot();
  // Looked up before the filter is awaited: rows may move meanwhile.
  const given = group.map((graded) => findRows(view, graded.given));
  const queries = group.map(({ query }) => query);
  const passing = await filters.filter(snapshot.views, filterNode, signal);
  const views = withRows(viewsOfField(passing, using));
  const rows = sharedRows(
    view.collection,
    snapshot,
    { kind: 'vector', using },
    {
      filters: filter === null ? [] : [filter],
      views,
    },
  );
  const filteredAtMs = performance.now();
  const isEmpty = views.length === 0;
  const searches = queries.map((query) => ({ query: { ...query, views }, rows }));
  const nearest = await searchByEngine(isEmpty ? [] : searches, services, signal);
  const grades = queries.map(({ k }, i) =>
    gradeIds(given[i]!, isEmpty ? [] : toHits(views, nearest.hits[i]!), k, views),
  );
  const undecided = grades.flatMap((grade, i) =>
    grade.undecided.length === 0 ? [] : [{ grade, query: queries[i]! }],
  );
  const scored = await scheduler.search(
    undecided.map(({ grade, query }) => ({
      ...query,
      k: grade.undecided.length,
      views: blockViewsOf(grade.undecided, views),
    })),
    signal,
  );
  for (const [i, { grade }] of undecided.entries()) {
    grade.rightCount += scored.hits[i]!.scores.filter((score) => score >= grade.leastScore).length;
  }
  const waitMs = nearest.waitMs + scored.waitMs;
  const found = [...nearest.hits, ...scored.hits];
  observeQueries(
    observer,
    queries.length,
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
  return queries.map(({ k }, i) => grades[i]!.rightCount / k);
}

/** The rows of the ids that exist; an id that is repeated counts once. */
function findRows(view: SnapshotView, ids: readonly string[]): readonly RowAddress[] {
  return [...new Set(ids)].flatMap((id) => view.find(id) ?? []);
}

interface Grade {
  rightCount: number;
  /** Unrounded score of the k-th nearest. */
  readonly leastScore: number;
  /** Rows that are not among the k nearest and may tie with the last of them. */
  readonly undecided: readonly IndexedRow[];
}

interface IndexedRow {
  /** Into the views that are searched. */
  readonly viewIndex: number;
  readonly row: number;
}

function gradeIds(
  given: readonly RowAddress[],
  nearest: readonly Hit[],
  k: number,
  segmentViews: readonly FieldView[],
): Grade {
  const viewIndexes = new Map(segmentViews.map(({ segment }, index) => [segment, index]));
  const nearestRows = new Map<SegmentView, Set<number>>();
  for (const { view, row } of nearest) {
    const rows = nearestRows.get(view);
    if (rows === undefined) nearestRows.set(view, new Set([row]));
    else rows.add(row);
  }
  let rightCount = 0;
  const undecided: IndexedRow[] = [];
  for (const { segment, row } of given) {
    const viewIndex = viewIndexes.get(segment);
    if (viewIndex === undefined) continue;
    const view = segmentViews[viewIndex]!;
    if (view.rows !== null && !hasBit(view.rows, row)) continue;
    if (nearestRows.get(view)?.has(row) === true) rightCount++;
    else undecided.push({ viewIndex, row });
  }
  // Fewer than k rows are all among the nearest, so none is undecided.
  const leastScore = nearest.length < k ? Number.NEGATIVE_INFINITY : nearest.at(-1)!.score;
  return { rightCount, leastScore, undecided };
}

/** Views of exactly these rows. */
function blockViewsOf(
  rows: readonly IndexedRow[],
  segmentViews: readonly FieldView[],
): BlockView[] {
  const blockViews = new Map<number, BlockView & { readonly rows: Bitmap }>();
  for (const { viewIndex, row } of rows) {
    let blockView = blockViews.get(viewIndex);
    if (blockView === undefined) {
      const { block, rowCount } = segmentViews[viewIndex]!;
      blockView = { block, rowCount, rows: createBitmap(rowCount) };
      blockViews.set(viewIndex, blockView);
    }
    setBit(blockView.rows, row);
  }
  return [...blockViews.values()];
}
