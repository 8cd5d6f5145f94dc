// Spreads a search over the nodes of a cluster that hold the collection. Each node can find all rows and searches those of
// some ranges of sequences: of the segments that it keeps, or an even share if all nodes keep all, since the rows of every
// segment are in the order of their writes on every node. The node that received the request merges the hits by unrounded
// score and id, which gives the answer that it would find alone. What a node does not answer in time is searched by another
// that keeps the segments, and otherwise by the node that received the request.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Bitmap,
  countBitsBetween,
  createBitmap,
  createFullBitmap,
  hasRow,
} from '../../common/bitmap.js';
import { anySignal } from '../../common/cancel-signal.js';
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
  type Holder,
  PEER_TIMEOUT,
  type Peer,
  type PeerHits,
  type Peers,
  SEARCH_FAILED,
  type SealedVectors,
  type SequenceRange,
} from './peers.js';
import type { ReadServices } from './read-services.js';
import type { ScheduledHits } from './search-scheduler.js';

/** Sending a hit takes about as long as scoring this many values. */
const VALUES_PER_HIT = 8_192;
/** Searches for up to this many hits are shared even when they score few values. */
const HITS_MIN = 4_096;
/** A peer may take this many times as long for its range as this node for its own. */
const PEER_TIME_FACTOR = 4;
const PEER_WAIT_MS_MIN = 50;
/** A peer may take this long where this node would have to fetch the vectors that the peer has. */
const KEEPER_WAIT_MS_MIN = 2_000;
/** Lookups of rows of one write before the rows of that write are indexed. */
const LOOKUPS_BEFORE_INDEX = 8;
/** A range may deviate by this fraction from the even share, to begin at a segment. */
const SHARE_TOLERANCE = 0.1;

type Views = readonly SegmentView[];

/** Rows of a snapshot that other nodes can find as well, so that they can search a range of them. */
export interface SharedRows {
  readonly collection: Collection;
  readonly snapshot: Snapshot;
  /** The ranking, without the vector and the metric of each query. */
  readonly ranking: Pick<SealedVectors, 'kind' | 'using' | 'column' | 'formula'>;
  readonly filters: readonly JsonObject[];
  readonly views: readonly FieldView[];
}

/** A search by vectors; `rows` is null when its rows were chosen on this node. */
export interface EngineSearch {
  readonly query: VectorQuery;
  readonly rows: SharedRows | null;
}

interface VectorQuery extends SearchQuery {
  readonly views: readonly FieldView[];
}

/** Searches on this node: one result per query, in its views. */
export type LocalSearch = (queries: readonly VectorQuery[]) => Promise<readonly SearchHits[]>;

/** Searches by the engine of this node or with peers; results are in order. Rejects like `SearchScheduler.search`. */
export async function searchByEngine(
  searches: readonly EngineSearch[],
  services: ReadServices,
  signal: AbortSignal | undefined,
): Promise<ScheduledHits> {
  const queries = searches.map(({ query }) => query);
  if (areShared(searches)) {
    const local: LocalSearch = async (some) => (await services.scheduler.search(some, signal)).hits;
    const hits = await searchWithPeers(searches, local, services, signal);
    if (hits !== null) return { hits, waitMs: 0 };
  }
  return services.scheduler.search(queries, signal);
}

type SharedSearch = EngineSearch & { readonly rows: SharedRows };

function areShared(searches: readonly EngineSearch[]): searches is readonly SharedSearch[] {
  return searches.every(({ rows }) => rows !== null);
}

