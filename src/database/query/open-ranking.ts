// Opens rankings in the snapshots of a request: which rows they rank, and what searches for them. Queries
// with the same filter and vector share the views, by which engines and caches recognize them.

import { type Bitmap, createBitmap, setBit } from '../../common/bitmap.js';
import type { JsonObject } from '../../common/types.js';
import { countBefore } from '../../engine/core/count-before.js';
import { allOf, type FilterNode, filterTests } from '../../filter/filter-node.js';
import type { Segment } from '../../segment/segment.js';
import {
  amongRows,
  countVisible,
  type SegmentView,
  type Snapshot,
  uniteViews,
} from '../collection/snapshot.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { DatabaseServices } from '../database-services.js';
import { FusedSource } from './fusion/fused-source.js';
import { RankedPart } from './fusion/ranked-part.js';
import type { Scoring } from './peers.js';
import type { Prefetch } from './prefetch.js';
import type { QueryPlan } from './query-plan.js';
import {
  type ExampleRanking,
  type FusedRanking,
  type MultiRanking,
  type Ranking,
  type SingleRanking,
  searchedVector,
  shownScore,
  type VectorRanking,
} from './ranking.js';
import {
  countTogether,
  type SharedRows,
  searchByEngine,
  searchTogether,
} from './scattered-search.js';
import { type RankedSource, rankedSource, type SearchSource } from './search-source.js';
import { type SearchTarget, searchTarget, toHits, withoutIds } from './search-target.js';
import { openSparseSearch } from './sparse-query.js';
import { openTextSearch } from './text-query.js';
import { searchHere, viewsScoredBy } from './vector-search.js';

interface OpenRanking<Source extends SearchSource = SearchSource> {
  /** With only the rows that it ranks. */
  readonly views: readonly SegmentView[];
  readonly target: SearchTarget;
  readonly visibleCount: number;
  /** Null for the engine, which searches for many queries together. */
  readonly source: Source | null;
  /** How other nodes find the same rows; null where they cannot. */
  readonly shared: SharedRows | null;
}

/** Of a ranking that a fusion can have as a part. */
type OpenSingle = OpenRanking<RankedSource>;

/** What a plan ranks, in its snapshot. */
export interface OpenPlan extends OpenRanking {
  readonly snapshot: Snapshot;
  readonly conditionCount: number;
}

type Views = readonly SegmentView[];

/** Both null for none. */
interface Filter {
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
}

/** Rows that pass filters. */
interface Passing {
  readonly views: Views;
  /** The filters, if they are all that was chosen by; else null. */
  readonly filters: readonly JsonObject[] | null;
}

/** Narrows the rows that the filters of a query let pass; null for not at all. */
type Restrict = ((views: Views) => Views) | null;

