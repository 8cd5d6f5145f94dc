// Every row of one collection with its nearest in another, or in the same one: one snapshot of each.
// Rows go to the engine in groups, and the next group is searched while the matches of the one
// before are taken, no faster than they are.

import { field, type SagittaError, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { JsonObject, Metric } from '../../common/types.js';
import type { FilterNode } from '../../filter/filter-node.js';
import { parseFilter } from '../../filter/parse.js';
import type { Collection } from '../collection/collection.js';
import { countVisible, type SegmentView } from '../collection/snapshot.js';
import type { DatabaseServices } from '../database-services.js';
import { searchTarget } from '../query/search-target.js';
import { type JoinChunk, JoinChunkBuilder } from './join-chunks.js';
import { type Group, type JoinPlan, JoinSearches, walkRows } from './join-searches.js';

export interface JoinRequest {
  /** Where the matches are searched; the collection itself when absent. */
  readonly with?: string | undefined;
  /** At least one of the two. */
  readonly topK?: number | undefined;
  /** Compared with the score rounded to float32. */
  readonly scoreThreshold?: number | undefined;
  /** For the rows of the collection. */
  readonly filter?: JsonObject | undefined;
  /** For the rows that are searched. */
  readonly withFilter?: JsonObject | undefined;
  /** No match has the id of its row. Absent: true where a collection is joined with itself. */
  readonly excludeSelf?: boolean | undefined;
  /** Absent: that of the searched collection. */
  readonly metric?: Metric | undefined;
  readonly includeMetadata?: boolean | undefined;
}

export interface Join {
  readonly sequence: number;
  /** Of the searched collection. */
  readonly withSequence: number;
  readonly metric: Metric;
  /** Rows that are joined. */
  readonly rowCount: number;
  /** Once. A row without direction has no match under cosine. */
  chunks(): AsyncGenerator<JoinChunk>;
}

/**
 * Throws `invalid_request`, `limit_exceeded`, `dimension_mismatch` and `invalid_filter`, and for the
 * collection `with` what `Catalogue.require` throws.
 */
export async function runJoin(
  collection: Collection,
  request: JoinRequest,
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<Join> {
  const { catalogue, filters, limits } = services;
  const searched = request.with === undefined ? collection : catalogue.require(request.with);
  checkRequest(collection, searched, request, limits);
  const filter = parseOptional('filter', request.filter, limits);
  const withFilter = parseOptional('with_filter', request.withFilter, limits);
  const snapshot = collection.snapshot();
  const withSnapshot = searched === collection ? snapshot : searched.snapshot();
  const [parts, withParts] = await Promise.all([
    filters.filter(snapshot.views, filter, signal),
    filters.filter(withSnapshot.views, withFilter, signal),
  ]);
  const metric = request.metric ?? searched.definition.metric;
  const plan: JoinPlan = {
    views: parts,
    target: searchTarget(withParts),
    metric,
    topK: request.topK ?? null,
    scoreMin: request.scoreThreshold ?? null,
    excludesSelf: request.excludeSelf ?? searched === collection,
    includeMetadata: request.includeMetadata ?? false,
    mayLackDirection: metric === 'cosine' && collection.definition.metric !== 'cosine',
  };
  return {
    sequence: snapshot.sequence,
    withSequence: withSnapshot.sequence,
    metric,
    rowCount: countVisible(parts),
    chunks: () => joinPieces(plan, searched, services, signal),
  };
}

async function* joinPieces(
  plan: JoinPlan,
  searched: Collection,
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): AsyncGenerator<JoinChunk> {
  const reading = services.scanStats.startJoin(countVisible(plan.views));
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  const searches = new JoinSearches(plan, services.scheduler, controller.signal);
  const rows = walkRows(plan.views);
  const builder = new JoinChunkBuilder(plan);
  let ahead: Group | null = null;
  try {
    signal?.throwIfAborted();
    ahead = searches.begin(rows);
    while (ahead !== null) {
      const group: Group = ahead;
      ahead = searches.begin(rows);
      await searches.first(group);
      for (let i = 0; i < group.rows.length; i++) {
        const { view: part, row } = group.rows[i]!;
        builder.beginRow(part, row);
        for (;;) {
          for (const hits of group.found[i]!.splice(0)) {
            for (let at = 0; at < hits.rows.length; at++) {
              if (builder.rank === plan.topK) break;
              const match = plan.target.segmentViews[hits.viewIndexes[at]!]!;
              const matchRow = hits.rows[at]!;
              if (plan.excludesSelf && isSameId(part, row, match, matchRow)) continue;
              if (builder.isFull) yield builder.take(true)!;
              builder.addMatch(match, matchRow, hits.scores[at]!);
            }
          }
          if (group.after[i] === null) break;
          await searches.further(group, i);
        }
        if (builder.isFull) yield builder.take(false)!;
      }
      const rest = builder.take(false);
      if (rest !== null) yield rest;
      reading.joined(group.rows.length);
    }
  } finally {
    signal?.removeEventListener('abort', abort);
    controller.abort();
    await ahead?.searching?.catch(() => {});
    reading.ended();
    unloadGone(searched, plan.target.segmentViews, services);
  }
}

/** Unloads what a long search has loaded again after its segment was gone from the collection. */
function unloadGone(
  collection: Collection,
  searched: readonly SegmentView[],
  { catalogue, unloadBlock }: DatabaseServices,
): void {
  const current = new Set(catalogue.isServing(collection) ? collection.rows.segments : []);
  for (const { segment } of searched) if (!current.has(segment)) unloadBlock(segment.key);
}

function isSameId(part: SegmentView, row: number, other: SegmentView, otherRow: number): boolean {
  const { offsets, bytes } = part.block.ids;
  const { offsets: otherOffsets, bytes: otherBytes } = other.block.ids;
  const start = offsets[row]!;
  const length = offsets[row + 1]! - start;
  const otherStart = otherOffsets[otherRow]!;
  if (otherOffsets[otherRow + 1]! - otherStart !== length) return false;
  for (let i = 0; i < length; i++) {
    if (bytes[start + i] !== otherBytes[otherStart + i]) return false;
  }
  return true;
}

function parseOptional(
  name: string,
  filter: JsonObject | undefined,
  limits: Limits,
): FilterNode | null {
  return filter === undefined ? null : parseFilter(filter, limits, name);
}

function checkRequest(
  collection: Collection,
  searched: Collection,
  { topK, scoreThreshold }: JoinRequest,
  { topKMax }: Limits,
): void {
  if (topK === undefined && scoreThreshold === undefined) {
    const detail = 'A join takes top_k, score_threshold or both; found neither.';
    throw refused('invalid_request', 'top_k', detail);
  }
  if (topK !== undefined && topK > topKMax) {
    const detail = `A row has at most ${topKMax} matches by top_k; found ${topK}.`;
    throw refused('limit_exceeded', 'top_k', detail, { expected: topKMax, actual: topK });
  }
  const { dimension } = collection.definition;
  const { id, dimension: withDimension } = searched.definition;
  if (dimension !== withDimension) {
    const detail = `The vectors have ${dimension} elements; those of the collection "${id}" have ${withDimension}.`;
    throw refused('dimension_mismatch', 'with', detail, {
      expected: dimension,
      actual: withDimension,
    });
  }
}

function refused(
  code: 'invalid_request' | 'limit_exceeded' | 'dimension_mismatch',
  name: string,
  detail: string,
  bound: { readonly expected?: number; readonly actual?: number } = {},
): SagittaError {
  return validationError([{ location: field(name), code, detail, ...bound }]);
}