/** One result per search, in order; null when searching alone is faster. */
export async function searchWithPeers(
  searches: readonly { readonly query: VectorQuery; readonly rows: SharedRows }[],
  local: LocalSearch,
  services: Pick<ReadServices, 'peers'>,
  signal: AbortSignal | undefined,
): Promise<readonly SearchHits[] | null> {
  const [first] = searches;
  if (first === undefined) return null;
  const { collection, snapshot } = first.rows;
  // Other nodes do not know how a search has narrowed its views.
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
  const request = { kind: 'search', ...snapshotOf(first.rows), queries } as const;
  const asked = searches.map(({ query }) => query);
  const rowIndexes = new RowIndexes(collection);
  const { views } = snapshot;
  const plan = planOf(collection.incarnation, views, nodes, services.peers);
  const found = await scatter<readonly SearchHits[]>(plan, signal, {
    local: (ranges) => searchRanges(asked, ranges, local),
    async ask(peer, ranges, aborted) {
      const hits = await peer.search({ ...request, ranges }, aborted);
      const located = hits.map((ofQuery, q) => rowIndexes.locate(ofQuery, asked[q]!.views));
      return located.some((ofQuery) => ofQuery === null) ? null : (located as SearchHits[]);
    },
  });
  return asked.map((query, q) =>
    merge(
      found.map((ofRange) => ofRange[q]!),
      query,
    ),
  );
}

/** The number of rows before each rank key; null when counting alone is faster. */
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
  const request = { kind: 'count', ...snapshotOf(rows), query: counted, rankKeys } as const;
  const { incarnation } = rows.collection;
  const plan = planOf(incarnation, rows.snapshot.views, nodes, services.peers);
  const found = await scatter<Float64Array>(plan, signal, {
    local: (ranges) => {
      const { views } = narrow(query.views, ranges);
      return countBefore(services, { ...query, views }, rankKeys, signal && { signal });
    },
    ask: (peer, ranges, aborted) => peer.count({ ...request, ranges }, aborted),
  });
  return Float64Array.from(rankKeys, (_, i) => found.reduce((sum, counts) => sum + counts[i]!, 0));
}

function snapshotOf({ collection: { incarnation }, snapshot: { sequence } }: SharedRows) {
  return { incarnation, sequence };
}

function sealedRows({ ranking, filters }: SharedRows, { vector, metric }: VectorQuery) {
  return { filters, ranking: { ...ranking, vector, metric, excludedIds: [], digest: null } };
}

/**
 * The nodes to search on; none when the searches are too small or find too many rows, unless other nodes have the vectors
 * of some rows.
 */
function chooseNodes(
  searches: readonly { readonly query: VectorQuery; readonly rows: SharedRows }[],
  hitCount: number,
  peers: Peers,
): readonly Holder[] {
  if (peers.valuesMin === Number.POSITIVE_INFINITY) return [];
  const { collection, snapshot } = searches[0]!.rows;
  if (snapshot.views.some(({ segment }) => segment.isPartial)) {
    return peers.holding(collection.incarnation);
  }
  let valueCount = 0;
  for (const { query, rows } of searches) {
    valueCount += countVisible(rows.views) * query.vector.length;
  }
  const hitsMax = Math.max(HITS_MIN, valueCount / VALUES_PER_HIT);
  const isWorthIt = valueCount >= peers.valuesMin && hitCount <= hitsMax;
  // The nodes are looked up only for searches that are worth it.
  return isWorthIt ? peers.holding(collection.incarnation) : [];
}

/** Which nodes search which rows. */
interface Plan {
  readonly nodes: readonly Holder[];
  /** The rows of each node. */
  readonly shares: readonly (readonly SequenceRange[])[];
  /** How long other nodes may take at least. */
  readonly waitMsMin: number;
  /** The plan for the shares of nodes that have failed; null if this node can search them as fast as any other. */
  readonly without: ((failed: ReadonlySet<Holder>, waitMs: number) => Plan) | null;
}

