// Opens rankings in the snapshots of a request: which rows they rank, and what searches for them. Queries
// with the same filter and vector share the views, by which engines and caches recognize them.

import { type Bitmap, createBitmap, setBit } from '../../common/bitmap.js';
import { countBefore } from '../../engine/core/count-before.js';
import { searchByExamples } from '../../engine/core/example-search.js';
import { searchByMaxSim } from '../../engine/core/max-sim.js';
import { type FilterNode, filterTests } from '../../filter/filter-node.js';
import type { Segment } from '../../segment/segment.js';
import {
  amongRows,
  countVisible,
  type SegmentView,
  type Snapshot,
  uniteViews,
  viewsOfMulti,
  viewsOfNamed,
} from '../collection/snapshot.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { DatabaseServices } from '../database-services.js';
import { FusedSource } from './fusion/fused-source.js';
import { RankedPart } from './fusion/ranked-part.js';
import type { Prefetch } from './prefetch.js';
import type { QueryPlan } from './query-plan.js';
import {
  type FusedRanking,
  type MultiRanking,
  type Ranking,
  type SingleRanking,
  searchedName,
  searchedVector,
  shownScore,
} from './ranking.js';
import { type RankedSource, rankedSource, type SearchSource } from './search-source.js';
import { type SearchTarget, searchTarget, toHits, withoutIds } from './search-target.js';
import { openSparseSearch } from './sparse-query.js';
import { openTextSearch } from './text-query.js';

interface OpenRanking<Source extends SearchSource = SearchSource> {
  /** With only the rows that it ranks. */
  readonly views: readonly SegmentView[];
  readonly target: SearchTarget;
  readonly visibleCount: number;
  /** Null for the engine, which searches for many queries together. */
  readonly source: Source | null;
}

/** Of a ranking that a fusion can have as a part. */
type OpenSingle = OpenRanking<RankedSource>;

/** What a plan ranks, in its snapshot. */
export interface OpenPlan extends OpenRanking {
  readonly snapshot: Snapshot;
  readonly conditionCount: number;
}

type Views = readonly SegmentView[];

/** Filters, each of which may be null. */
type Filters = readonly (FilterNode | null)[];

