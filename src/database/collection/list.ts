// Listing in order of arrival, from the snapshot that the first page opened. A cursor names the
// last row by the sequence that inserted it and its id, which no compaction changes.

import { nextSetBit } from '../../common/bitmap.js';
import { field, validationError } from '../../common/errors.js';
import type { JsonObject } from '../../common/types.js';
import { parseFilter } from '../../filter/parse.js';
import type { ListReply, ListRequest, VectorRecord } from '../api.js';
import type { DatabaseServices } from '../database-services.js';
import { observeCursorError, observeCursors } from '../observer.js';
import type { ListCursor } from '../query/cursor.js';
import { findPageIssues, mismatch, openCursor, sameJson } from '../query/paging.js';
import type { Collection } from './collection.js';
import { countVisible, type SegmentView } from './snapshot.js';

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
  readonly part: SegmentView;
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
  context: DatabaseServices,
): Promise<ListReply> {
  const issues = findPageIssues(request, context.limits, field);
  if (issues.length > 0) throw validationError(issues);
  const plan =
    request.cursor === undefined
      ? planFirstPage(collection, request, context)
      : planNextPage(collection, request, request.cursor, context);
  const filter = plan.filter === null ? null : parseFilter(plan.filter, context.limits);
  const { views: parts } = collection.snapshot(plan.sequence);
  let found: FoundRow[];
  let total: number | undefined;
  if (request.offset === undefined) {
    // Segments are filtered one after another, only as far as the page reaches.
    found = [];
    let isPastStart = plan.after === null;
    for (const part of parts) {
      if (found.length > plan.limit) break;
      const start = isPastStart ? 0 : startRow(part, plan.after!);
      // Rows of one write may lie in two segments: after the cursor's row every row counts.
      isPastStart ||= isRowBefore(part, start, plan.after!);
      if (start >= part.rowCount) continue;
      const [filtered] = await context.filters.filter([part], filter);
      collect(filtered!, start, plan.limit + 1, found);
    }
  } else {
    const filtered = await context.filters.filter(parts, filter);
    total = countVisible(filtered);
    found = collectAtOffset(filtered, request.offset, plan.limit + 1);
  }
  const page = found.slice(0, plan.limit);
  const hasMore = found.length > plan.limit;
  return {
    vectors: page.map(
      ({ part, row }): VectorRecord =>
        collection.record(part.segment, row, {
          values: plan.includeValues,
          metadata: plan.includeMetadata,
        }),
    ),
    hasMore,
    nextCursor: hasMore
      ? context.sealer.seal(nextCursor(collection, plan, page.at(-1)!))
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

function startRow(part: SegmentView, after: { sequence: number; id: string }): number {
  return part.segment.rowAfter(after.sequence, Buffer.from(after.id));
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

/** Adds visible rows from `start` on until `found` has `countMax`. */
function collect(part: SegmentView, start: number, countMax: number, found: FoundRow[]): void {
  let row = start;
  while (found.length < countMax) {
    if (part.rows !== null) {
      row = nextSetBit(part.rows, row);
      if (row < 0) return;
    } else if (row >= part.rowCount) {
      return;
    }
    found.push({ part, row });
    row++;
  }
}

function collectAtOffset(
  parts: readonly SegmentView[],
  offset: number,
  countMax: number,
): FoundRow[] {
  const found: FoundRow[] = [];
  let toSkip = offset;
  for (const part of parts) {
    if (found.length === countMax) break;
    if (toSkip >= part.visibleCount) {
      toSkip -= part.visibleCount;
      continue;
    }
    let start = toSkip;
    if (part.rows !== null) {
      start = nextSetBit(part.rows, 0);
      for (; toSkip > 0; toSkip--) start = nextSetBit(part.rows, start + 1);
    }
    toSkip = 0;
    collect(part, start, countMax, found);
  }
  return found;
}

function nextCursor(collection: Collection, plan: ListPlan, last: FoundRow): ListCursor {
  const { segment } = last.part;
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