/** The results for all shares, from peers that answer in time and otherwise by the next plan or from this node. */
async function scatter<Found>(
  { nodes, shares, waitMsMin, without }: Plan,
  signal: AbortSignal | undefined,
  tasks: {
    readonly local: (ranges: readonly SequenceRange[]) => Promise<Found>;
    /** Resolves with null when the answer of the peer cannot be used. */
    readonly ask: (
      peer: Peer,
      ranges: readonly SequenceRange[],
      signal: AbortSignal,
    ) => Promise<Found | null>;
  },
): Promise<readonly Found[]> {
  const ended = new AbortController();
  const aborted = anySignal([ended.signal, ...(signal === undefined ? [] : [signal])]);
  const startedAtMs = performance.now();
  const answers = nodes.map(({ peer }, i) =>
    peer === null ? null : tasks.ask(peer, shares[i]!, aborted).catch(() => null),
  );
  const found: Found[] = [];
  const failed = new Set<Holder>();
  let waitMs = waitMsMin;
  let reason = SEARCH_FAILED;
  try {
    const own = await tasks.local(shares[nodes.findIndex(({ peer }) => peer === null)]!);
    waitMs = Math.max(waitMsMin, PEER_TIME_FACTOR * (performance.now() - startedAtMs));
    const timeout = sleep(waitMs, null, { signal: ended.signal }).catch(() => null);
    for (const [i, answer] of answers.entries()) {
      if (answer === null) {
        found.push(own);
        continue;
      }
      const remote = await Promise.race([answer, timeout]);
      signal?.throwIfAborted();
      if (remote !== null) found.push(remote);
      else if (without === null) found.push(await tasks.local(shares[i]!));
      else failed.add(nodes[i]!);
    }
    reason = PEER_TIMEOUT;
  } finally {
    ended.abort(reason);
  }
  if (without === null || failed.size === 0) return found;
  return [...found, ...(await scatter(without(failed, waitMs), signal, tasks))];
}

/**
 * A node gets about the same rows in every search, whichever node received it, so that only those need memory there: of
 * the segments that it keeps or, if all nodes keep all, an even share.
 */
function planOf(
  incarnation: string,
  views: readonly SegmentView[],
  nodes: readonly Holder[],
  peers: Peers,
): Plan {
  const first = (view: SegmentView) => view.segment.insertedSequence(0);
  const keepers = views.map((view) => peers.keeping(incarnation, view.segment.homeKey));
  if (keepers.every((names) => names === null)) {
    const ranges = splitEvenly(views, nodes.length);
    const shares = ranges.map((range) => [range]);
    return { nodes, shares, waitMsMin: PEER_WAIT_MS_MIN, without: null };
  }
  const parts = views.map((view, i): KeptPart => {
    const next = views[i + 1];
    const from = i === 0 ? 0 : first(view);
    const to = next === undefined ? Number.MAX_SAFE_INTEGER : first(next);
    return { range: { from, to }, rowCount: view.visibleCount, keepers: keepers[i]! };
  });
  // Without a reachable node that keeps a segment, any of them reads the shared file.
  const { shares, nodeOf } = shareOut(parts, nodes, nodes);
  const without = (failed: ReadonlySet<Holder>, waitMsMin: number): Plan => {
    const left = nodes.filter((node) => !failed.has(node));
    const self = left.filter(({ peer }) => peer === null);
    const unanswered = parts.filter((_, i) => failed.has(nodeOf[i]!));
    const again = shareOut(unanswered, left, self);
    const isAsked = (node: Holder, n: number) => node.peer === null || again.shares[n]!.length > 0;
    return {
      nodes: left.filter(isAsked),
      shares: again.shares.filter((_, n) => isAsked(left[n]!, n)),
      ...{ waitMsMin, without: null },
    };
  };
  return { nodes, shares, waitMsMin: KEEPER_WAIT_MS_MIN, without };
}

/** The rows of a segment. */
interface KeptPart {
  readonly range: SequenceRange;
  readonly rowCount: number;
  /** The names of the nodes that keep it; null for all. */
  readonly keepers: readonly string[] | null;
}

/** Gives each part to one of the nodes that keep it, or to one of `readers` if none does, in about equal shares. */
function shareOut(
  parts: readonly KeptPart[],
  nodes: readonly Holder[],
  readers: readonly Holder[],
) {
  const shares = nodes.map((): SequenceRange[] => []);
  const rowCounts = nodes.map(() => 0);
  const nodeOf = parts.map(({ range, rowCount, keepers }) => {
    const keeping = nodes.filter(({ node }) => keepers?.includes(node) ?? true);
    const places = (keeping.length > 0 ? keeping : readers).map((node) => nodes.indexOf(node));
    const least = places.reduce((a, b) => (rowCounts[b]! < rowCounts[a]! ? b : a));
    rowCounts[least] = rowCounts[least]! + rowCount;
    const share = shares[least]!;
    const last = share.at(-1);
    if (last?.to === range.from) share[share.length - 1] = { from: last.from, to: range.to };
    else if (range.from < range.to) share.push(range);
    return nodes[least]!;
  });
  return { shares, nodeOf };
}