/** One a plan, in order. Rejects with `overloaded` and with the signal's reason. */
export async function openPlans(
  view: SnapshotView,
  plans: readonly QueryPlan[],
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<readonly OpenPlan[]> {
  const snapshots = new Map<number, OpenSnapshot>();
  const opening = plans.map(({ sequence }) => {
    let open = snapshots.get(sequence);
    if (open === undefined) {
      open = new OpenSnapshot(view, sequence, services, signal);
      snapshots.set(sequence, open);
    }
    return open;
  });
  // At once: equal filters are evaluated once, and different ones side by side.
  await Promise.all(plans.map((plan, i) => opening[i]!.filter([plan])));
  const opened: OpenPlan[] = [];
  // One after another, so that a batch does not occupy the main thread.
  for (const [i, plan] of plans.entries()) {
    const { filterNode } = plan;
    opened.push({
      ...(await opening[i]!.open(plan)),
      snapshot: opening[i]!.snapshot,
      conditionCount: filterNode === null ? 0 : filterTests(filterNode).length,
    });
  }
  return opened;
}

class OpenSnapshot {
  readonly snapshot: Snapshot;
  readonly #view: SnapshotView;
  readonly #services: DatabaseServices;
  readonly #signal: AbortSignal | undefined;
  readonly #passing = new Map<FilterNode | null, Promise<Views>>();
  /** The rows that searches by vectors score, by the views that pass and the name of the vector. */
  readonly #searched = new WeakMap<Views, Map<string, OpenRanking>>();

  constructor(
    view: SnapshotView,
    sequence: number,
    services: DatabaseServices,
    signal: AbortSignal | undefined,
  ) {
    this.snapshot = view.snapshot(sequence);
    this.#view = view;
    this.#services = services;
    this.#signal = signal;
  }

  /** The views with only the rows that pass the filters. */
  filter(filters: readonly Filter[]): Promise<Views> {
    const children = filters.flatMap(({ filterNode }) => filterNode ?? []);
    const node = children.length === 0 ? null : allOf(children);
    let passing = this.#passing.get(node);
    if (passing === undefined) {
      passing = this.#services.filters.filter(this.snapshot.views, node, this.#signal);
      this.#passing.set(node, passing);
    }
    return passing;
  }

  async open(plan: QueryPlan): Promise<OpenRanking> {
    const { ranking, prefetch } = plan;
    if (prefetch === null) return this.#open(ranking, [plan], null);
    const first = await this.#prefetch(prefetch, plan);
    return this.#open(ranking, [plan], (views) => amongRows(views, first));
  }

  async #open(
    ranking: Ranking,
    filters: readonly Filter[],
    restrict: Restrict,
  ): Promise<OpenRanking> {
    if (ranking.kind === 'fusion') return this.#openFusion(ranking, filters, restrict);
    return this.#openSingle(ranking, await this.#choose(filters, restrict));
  }

  async #choose(filters: readonly Filter[], restrict: Restrict): Promise<Passing> {
    const views = await this.filter(filters);
    if (restrict !== null) return { views: restrict(views), filters: null };
    return { views, filters: filters.flatMap(({ filter }) => (filter === null ? [] : [filter])) };
  }

  async #openSingle(ranking: SingleRanking, passing: Passing): Promise<OpenSingle> {
    const signal = this.#signal;
    if (ranking.kind === 'text') {
      const { views: visible } = this.snapshot;
      const services = this.#services;
      const found = await openTextSearch(ranking.text, visible, passing.views, services, signal);
      return describe(found.views, found.source);
    }
    if (ranking.kind === 'sparse') {
      const found = await openSparseSearch(ranking, passing.views, this.#services, signal);
      return describe(found.views, found.source);
    }
    const scored = this.#scoredRows(ranking, passing.views);
    const shared = passing.filters && {
      collection: this.#view.collection,
      snapshot: this.snapshot,
      scoring: scoringOf(ranking),
      filters: passing.filters,
      target: scored.target,
    };
    if (ranking.kind === 'vector') return { ...scored, source: null, shared };
    const here = searchHere(ranking, scored.target, this.#services, signal);
    const search: SearchSource['search'] = async (query) => {
      const searches = shared && [{ query, rows: shared }];
      const found = searches && (await searchTogether(searches, here, this.#services, signal));
      return (found ?? (await here([query])))[0]!;
    };
    return { ...scored, source: rankedSource(search), shared };
  }

  #scoredRows(scoring: Scoring, passing: Views): OpenRanking {
    let known = this.#searched.get(passing);
    if (known === undefined) {
      known = new Map();
      this.#searched.set(passing, known);
    }
    const key = JSON.stringify([scoring.kind === 'multi', scoring.using]);
    let rows = known.get(key);
    if (rows === undefined) {
      rows = describe(viewsScoredBy(scoring, passing), null);
      known.set(key, rows);
    }
    return rows;
  }

  async #openFusion(
    { parts, method }: FusedRanking,
    filters: readonly Filter[],
    restrict: Restrict,
  ): Promise<OpenRanking> {
    const opened: OpenSingle[] = [];
    for (const part of parts) {
      const { ranking, limit } = part;
      const passing = await this.#choose([...filters, part], restrict);
      const whole = await this.#openSingle(ranking, passing);
      opened.push(limit === null ? whole : await this.#cut(ranking, whole, limit));
    }
    const ranked = opened.map((part, i) => {
      const { ranking, weight } = parts[i]!;
      return new RankedPart({
        source: part.source ?? this.#engineSource(part),
        query: searchedVector(ranking),
        target: part.target,
        weight,
        shownScore: (score) => shownScore(ranking, score),
      });
    });
    const views = uniteViews(
      this.snapshot.views,
      opened.map((part) => part.views),
    );
    return describe(views, new FusedSource(ranked, method));
  }

  /** The first rows of its ranking, by their segments. */
  async #prefetch(prefetch: Prefetch, queryFilter: Filter): Promise<ReadonlyMap<Segment, Bitmap>> {
    const { ranking, limit } = prefetch;
    const opened = await this.#open(ranking, [queryFilter, prefetch], null);
    // Vectors that it names by id are not wanted in the second stage either.
    return this.#firstRows(ranking, opened, limit, ranking.excludedIds);
  }

  /** The ranking of its first rows only. */
  async #cut(ranking: Ranking, opened: OpenSingle, limit: number): Promise<OpenSingle> {
    const first = await this.#firstRows(ranking, opened, limit, []);
    return describe(amongRows(opened.views, first), opened.source);
  }

  /** The first rows of a ranking without some, by their segments. */
  async #firstRows(
    ranking: Ranking,
    opened: OpenRanking,
    limit: number,
    ids: readonly string[],
  ): Promise<ReadonlyMap<Segment, Bitmap>> {
    const rowsOfSegments = new Map<Segment, Bitmap>();
    const { target, source } = opened;
    if (target.segmentViews.length === 0) return rowsOfSegments;
    const excludedIds = ids.map((id) => Buffer.from(id));
    const found = await (source ?? this.#engineSource(opened)).search({
      ...searchedVector(ranking),
      k: limit + excludedIds.length,
      views: target.blockViews,
      after: null,
      scoreMin: null,
    });
    for (const { view, row } of withoutIds(toHits(target, found), excludedIds).slice(0, limit)) {
      let rows = rowsOfSegments.get(view.segment);
      if (rows === undefined) {
        rows = createBitmap(view.rowCount);
        rowsOfSegments.set(view.segment, rows);
      }
      setBit(rows, row);
    }
    return rowsOfSegments;
  }

  /** Searches one query at a time, which the scheduler batches with those of others. */
  #engineSource({ shared: rows }: OpenRanking): RankedSource {
    const services = this.#services;
    const signal = this.#signal;
    const options = signal === undefined ? {} : { signal };
    return {
      async search(query) {
        const { hits } = await searchByEngine([{ query, rows }], services, signal);
        return hits[0]!;
      },
      async countBefore(query, positions) {
        const counts = rows && (await countTogether(rows, query, positions, services, signal));
        return counts ?? (await countBefore(services, query, positions, options));
      },
    };
  }
}

function describe<Source extends SearchSource>(
  views: Views,
  source: Source | null,
): OpenRanking<Source> {
  const target = searchTarget(views);
  return { views, target, visibleCount: countVisible(views), source, shared: null };
}

/** Without the vectors. */
function scoringOf(ranking: VectorRanking | ExampleRanking | MultiRanking): Scoring {
  if (ranking.kind === 'multi') return { kind: ranking.kind, using: ranking.using };
  const { kind, using } = ranking;
  return kind === 'vector' ? { kind, using } : { kind, using, formula: ranking.formula };
}