/** Narrows the rows that the filters of a query let pass. */
type Restrict = (views: Views) => Views;

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
      open = new OpenSnapshot(view.snapshot(sequence), services, signal);
      snapshots.set(sequence, open);
    }
    return open;
  });
  // At once: equal filters are evaluated once, and different ones side by side.
  await Promise.all(plans.map(({ filterNode }, i) => opening[i]!.filter([filterNode])));
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
  readonly #services: DatabaseServices;
  readonly #signal: AbortSignal | undefined;
  readonly #passing = new Map<FilterNode | null, Promise<Views>>();
  /** What the engine searches, by the views that pass and the name of the vector. */
  readonly #searched = new WeakMap<Views, Map<string | null, OpenSingle>>();

  constructor(snapshot: Snapshot, services: DatabaseServices, signal: AbortSignal | undefined) {
    this.snapshot = snapshot;
    this.#services = services;
    this.#signal = signal;
  }

  /** The views with only the rows that pass the filters. */
  filter(filters: Filters): Promise<Views> {
    const children = filters.filter((node) => node !== null);
    const node = children.length > 1 ? ({ kind: 'and', children } as const) : (children[0] ?? null);
    let passing = this.#passing.get(node);
    if (passing === undefined) {
      passing = this.#services.filters.filter(this.snapshot.views, node, this.#signal);
      this.#passing.set(node, passing);
    }
    return passing;
  }

  async open({ ranking, prefetch, filterNode }: QueryPlan): Promise<OpenRanking> {
    if (prefetch === null) return this.#open(ranking, [filterNode], (views) => views);
    const first = await this.#prefetch(prefetch, filterNode);
    return this.#open(ranking, [filterNode], (views) => amongRows(views, first));
  }

  async #open(ranking: Ranking, filters: Filters, restrict: Restrict): Promise<OpenRanking> {
    if (ranking.kind === 'fusion') return this.#openFusion(ranking, filters, restrict);
    return this.#openSingle(ranking, restrict(await this.filter(filters)));
  }

  async #openSingle(ranking: SingleRanking, passing: Views): Promise<OpenSingle> {
    const { pool } = this.#services;
    const signal = this.#signal;
    if (ranking.kind === 'text') {
      const { views: visible } = this.snapshot;
      const found = await openTextSearch(ranking.text, visible, passing, this.#services, signal);
      return describe(found.views, found.source);
    }
    if (ranking.kind === 'sparse') {
      const found = await openSparseSearch(ranking, passing, this.#services, signal);
      return describe(found.views, found.source);
    }
    if (ranking.kind === 'multi') return this.#openMulti(ranking, passing);
    const searched = this.#searchedViews(passing, searchedName(ranking));
    if (ranking.kind === 'vector') return searched;
    const { formula } = ranking;
    const search: SearchSource['search'] = (query) =>
      searchByExamples(pool, { ...query, formula }, signal === undefined ? {} : { signal });
    return { ...searched, source: rankedSource(search) };
  }

  #openMulti({ using }: MultiRanking, passing: Views): OpenSingle {
    const views = viewsOfMulti(passing, using);
    const columns = new Map(
      views.map(({ segment, block }) => [block.key, segment.multiColumn(using)]),
    );
    const options = this.#signal === undefined ? {} : { signal: this.#signal };
    const search: SearchSource['search'] = (query) =>
      searchByMaxSim(this.#services.pool, { ...query, columns }, options);
    return describe(views, rankedSource(search));
  }

  #searchedViews(passing: Views, name: string | null): OpenSingle {
    let byName = this.#searched.get(passing);
    if (byName === undefined) {
      byName = new Map();
      this.#searched.set(passing, byName);
    }
    let searched = byName.get(name);
    if (searched === undefined) {
      searched = describe<RankedSource>(
        name === null ? passing : viewsOfNamed(passing, name),
        null,
      );
      byName.set(name, searched);
    }
    return searched;
  }

  async #openFusion(
    { parts, method }: FusedRanking,
    filters: Filters,
    restrict: Restrict,
  ): Promise<OpenRanking> {
    const opened: OpenSingle[] = [];
    for (const { ranking, filterNode, limit } of parts) {
      const passing = restrict(await this.filter([...filters, filterNode]));
      const part = await this.#openSingle(ranking, passing);
      opened.push(limit === null ? part : await this.#cut(ranking, part, limit));
    }
    const ranked = opened.map(({ views, source }, i) => {
      const { ranking, weight } = parts[i]!;
      return new RankedPart({
        source: source ?? this.#engineSource(),
        query: searchedVector(ranking),
        views,
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
  async #prefetch(
    { ranking, filterNode, limit }: Prefetch,
    queryFilter: FilterNode | null,
  ): Promise<ReadonlyMap<Segment, Bitmap>> {
    const opened = await this.#open(ranking, [queryFilter, filterNode], (views) => views);
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
    { target, source }: OpenRanking,
    limit: number,
    ids: readonly string[],
  ): Promise<ReadonlyMap<Segment, Bitmap>> {
    const rowsOfSegments = new Map<Segment, Bitmap>();
    if (target.segmentViews.length === 0) return rowsOfSegments;
    const excludedIds = ids.map((id) => Buffer.from(id));
    const found = await (source ?? this.#engineSource()).search({
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
  #engineSource(): RankedSource {
    const { scheduler } = this.#services;
    const signal = this.#signal;
    const options = signal === undefined ? {} : { signal };
    return {
      async search(query) {
        const { hits } = await scheduler.search([query], signal);
        return hits[0]!;
      },
      countBefore: (query, positions) => countBefore(this.#services, query, positions, options),
    };
  }
}

function describe<Source extends SearchSource>(
  views: Views,
  source: Source | null,
): OpenRanking<Source> {
  return { views, target: searchTarget(views), visibleCount: countVisible(views), source };
}