/** Ranges of sequences with about equally many visible rows, which begin at a segment when one begins nearby. */
function splitEvenly(views: readonly SegmentView[], count: number): readonly SequenceRange[] {
  const share = countVisible(views) / count;
  const tolerance = SHARE_TOLERANCE * share;
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

/** Searches the rows of ranges on this node. View indexes of the hits refer to the whole views. */
export async function searchRanges<
  View extends SegmentView,
  Query extends { readonly views: readonly View[] },
>(
  searches: readonly Query[],
  ranges: readonly SequenceRange[],
  local: (searches: readonly Query[]) => Promise<readonly SearchHits[]>,
): Promise<SearchHits[]> {
  const narrowed = new Map<readonly View[], PartOfViews<View>>();
  const partOf = ({ views }: Query) => {
    let found = narrowed.get(views);
    if (found === undefined) {
      found = narrow(views, ranges);
      narrowed.set(views, found);
    }
    return found;
  };
  const queries = searches.map((query) => ({ ...query, views: partOf(query).views }));
  const hits = await local(queries.filter(({ views }) => views.length > 0));
  const found = hits.values();
  return queries.map(({ views }, i) => {
    if (views.length === 0) return NO_HITS;
    const ofQuery = found.next().value!;
    const { indexes } = partOf(searches[i]!);
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

interface PartOfViews<View> {
  readonly views: readonly View[];
  /** Their indexes among all views. */
  readonly indexes: readonly number[];
}

/** The views restricted to the rows of ranges, without views that become empty. */
export function narrow<View extends SegmentView>(
  all: readonly View[],
  ranges: readonly SequenceRange[],
): PartOfViews<View> {
  const views: View[] = [];
  const indexes: number[] = [];
  for (const [index, view] of all.entries()) {
    for (const { from, to } of ranges) {
      const first = firstRowSince(view, from);
      const end = firstRowSince(view, to);
      if (first >= end) continue;
      const rows = first === 0 ? view.rows : rowsFrom(view, first);
      const visibleCount = rows === null ? end : countBitsBetween(rows, first, end);
      if (visibleCount === 0) continue;
      views.push({ ...view, rowCount: end, rows, visibleCount });
      indexes.push(index);
    }
  }
  return { views, indexes };
}

/** The first row that was inserted by the write with this sequence or a later one. */
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

/** The visible rows from the row `first` on. */
function rowsFrom({ rows, rowCount }: SegmentView, first: number): Bitmap {
  const kept = rows === null ? createFullBitmap(rowCount) : createBitmap(rowCount);
  if (rows !== null) kept.words.set(rows.words.subarray(0, kept.words.length));
  kept.words.fill(0, 0, first >>> 5);
  kept.words[first >>> 5]! &= 0xffffffff << (first & 31);
  return kept;
}

/** Finds the rows of this node that correspond to hits of other nodes. */
class RowIndexes {
  readonly #collection: Collection;
  readonly #ofViews = new Map<
    Views,
    { readonly indexes: ReadonlyMap<Segment, number>; readonly inserted: InsertedRows }
  >();

  constructor(collection: Collection) {
    this.#collection = collection;
  }

  /** Null when a row does not exist here or must not be found, because the nodes then differ in their data. */
  locate({ ids, sequences, ...rest }: PeerHits, views: Views): SearchHits | null {
    const viewIndexes = new Uint32Array(ids.length);
    const rows = new Uint32Array(ids.length);
    const { indexes, inserted } = this.#indexesIn(views);
    for (const [i, id] of ids.entries()) {
      const sequence = sequences[i]!;
      const live = this.#collection.find(id);
      const index = live && indexes.get(live.segment);
      // A vector that was rewritten, or moved by a compaction, is in another row in the snapshot.
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

/** A row and the index of its view. */
type Address = readonly [viewIndex: number, row: number];

/** Finds rows by the write that inserted them. A write may have thousands of rows, and a long join may look up all. */
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
    if (searchCount > LOOKUPS_BEFORE_INDEX) return this.#indexOf(sequence).get(id) ?? null;
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

/** The best rows of all ranges, in the order of results. */
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
