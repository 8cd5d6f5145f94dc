// Lists vectors from the snapshot that the first page opened. In the order of arrival, a cursor names the last row by
// its inserted sequence and id, which compactions do not change; in other orders, the next page begins at an offset.

import { rowsIn, setBitAfter } from '../../common/bitmap.js';
import { field, validationError } from '../../common/errors.js';
import type { FilterNode } from '../../filter/filter-node.js';
import type { ListReply, ListRequest, VectorRecord } from '../api/database-api.js';
import { observeCursorError, observeCursors } from '../api/observer.js';
import type { Collection } from '../collection/collection.js';
import { reachCursor } from '../collection/reach-sequence.js';
import type { RowAddress } from '../collection/rows.js';
import { countVisible, type SegmentView, withRows } from '../collection/snapshot.js';
import { findUnknownPaths } from '../collection/unknown-paths.js';
import type { FilterCache } from '../filters/filter-cache.js';
import type { ListCursor } from './cursor.js';
import { LIST_OPTIONS, type ListOptions } from './list-options.js';
import { firstOptions, nextOptions, sealOptions } from './page-options.js';
import { findLimitIssues, openCursor, requireReadable } from './paging.js';
import type { QueryServices } from './query-services.js';

interface ListPlan extends ListOptions {
  readonly sequence: number;
  readonly openedAtMs: number;
  /** The offset at which the page begins; null if it begins after a row. */
  readonly offset: number | null;
  /** The row after which the page begins; null for a first page and for a page at an offset. */
  readonly after: RowName | null;
}

/** Identifies a row independently of compactions. */
interface RowName {
  readonly sequence: number;
  readonly id: string;
}

export async function runList(
  collection: Collection,
  request: ListRequest,
  services: QueryServices,
  signal: AbortSignal | undefined,
): Promise<ListReply> {
  const { observer, sealer } = services;
  try {
    const cursor =
      request.cursor === undefined ? null : openCursor(request.cursor, 'list', collection, sealer);
    if (cursor !== null) await reachCursor(cursor, collection, signal);
    const reply = await findPage(collection, request, cursor, services);
    observeCursors(observer, request, reply);
    return reply;
  } catch (error) {
    observeCursorError(observer, request.cursor, error);
    throw error;
  }
}

async function findPage(
  collection: Collection,
  request: ListRequest,
  cursor: ListCursor | null,
  services: QueryServices,
): Promise<ListReply> {
  const issues = findLimitIssues(request, services.limits, field);
  if (issues.length > 0) throw validationError(issues);
  const plan = planPage(collection, request, cursor, services);
  const filter = plan.filter === null ? null : collection.parseFilter(plan.filter, services.limits);
  const { views } = collection.snapshot(plan.sequence);
  const { found, total } = await findRows(collection, plan, { views, filter }, services);
  const page = found.slice(0, plan.limit);
  const hasMore = found.length > plan.limit;
  return {
    vectors: page.map(
      ({ segment, row }): VectorRecord =>
        collection.record(segment, row, {
          values: plan.includeValues,
          metadata: plan.includeMetadata,
        }),
    ),
    hasMore,
    nextCursor: hasMore
      ? services.sealer.seal(nextCursor(collection, plan, page.at(-1)!))
      : undefined,
    total,
    warnings:
      cursor === null
        ? findUnknownPaths(collection, views, { filter, sort: plan.sort })
        : undefined,
  };
}

/** The rows of the page, and one more if another page follows. */
async function findRows(
  collection: Collection,
  plan: ListPlan,
  { views, filter }: { readonly views: readonly SegmentView[]; readonly filter: FilterNode | null },
  { filters, rowOrders }: QueryServices,
): Promise<{ readonly found: readonly RowAddress[]; readonly total?: number }> {
  const { sequence, sort, offset, limit } = plan;
  const countMax = limit + 1;
  if (sort === null && offset === null) {
    return { found: await findFollowing(views, filter, plan.after, { filters, countMax }) };
  }
  const filtered = await filters.filter(views, filter);
  const total = countVisible(filtered);
  if (sort === null) return { found: collectAtOffset(filtered, offset!, countMax), total };
  const key = { incarnation: collection.incarnation, sequence, filter: plan.filter, sort };
  const order = await rowOrders.order(key, filtered, total);
  const start = offset ?? 0;
  return { found: rowsAt(filtered, order.subarray(start, start + countMax)), total };
}

