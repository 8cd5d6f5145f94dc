// The rows of a snapshot that a ranking ranks: those that pass filters, possibly restricted to chosen rows.
// Queries with the same filter and vector share their views, by which engines and caches recognize them.

import type { JsonObject } from '../../common/types.js';
import { allOf, type FilterNode } from '../../filter/filter-node.js';
import {
  amongRows,
  type ChosenRows,
  type FieldView,
  type SegmentView,
  type Snapshot,
  viewsOfField,
  withRows,
} from '../collection/snapshot.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { ReadServices } from '../search/read-services.js';

type Views = readonly SegmentView[];

/** A filter as JSON and as a tree; both are null for no filter. */
export interface Filter {
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
}

/** A snapshot that a request searches. */
export class SearchedSnapshot {
  readonly snapshot: Snapshot;
  readonly view: SnapshotView;
  readonly services: ReadServices;
  readonly signal: AbortSignal | undefined;
  readonly #passing = new Map<FilterNode | null, Promise<Views>>();
  readonly #viewsByName = new Map<Views, Map<string, readonly FieldView[]>>();

  constructor(
    view: SnapshotView,
    sequence: number,
    services: ReadServices,
    signal: AbortSignal | undefined,
  ) {
    this.snapshot = view.snapshot(sequence);
    this.view = view;
    this.services = services;
    this.signal = signal;
  }

  /** The views restricted to rows that pass all filters. */
  filter(filters: readonly Filter[]): Promise<Views> {
    const children = filters.flatMap(({ filterNode }) => filterNode ?? []);
    const node = children.length === 0 ? null : allOf(children);
    let passing = this.#passing.get(node);
    if (passing === undefined) {
      passing = this.services.filters.filter(this.snapshot.views, node, this.signal);
      this.#passing.set(node, passing);
    }
    return passing;
  }

  /**
   * The views restricted to rows with the dense vector or multi-vector of this name,
   * without views that become empty.
   */
  viewsWith(passing: Views, name: string): readonly FieldView[] {
    let known = this.#viewsByName.get(passing);
    if (known === undefined) {
      known = new Map();
      this.#viewsByName.set(passing, known);
    }
    let views = known.get(name);
    if (views === undefined) {
      views = withRows(viewsOfField(passing, name));
      known.set(name, views);
    }
    return views;
  }
}

export class PassingRows {
  readonly searched: SearchedSnapshot;
  readonly #filters: readonly Filter[];
  /** The only rows to rank; null for all passing rows. */
  readonly #chosen: ChosenRows | null;

  constructor(
    searched: SearchedSnapshot,
    filters: readonly Filter[],
    chosen: ChosenRows | null = null,
  ) {
    this.searched = searched;
    this.#filters = filters;
    this.#chosen = chosen;
  }

  /** The rows that also pass another filter. */
  passing(filter: Filter): PassingRows {
    return new PassingRows(this.searched, [...this.#filters, filter], this.#chosen);
  }

  /** The rows that are also among the chosen ones. */
  among(chosen: ChosenRows): PassingRows {
    return new PassingRows(this.searched, this.#filters, chosen);
  }

  /** One view per view of the snapshot. */
  async views(): Promise<Views> {
    const views = await this.searched.filter(this.#filters);
    return this.#chosen === null ? views : amongRows(views, this.#chosen);
  }

  /** The filters by which other nodes find the same rows; null if rows were chosen on this node. */
  get sharedFilters(): readonly JsonObject[] | null {
    if (this.#chosen !== null) return null;
    return this.#filters.flatMap(({ filter }) => (filter === null ? [] : [filter]));
  }
}
