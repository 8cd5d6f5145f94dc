// How many of somebody's answers are right: for each query the share of the ids whose exact score is
// at least that of the k-th nearest, k being how many there are. Who answers a tie with its other row
// is right as well.

import { createBitmap, hasBit, setBit } from '../../common/bitmap.js';
import { field } from '../../common/errors.js';
import type { BlockView, SearchQuery } from '../../engine/core/engine.js';
import { parseFilter } from '../../filter/parse.js';
import type { Collection } from '../collection/collection.js';
import type { RowAddress } from '../collection/rows.js';
import { filterViews, type SegmentView } from '../collection/snapshot.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import type { DatabaseServices } from '../database-services.js';
import type { RecallReply, RecallRequest } from './query-api.js';
import { type Hit, hitsAmong, type SearchTarget, searchTarget } from './search.js';

/** Beside what engines like, a bound on the bitmaps of rows that lost a tie. */
const GROUP_QUERIES_MAX = 128;
const GROUP_IDS_MAX = 131_072;

/** Throws `dimension_mismatch`, `invalid_vector` and `invalid_filter`, before any search. */
export async function runRecall(
  collection: Collection,
  request: RecallRequest,
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<RecallReply> {
  await collection.waitForSequence(request.minSequence ?? 0, signal);
  const view = new SnapshotView(collection, () => services.catalogue.isServing(collection));
  try {
    return await gradeAll(view, request, services, signal);
  } finally {
    view.close();
  }
}

async function gradeAll(
  view: SnapshotView,
  request: RecallRequest,
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<RecallReply> {
  const { vectors, ids, filter } = request;
  const metric = request.metric ?? view.collection.definition.metric;
  for (const [i, vector] of vectors.entries()) {
    view.collection.checkQueryVector(vector, metric, field('vectors', i));
  }
  const node = filter === undefined ? null : parseFilter(filter, services.limits);
  const submit = (queries: readonly SearchQuery[]) =>
    services.submitAll(queries, signal === undefined ? {} : { signal });
  const recalls: number[] = [];
  for (let start = 0; start < vectors.length; ) {
    const startedAtMs = performance.now();
    const end = endOfGroup(ids, start);
    const { views: parts } = view.snapshot();
    // Rows may move while the filter is at work.
    const given = ids.slice(start, end).map((list) => addressesOf(view, list));
    const target = searchTarget(await filterViews(services.filters, parts, node, signal));
    const filteredAtMs = performance.now();
    const { shown, searched } = target;
    const queries = vectors.slice(start, end).map((vector, i): SearchQuery => {
      const k = ids[start + i]!.length;
      return { vector, metric, k, views: searched, after: null, scoreMin: null };
    });
    const nearest = shown.length === 0 ? null : await submit(queries);
    const graded = queries.map(({ k }, i) => {
      const hits = nearest === null ? [] : hitsAmong(shown, nearest.hits[i]!);
      return gradeIds(given[i]!, hits, k, target);
    });
    const open = graded.flatMap(({ rest }, i) => (rest.length === 0 ? [] : [i]));
    const ties = open.map((i): SearchQuery => {
      const { rest } = graded[i]!;
      return { ...queries[i]!, k: rest.length, views: partsOf(rest, shown) };
    });
    const tied = ties.length === 0 ? null : await submit(ties);
    for (const [place, i] of open.entries()) {
      const { scores } = tied!.hits[place]!;
      const { leastScore } = graded[i]!;
      graded[i]!.rightCount += scores.filter((score) => score >= leastScore).length;
    }
    for (const [i, { k }] of queries.entries()) recalls.push(graded[i]!.rightCount / k);
    const waitMs = (nearest?.waitMs ?? 0) + (tied?.waitMs ?? 0);
    const hits = [...(nearest?.hits ?? []), ...(tied?.hits ?? [])];
    services.observer.queriesAnswered(
      queries.length,
      {
        startedAtMs,
        filterMs: filteredAtMs - startedAtMs,
        waitMs,
        searchMs: performance.now() - filteredAtMs - waitMs,
        assembleMs: 0,
      },
      {
        rowsScanned: hits.reduce((sum, { scannedCount }) => sum + scannedCount, 0),
        candidatesRescored: hits.reduce((sum, { rescoredCount }) => sum + rescoredCount, 0),
      },
    );
    start = end;
  }
  return { recalls, sequence: view.sequence };
}

function endOfGroup(ids: RecallRequest['ids'], start: number): number {
  let end = start;
  let idCount = 0;
  while (end < ids.length && end - start < GROUP_QUERIES_MAX) {
    idCount += ids[end]!.length;
    if (end > start && idCount > GROUP_IDS_MAX) break;
    end++;
  }
  return end;
}

/** Ids that nothing has lead nowhere; the same id counts once. */
function addressesOf(view: SnapshotView, ids: readonly string[]): readonly RowAddress[] {
  return [...new Set(ids)].flatMap((id) => view.find(id) ?? []);
}

interface Grade {
  rightCount: number;
  /** Unrounded, of the k-th nearest. */
  readonly leastScore: number;
  /** Those that are not among the nearest, and that a tie may make right. */
  readonly rest: readonly PlacedRow[];
}

interface PlacedRow {
  /** Among the parts that were searched. */
  readonly part: number;
  readonly row: number;
}

function gradeIds(
  given: readonly RowAddress[],
  nearest: readonly Hit[],
  k: number,
  { shown }: SearchTarget,
): Grade {
  const places = new Map(shown.map(({ segment }, part) => [segment, part]));
  const rowsOf = new Map<SegmentView, Set<number>>();
  for (const { view: part, row } of nearest) {
    const rows = rowsOf.get(part);
    if (rows === undefined) rowsOf.set(part, new Set([row]));
    else rows.add(row);
  }
  let rightCount = 0;
  const rest: PlacedRow[] = [];
  for (const { segment, row } of given) {
    const part = places.get(segment);
    if (part === undefined) continue;
    const { rows } = shown[part]!;
    if (rows !== null && !hasBit(rows, row)) continue;
    if (rowsOf.get(shown[part]!)?.has(row) === true) rightCount++;
    else rest.push({ part, row });
  }
  // With fewer rows than that all of them are the nearest, and there is no rest.
  const leastScore = nearest.length < k ? Number.NEGATIVE_INFINITY : nearest.at(-1)!.score;
  return { rightCount, leastScore, rest };
}

/** Exactly these rows. */
function partsOf(rows: readonly PlacedRow[], shown: SearchTarget['shown']): BlockView[] {
  const bitmaps = new Map<number, BlockView & { rows: ReturnType<typeof createBitmap> }>();
  for (const { part, row } of rows) {
    let searched = bitmaps.get(part);
    if (searched === undefined) {
      const { block, rowCount } = shown[part]!;
      searched = { block, rowCount, rows: createBitmap(rowCount) };
      bitmaps.set(part, searched);
    }
    setBit(searched.rows, row);
  }
  return [...bitmaps.values()];
}