/** The rows in the order of arrival. Segments are filtered one by one, only as far as the page reaches. */
async function findFollowing(
  views: readonly SegmentView[],
  filter: FilterNode | null,
  after: RowName | null,
  { filters, countMax }: { readonly filters: FilterCache; readonly countMax: number },
): Promise<readonly RowAddress[]> {
  const found: RowAddress[] = [];
  let isPastStart = after === null;
  for (const view of views) {
    if (found.length === countMax) break;
    const start = isPastStart ? 0 : startRow(view, after!);
    // Rows of one write may be in two segments; all rows after the cursor's row follow.
    isPastStart ||= isRowBefore(view, start, after!);
    if (start >= view.rowCount) continue;
    const [filtered] = await filters.filter([view], filter);
    collect(filtered!, start, countMax, found);
  }
  return found;
}

/** Throws `cursor_expired` and `cursor_mismatch`. */
function planPage(
  collection: Collection,
  request: ListRequest,
  cursor: ListCursor | null,
  { limits, clock }: QueryServices,
): ListPlan {
  const now = clock.now();
  if (cursor === null) {
    return {
      ...firstOptions(LIST_OPTIONS, request, limits),
      sequence: collection.sequence,
      openedAtMs: now,
      offset: request.offset ?? null,
      after: null,
    };
  }
  requireReadable(cursor, collection, { limits, now });
  const { options, sequence, openedAtMs, after } = cursor;
  const offset = request.offset ?? cursor.offset;
  return { ...nextOptions(LIST_OPTIONS, request, options), sequence, openedAtMs, offset, after };
}

function startRow(view: SegmentView, after: RowName): number {
  return view.segment.rowAfter(after.sequence, Buffer.from(after.id));
}

function isRowBefore({ segment }: SegmentView, row: number, after: RowName): boolean {
  return (
    row > 0 &&
    segment.insertedSequence(row - 1) === after.sequence &&
    segment.idEquals(row - 1, Buffer.from(after.id))
  );
}

/** Adds visible rows from `start` on until `found` has `countMax` rows. */
function collect(view: SegmentView, start: number, countMax: number, found: RowAddress[]): void {
  if (found.length === countMax) return;
  for (const row of rowsIn(view, start)) {
    found.push({ segment: view.segment, row });
    if (found.length === countMax) return;
  }
}

function collectAtOffset(
  views: readonly SegmentView[],
  offset: number,
  countMax: number,
): RowAddress[] {
  const found: RowAddress[] = [];
  let toSkip = offset;
  for (const view of views) {
    if (found.length === countMax) break;
    if (toSkip >= view.visibleCount) {
      toSkip -= view.visibleCount;
      continue;
    }
    collect(view, visibleRow(view, toSkip), countMax, found);
    toSkip = 0;
  }
  return found;
}

/** The visible rows at these indexes in the order of arrival. */
function rowsAt(views: readonly SegmentView[], indexes: Uint32Array): readonly RowAddress[] {
  const shown = withRows(views);
  let end = 0;
  const ends = shown.map(({ visibleCount }) => (end += visibleCount));
  return Array.from(indexes, (index): RowAddress => {
    const viewIndex = ends.findIndex((after) => index < after);
    const view = shown[viewIndex]!;
    const row = visibleRow(view, index - (ends[viewIndex]! - view.visibleCount));
    return { segment: view.segment, row };
  });
}

/** The visible row of a segment with `before` visible rows before it. */
function visibleRow({ rows }: SegmentView, before: number): number {
  return rows === null ? before : setBitAfter(rows, before);
}

function nextCursor(collection: Collection, plan: ListPlan, last: RowAddress): ListCursor {
  const { segment, row } = last;
  const { sequence, openedAtMs, sort, limit } = plan;
  return {
    kind: 'list',
    incarnation: collection.incarnation,
    sequence,
    openedAtMs,
    options: sealOptions(LIST_OPTIONS, plan),
    ...(sort === null
      ? {
          offset: null,
          after: { sequence: segment.insertedSequence(row), id: segment.id(row) },
        }
      : { offset: (plan.offset ?? 0) + limit, after: null }),
  };
}
