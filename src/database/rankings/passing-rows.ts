// The rows of a snapshot that a ranking chooses from: those that pass filters, and maybe only some of them. Queries with
// the same filter and vector share their views, by which engines and caches recognize them.

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

/** Both null for none. */
export interface Filter {
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
}

/** A snapshot that is searched for a request. */
export class SearchedSnapshot {
  readonly snapshot: Snapshot;
  readonly view: SnapshotView;
  readonly services: ReadServices;
  readonly signal: AbortSignal | undefined;
  readonly #passing = new Map<FilterNode | null, Promise<Views>>();
  readonly #having = new WeakMap<Views, Map<string, readonly FieldView[]>>();

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

  /** The views with only the rows that pass the filters. */
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

  /** Those of the views that have the dense vector or multi-vector of the name, with only such rows. */
  having(passing: Views, name: string): readonly FieldView[] {
    let known = this.#having.get(passing);
    if (known === undefined) {
      known = new Map();
      this.#having.set(passing, known);
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
  /** The only rows to choose from; null for all that pass. */
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

  /** Those that pass another filter, too. */
  passing(filter: Filter): PassingRows {
    return new PassingRows(this.searched, [...this.#filters, filter], this.#chosen);
  }

  /** Those that are among these, too. */
  among(chosen: ChosenRows): PassingRows {
    return new PassingRows(this.searched, this.#filters, chosen);
  }

  /** One a view of the snapshot. */
  async views(): Promise<Views> {
    const views = await this.searched.filter(this.#filters);
    return this.#chosen === null ? views : amongRows(views, this.#chosen);
  }

  /** By which other nodes find the same rows; null where they were chosen here. */
  get sharedFilters(): readonly JsonObject[] | null {
    if (this.#chosen !== null) return null;
    return this.#filters.flatMap(({ filter }) => (filter === null ? [] : [filter]));
  }
}
