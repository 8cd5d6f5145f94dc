// Searches that the nodes of a cluster make together. Every node that holds the collection has all its rows, and each searches
// those that were written between two sequences: rows are in the order of their writes in every segment of every node,
// whatever its segments are. The node that was asked merges what the others find, by unrounded score and id, so that the answer
// is the one that it would find alone. It searches itself what another node does not answer in time.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Bitmap,
  countBitsBetween,
  createBitmap,
  createFullBitmap,
  hasRow,
} from '../../common/bitmap.js';
import type { RankKey } from '../../common/rank-key.js';
import type { JsonObject } from '../../common/types.js';
import { countBefore } from '../../engine/core/count-before.js';
import type { SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { Segment } from '../../segment/segment.js';
import type { Collection } from '../collection/collection.js';
import {
  countVisible,
  type FieldView,
  type SegmentView,
  type Snapshot,
} from '../collection/snapshot.js';
import {
  SEARCH_FAILED,
  type PeerHits,
  type Peer,
  type Peers,
  type SealedVectors,
  type SequenceRange,
  PEER_TIMEOUT,
} from './peers.js';
import type { ReadServices } from './read-services.js';
import type { ScheduledHits } from './search-scheduler.js';

/** To send a hit takes about as long as to score so many values; so many are sent in any case. */
const VALUES_PER_HIT = 8_192;
const HITS_MIN = 4_096;
/** Another node may take several times as long as this one for its part, and so long at least. */
const PATIENCE = 4;
const PATIENCE_MS_MIN = 50;
/** Rows of a write that are looked for one by one, before they are indexed. */
const INDEXED_AFTER = 8;
/** A part may be smaller or larger by this fraction, to begin with a segment. */
const UNEVENNESS_MAX = 0.1;

type Views = readonly SegmentView[];

/** Rows of a snapshot that other nodes find, too, and so can search a part of. */
export interface SharedRows {
  readonly collection: Collection;
  readonly snapshot: Snapshot;
  /** How they are ranked, by the vector and the metric of each query. */
  readonly ranking: Pick<SealedVectors, 'kind' | 'using' | 'column' | 'formula'>;
  readonly filters: readonly JsonObject[];
  readonly views: readonly FieldView[];
}

/** A search by vectors; `rows` is null where its rows were chosen here. */
export interface EngineSearch {
  readonly query: VectorQuery;
  readonly rows: SharedRows | null;
}

interface VectorQuery extends SearchQuery {
  readonly views: readonly FieldView[];
}

/** One result a query, in its views, by this node. */
export type LocalSearch = (queries: readonly VectorQuery[]) => Promise<readonly SearchHits[]>;

/** Searches of the engine, by this node or by several together, in order. Rejects as `SearchScheduler.search`. */
export async function searchByEngine(
  searches: readonly EngineSearch[],
  services: ReadServices,
  signal: AbortSignal | undefined,
): Promise<ScheduledHits> {
  const queries = searches.map(({ query }) => query);
  const shared = searches.flatMap(({ query, rows }) => (rows === null ? [] : { query, rows }));
  if (shared.length === searches.length) {
    const here: LocalSearch = async (some) => (await services.scheduler.search(some, signal)).hits;
    const hits = await searchWithPeers(shared, here, services, signal);
    if (hits !== null) return { hits, waitMs: 0 };
  }
  return services.scheduler.search(queries, signal);
}

/**
 * One result a search, in order; null when this node had better search alone. `here` searches views of the targets on this
 * node.
 */
export async function searchWithPeers(
  searches: readonly { readonly query: VectorQuery; readonly rows: SharedRows }[],
  here: LocalSearch,
  services: Pick<ReadServices, 'peers'>,
  signal: AbortSignal | undefined,
): Promise<readonly SearchHits[] | null> {
  const [first] = searches;
  if (first === undefined) return null;
  const { collection, snapshot } = first.rows;
  // Other nodes do not know how a search has narrowed its views meanwhile.
  const isShared = searches.every(
    ({ query, rows }) => query.views === rows.views && rows.snapshot.sequence === snapshot.sequence,
  );
  const hitCount = searches.reduce((sum, { query }) => sum + query.k, 0);
  const nodes = isShared ? chooseNodes(searches, hitCount, services.peers) : [];
  if (nodes.length < 2) return null;
  const queries = searches.map(({ query, rows }) => {
    const { k, after, scoreMin } = query;
    return { ...sealedRows(rows, query), k, after, scoreMin };
  });
  const part = { kind: 'search', ...placeOf(first.rows), queries } as const;
  const asked = searches.map(({ query }) => query);
  const rowIndexes = new RowIndexes(collection);
  const found = await shareOut<readonly SearchHits[]>(nodes, snapshot.views, signal, {
    here: (range) => searchRange(asked, range, here),
    async ask(peer, range, aborted) {
      const hits = await peer.search({ ...part, ...range }, aborted);
      const located = hits.map((ofQuery, q) => rowIndexes.locate(ofQuery, asked[q]!.views));
      return located.some((ofQuery) => ofQuery === null) ? null : (located as SearchHits[]);
    },
  });
  return asked.map((query, q) =>
    merge(
      found.map((ofPart) => ofPart[q]!),
      query,
    ),
  );
}

/** The number of the rows that come before each rank key; null when this node had better count alone. */
export async function countWithPeers(
  rows: SharedRows,
  query: VectorQuery,
  rankKeys: readonly RankKey[],
  services: ReadServices,
  signal: AbortSignal | undefined,
): Promise<Float64Array | null> {
  const isShared = query.views === rows.views;
  const nodes = isShared ? chooseNodes([{ query, rows }], rankKeys.length, services.peers) : [];
  if (nodes.length < 2) return null;
  const counted = sealedRows(rows, query);
  const part = { kind: 'count', ...placeOf(rows), query: counted, rankKeys } as const;
  const found = await shareOut<Float64Array>(nodes, rows.snapshot.views, signal, {
    here: (range) => {
      const { views } = narrow(query.views, range);
      return countBefore(services, { ...query, views }, rankKeys, signal && { signal });
    },
    ask: (peer, range, aborted) => peer.count({ ...part, ...range }, aborted),
  });
  return Float64Array.from(rankKeys, (_, i) => found.reduce((sum, counts) => sum + counts[i]!, 0));
}

function placeOf({ collection: { incarnation }, snapshot: { sequence } }: SharedRows) {
  return { incarnation, sequence };
}

function sealedRows({ ranking, filters }: SharedRows, { vector, metric }: VectorQuery) {
  return { filters, ranking: { ...ranking, vector, metric, excludedIds: [], digest: null } };
}

/** None when the searches are too small, or find too much; this node is null. */
function chooseNodes(
  searches: readonly { readonly query: VectorQuery; readonly rows: SharedRows }[],
  hitCount: number,
  peers: Peers,
): readonly (Peer | null)[] {
  if (peers.valuesMin === Number.POSITIVE_INFINITY) return [];
  let valueCount = 0;
  for (const { query, rows } of searches) {
    valueCount += countVisible(rows.views) * query.vector.length;
  }
  const hitsMax = Math.max(HITS_MIN, valueCount / VALUES_PER_HIT);
  const isWorthIt = valueCount >= peers.valuesMin && hitCount <= hitsMax;
  // Who is there is looked up only for searches that are worth it.
  return isWorthIt ? peers.holding(searches[0]!.rows.collection.incarnation) : [];
}

/** The results of the parts of the rows, in order: of other nodes as far as they answer in time, else of this one. */
async function shareOut<Found>(
  nodes: readonly (Peer | null)[],
  views: readonly SegmentView[],
  signal: AbortSignal | undefined,
  {
    here,
    ask,
  }: {
    readonly here: (range: SequenceRange) => Promise<Found>;
    /** Null where its answer cannot be used. */
    readonly ask: (peer: Peer, range: SequenceRange, signal: AbortSignal) => Promise<Found | null>;
  },
): Promise<readonly Found[]> {
  // The same node gets about the same rows in every search, whichever node is asked: it needs those in memory only.
  const ranges = cutEvenly(views, nodes.length);
  const ended = new AbortController();
  const aborted = AbortSignal.any([ended.signal, ...(signal === undefined ? [] : [signal])]);
  const startedAtMs = performance.now();
  const answers = nodes.map((node, i) =>
    node === null ? null : ask(node, ranges[i]!, aborted).catch(() => null),
  );
  let reason = SEARCH_FAILED;
  try {
    const own = await here(ranges[nodes.indexOf(null)]!);
    const ownMs = performance.now() - startedAtMs;
    const patience = sleep(Math.max(PATIENCE_MS_MIN, PATIENCE * ownMs), null, {
      signal: ended.signal,
    }).catch(() => null);
    const found: Found[] = [];
    for (const [i, answer] of answers.entries()) {
      if (answer === null) {
        found.push(own);
        continue;
      }
      const part = await Promise.race([answer, patience]);
      signal?.throwIfAborted();
      found.push(part ?? (await here(ranges[i]!)));
    }
    reason = PEER_TIMEOUT;
    return found;
  } finally {
    ended.abort(reason);
  }
}

/** Ranges of sequences with about as many visible rows each, which begin with a segment where that is near. */
function cutEvenly(views: readonly SegmentView[], count: number): readonly SequenceRange[] {
  const share = countVisible(views) / count;
  const tolerance = UNEVENNESS_MAX * share;
  const starts = [0];
  let visibleBefore = 0;
  for (const [i, { segment, rowCount, visibleCount }] of views.entries()) {
    const following = views[i + 1]?.segment;
    while (starts.length < count && starts.length * share <= visibleBefore + visibleCount) {
      const wanted = starts.length * share - visibleBefore;
      if (wanted <= tolerance) starts.push(segment.insertedSequence(0));
      else if (visibleCount - wanted <= tolerance && following !== undefined) {
        starts.push(following.insertedSequence(0));
      } else {
        const row = Math.floor((wanted / visibleCount) * rowCount);
        starts.push(segment.insertedSequence(Math.min(row, rowCount - 1)));
      }
    }
    visibleBefore += visibleCount;
  }
  while (starts.length < count) starts.push(Number.MAX_SAFE_INTEGER);
  return starts.map((from, i) => ({ from, to: starts[i + 1] ?? Number.MAX_SAFE_INTEGER }));
}

/** The searches in the rows of a range, by this node. The hits are of the whole views. */
export async function searchRange<
  View extends SegmentView,
  Query extends { readonly views: readonly View[] },
>(
  searches: readonly Query[],
  range: SequenceRange,
  here: (searches: readonly Query[]) => Promise<readonly SearchHits[]>,
): Promise<SearchHits[]> {
  const narrowed = new Map<readonly View[], RangeOfViews<View>>();
  const rangeOf = ({ views }: Query) => {
    let found = narrowed.get(views);
    if (found === undefined) {
      found = narrow(views, range);
      narrowed.set(views, found);
    }
    return found;
  };
  const queries = searches.map((query) => ({ ...query, views: rangeOf(query).views }));
  const hits = await here(queries.filter(({ views }) => views.length > 0));
  const found = hits.values();
  return queries.map(({ views }, i) => {
    if (views.length === 0) return NO_HITS;
    const ofQuery = found.next().value!;
    const { indexes } = rangeOf(searches[i]!);
    return { ...ofQuery, viewIndexes: ofQuery.viewIndexes.map((index) => indexes[index]!) };
  });
}

const NO_HITS: SearchHits = {
  viewIndexes: new Uint32Array(),
  rows: new Uint32Array(),
  scores: new Float64Array(),
  scannedCount: 0,
  rescoredCount: 0,
};

interface RangeOfViews<View> {
  readonly views: readonly View[];
  /** Their indexes among all views. */
  readonly indexes: readonly number[];
}

/** The views with only the rows of a range, without those that then have none. */
export function narrow<View extends SegmentView>(
  all: readonly View[],
  { from, to }: SequenceRange,
): RangeOfViews<View> {
  const views: View[] = [];
  const indexes: number[] = [];
  for (const [index, view] of all.entries()) {
    const first = firstRowSince(view, from);
    const end = firstRowSince(view, to);
    if (first >= end) continue;
    const rows = first === 0 ? view.rows : rowsFrom(view, first);
    const visibleCount = rows === null ? end : countBitsBetween(rows, first, end);
    if (visibleCount === 0) continue;
    views.push({ ...view, rowCount: end, rows, visibleCount });
    indexes.push(index);
  }
  return { views, indexes };
}

/** The first row that the write with this sequence, or a later one, has inserted. */
function firstRowSince({ segment, rowCount }: SegmentView, sequence: number): number {
  let low = 0;
  let high = rowCount;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (segment.insertedSequence(middle) < sequence) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The visible rows from one on. */
function rowsFrom({ rows, rowCount }: SegmentView, first: number): Bitmap {
  const kept = rows === null ? createFullBitmap(rowCount) : createBitmap(rowCount);
  if (rows !== null) kept.words.set(rows.words.subarray(0, kept.words.length));
  kept.words.fill(0, 0, first >>> 5);
  kept.words[first >>> 5]! &= 0xffffffff << (first & 31);
  return kept;
}

/** Finds rows of other nodes among those of this one. */
class RowIndexes {
  readonly #collection: Collection;
  readonly #ofViews = new Map<
    Views,
    { readonly indexes: ReadonlyMap<Segment, number>; readonly inserted: InsertedRows }
  >();

  constructor(collection: Collection) {
    this.#collection = collection;
  }

  /** Null when one of them is not here, or is not to be found: then the nodes do not mean the same. */
  locate({ ids, sequences, ...rest }: PeerHits, views: Views): SearchHits | null {
    const viewIndexes = new Uint32Array(ids.length);
    const rows = new Uint32Array(ids.length);
    const { indexes, inserted } = this.#indexesIn(views);
    for (const [i, id] of ids.entries()) {
      const sequence = sequences[i]!;
      const live = this.#collection.find(id);
      const index = live && indexes.get(live.segment);
      // A vector that was written again, or moved by a compaction, has another row in the snapshot.
      const isSame = index !== undefined && live!.segment.insertedSequence(live!.row) === sequence;
      const address = isSame ? ([index, live!.row] as const) : inserted.find(sequence, id);
      if (address === null || !hasRow(views[address[0]]!, address[1])) return null;
      [viewIndexes[i], rows[i]] = address;
    }
    return { ...rest, viewIndexes, rows };
  }

  #indexesIn(views: Views) {
    let found = this.#ofViews.get(views);
    if (found === undefined) {
      const indexes = new Map(views.map(({ segment }, index) => [segment, index]));
      found = { indexes, inserted: new InsertedRows(views) };
      this.#ofViews.set(views, found);
    }
    return found;
  }
}

/** A view and a row of it. */
type Address = readonly [viewIndex: number, row: number];

/** Rows by the writes that inserted them. A write has thousands, of which a long join may look for all. */
class InsertedRows {
  readonly #views: Views;
  readonly #searchCounts = new Map<number, number>();
  readonly #indexed = new Map<number, ReadonlyMap<string, Address>>();

  constructor(views: Views) {
    this.#views = views;
  }

  find(sequence: number, id: string): Address | null {
    const searchCount = (this.#searchCounts.get(sequence) ?? 0) + 1;
    this.#searchCounts.set(sequence, searchCount);
    if (searchCount > INDEXED_AFTER) return this.#indexOf(sequence).get(id) ?? null;
    const bytes = Buffer.from(id);
    for (const [index, row, { segment }] of this.#rowsOf(sequence)) {
      if (segment.idEquals(row, bytes)) return [index, row];
    }
    return null;
  }

  #indexOf(sequence: number): ReadonlyMap<string, Address> {
    let rows = this.#indexed.get(sequence);
    if (rows === undefined) {
      const found = new Map<string, Address>();
      for (const [index, row, { segment }] of this.#rowsOf(sequence)) {
        found.set(segment.id(row), [index, row]);
      }
      rows = found;
      this.#indexed.set(sequence, rows);
    }
    return rows;
  }

  *#rowsOf(sequence: number): Generator<readonly [number, number, SegmentView]> {
    for (const [index, view] of this.#views.entries()) {
      const end = firstRowSince(view, sequence + 1);
      for (let row = firstRowSince(view, sequence); row < end; row++) yield [index, row, view];
    }
  }
}

/** The best rows of all parts, in the order of answers. */
function merge(parts: readonly SearchHits[], { k, views }: VectorQuery): SearchHits {
  const rows = parts.flatMap(({ viewIndexes, rows: rowNumbers, scores }) =>
    Array.from(scores, (score, i) => ({ score, view: viewIndexes[i]!, row: rowNumbers[i]! })),
  );
  const idOf = ({ view, row }: { readonly view: number; readonly row: number }) =>
    views[view]!.segment.idBytes(row);
  rows.sort((a, b) => b.score - a.score || Buffer.compare(idOf(a), idOf(b)));
  const best = rows.slice(0, k);
  const sum = (countOf: (part: SearchHits) => number) =>
    parts.reduce((total, part) => total + countOf(part), 0);
  return {
    viewIndexes: Uint32Array.from(best, ({ view }) => view),
    rows: Uint32Array.from(best, ({ row }) => row),
    scores: Float64Array.from(best, ({ score }) => score),
    scannedCount: sum(({ scannedCount }) => scannedCount),
    rescoredCount: sum(({ rescoredCount }) => rescoredCount),
  };
}
