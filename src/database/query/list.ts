// Lists vectors in order of arrival, from the snapshot that the first page opened. A cursor names the
// last row by its inserted sequence and id, which no compaction changes.

import { nextSetBit } from '../../common/bitmap.js';
import { field, validationError } from '../../common/errors.js';
import type { JsonObject } from '../../common/types.js';
import { parseFilter } from '../../filter/parse.js';
import type { ListReply, ListRequest, VectorRecord } from '../api.js';
import type { Collection } from '../collection/collection.js';
import { countVisible, type SegmentView } from '../collection/snapshot.js';
import type { DatabaseServices } from '../database-services.js';
import { observeCursorError, observeCursors } from '../observer.js';
import type { ListCursor } from './cursor.js';
import { findPageIssues, mismatch, openCursor, sameJson } from './paging.js';

interface ListPlan {
  readonly sequence: number;
  readonly openedAtMs: number;
  readonly filter: JsonObject | null;
  readonly limit: number;
  readonly includeValues: boolean;
  readonly includeMetadata: boolean;
  readonly after: { readonly sequence: number; readonly id: string } | null;
}

interface FoundRow {
  readonly view: SegmentView;
  readonly row: number;
}

export async function runList(
  collection: Collection,
  request: ListRequest,
  services: DatabaseServices,
): Promise<ListReply> {
  const { observer } = services;
  try {
    const reply = await findPage(collection, request, services);
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
  services: DatabaseServices,
): Promise<ListReply> {
  const issues = findPageIssues(request, services.limits, field);
  if (issues.length > 0) throw validationError(issues);
  const plan =
    request.cursor === undefined
      ? planFirstPage(collection, request, services)
      : planNextPage(collection, request, request.cursor, services);
  const filter = plan.filter === null ? null : parseFilter(plan.filter, services.limits);
  const { views } = collection.snapshot(plan.sequence);
  let found: FoundRow[];
  let total: number | undefined;
  if (request.offset === undefined) {
    // Segments are filtered one by one, only as far as the page reaches.
    found = [];
    let isPastStart = plan.after === null;
    for (const view of views) {
      if (found.length > plan.limit) break;
      const start = isPastStart ? 0 : startRow(view, plan.after!);
      // Rows of one write may be in two segments: after the cursor's row, all of them follow.
      isPastStart ||= isRowBefore(view, start, plan.after!);
      if (start >= view.rowCount) continue;
      const [filtered] = await services.filters.filter([view], filter);
      collect(filtered!, start, plan.limit + 1, found);
    }
  } else {
    const filtered = await services.filters.filter(views, filter);
    total = countVisible(filtered);
    found = collectAtOffset(filtered, request.offset, plan.limit + 1);
  }
  const page = found.slice(0, plan.limit);
  const hasMore = found.length > plan.limit;
  return {
    vectors: page.map(
      ({ view, row }): VectorRecord =>
        collection.record(view.segment, row, {
          values: plan.includeValues,
          metadata: plan.includeMetadata,
        }),
    ),
    hasMore,
    nextCursor: hasMore
      ? services.sealer.seal(nextCursor(collection, plan, page.at(-1)!))
      : undefined,
    total,
  };
}

function planFirstPage(
  collection: Collection,
  request: ListRequest,
  { limits, clock }: DatabaseServices,
): ListPlan {
  return {
    sequence: collection.sequence,
    openedAtMs: clock.now(),
    filter: request.filter ?? null,
    limit: request.limit ?? limits.pageLimitDefault,
    includeValues: request.includeValues ?? false,
    includeMetadata: request.includeMetadata ?? true,
    after: null,
  };
}

function planNextPage(
  collection: Collection,
  request: ListRequest,
  token: string,
  { sealer, limits, clock }: DatabaseServices,
): ListPlan {
  const cursor = openCursor(token, 'list', collection, { sealer, limits, now: clock.now() });
  if (request.filter !== undefined && !sameJson(request.filter, cursor.filter)) {
    throw mismatch('filter');
  }
  return {
    sequence: cursor.sequence,
    openedAtMs: cursor.openedAtMs,
    filter: cursor.filter,
    limit: request.limit ?? cursor.limit,
    includeValues: request.includeValues ?? cursor.includeValues,
    includeMetadata: request.includeMetadata ?? cursor.includeMetadata,
    after: { sequence: cursor.afterSequence, id: cursor.afterId },
  };
}

function startRow(view: SegmentView, after: { sequence: number; id: string }): number {
  return view.segment.rowAfter(after.sequence, Buffer.from(after.id));
}

function isRowBefore(
  { segment }: SegmentView,
  row: number,
  after: { sequence: number; id: string },
): boolean {
  return (
    row > 0 &&
    segment.insertedSequence(row - 1) === after.sequence &&
    segment.idEquals(row - 1, Buffer.from(after.id))
  );
}

/** Adds visible rows, beginning at `start`, until `found` has `countMax`. */
function collect(view: SegmentView, start: number, countMax: number, found: FoundRow[]): void {
  let row = start;
  while (found.length < countMax) {
    if (view.rows !== null) {
      row = nextSetBit(view.rows, row);
      if (row < 0) return;
    } else if (row >= view.rowCount) {
      return;
    }
    found.push({ view, row });
    row++;
  }
}

function collectAtOffset(
  views: readonly SegmentView[],
  offset: number,
  countMax: number,
): FoundRow[] {
  const found: FoundRow[] = [];
  let toSkip = offset;
  for (const view of views) {
    if (found.length === countMax) break;
    if (toSkip >= view.visibleCount) {
      toSkip -= view.visibleCount;
      continue;
    }
    let start = toSkip;
    if (view.rows !== null) {
      start = nextSetBit(view.rows, 0);
      for (; toSkip > 0; toSkip--) start = nextSetBit(view.rows, start + 1);
    }
    toSkip = 0;
    collect(view, start, countMax, found);
  }
  return found;
}

function nextCursor(collection: Collection, plan: ListPlan, last: FoundRow): ListCursor {
  const { segment } = last.view;
  return {
    kind: 'list',
    incarnation: collection.incarnation,
    sequence: plan.sequence,
    openedAtMs: plan.openedAtMs,
    filter: plan.filter,
    limit: plan.limit,
    includeValues: plan.includeValues,
    includeMetadata: plan.includeMetadata,
    afterSequence: segment.insertedSequence(last.row),
    afterId: segment.id(last.row),
  };
}
