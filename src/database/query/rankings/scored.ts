// What rankings that score every row with vectors have in common: which rows they have, and how the nodes of a cluster
// search them together.

import { field, validationError } from '../../../common/errors.js';
import { countsBefore, placeOf, sortPositions } from '../../../common/row-positions.js';
import type { Metric } from '../../../common/types.js';
import type { Engine, Position, SearchHits } from '../../../engine/core/engine.js';
import type { Formula } from '../../../engine/core/example-search.js';
import type { Collection } from '../../collection/collection.js';
import type { SegmentView, Snapshot } from '../../collection/snapshot.js';
import type { DatabaseServices } from '../../database-services.js';
import type { SealedVectors } from '../peers.js';
import {
  type EngineSearch,
  type SearchHere,
  type SharedRows,
  searchTogether,
} from '../scattered-search.js';
import type { PassingRows } from './passing-rows.js';
import {
  digestOf,
  type OpenRanking,
  type Origin,
  Ranking,
  type Repeats,
  type RowQuery,
} from './ranking.js';

export interface ScoredBy {
  /** Row-major where there are several. */
  readonly vector: Float32Array;
  readonly metric: Metric;
  /** The vector of rows that is searched; null for the unnamed one. */
  readonly using: string | null;
  readonly excludedIds: readonly string[];
  /** Null where it can be seen in the rest. */
  readonly origin: Origin;
}

export abstract class ScoredRanking extends Ranking {
  abstract override readonly kind: SealedVectors['kind'];
  readonly by: ScoredBy;

  constructor(by: ScoredBy) {
    super();
    this.by = by;
  }

  override get excludedIds(): readonly string[] {
    return this.by.excludedIds;
  }

  get repeats(): Repeats {
    const { metric, using, origin, vector, excludedIds } = this.by;
    const isOrigin = (sent: object) => digestOf(sent) === origin;
    return {
      ...(origin === null && {
        vector: (sent) => sameElements(sent, vector),
        id: (sent) => sent === excludedIds[0],
      }),
      multiVector: isOrigin,
      recommend: isOrigin,
      discover: isOrigin,
      using: (sent) => sent === using,
      metric: (sent) => sent === metric,
    };
  }

  override searcher({ name }: Pick<Engine, 'name'>): string {
    return name;
  }

  seal(collection: Collection): SealedVectors {
    const { origin, ...by } = this.by;
    return { ...this.#sealedField(collection), ...by, digest: digestOf(origin) };
  }

  async open(rows: PassingRows): Promise<OpenRanking> {
    const { searched } = rows;
    const { view, snapshot } = searched;
    const field = { using: this.by.using, isMulti: this.kind === 'multi' };
    const views = searched.having(await rows.views(), field);
    const filters = rows.sharedFilters;
    const ranking = this.#sealedField(view.collection);
    const shared = filters && { collection: view.collection, snapshot, filters, views, ranking };
    return this.openRows(views, shared, searched);
  }

  /** Searches of this node for the ranking. */
  protected abstract searchHere(services: DatabaseServices, signal?: AbortSignal): SearchHere;

  protected openRows(
    views: readonly SegmentView[],
    shared: SharedRows | null,
    { services, signal }: PassingRows['searched'],
  ): OpenRanking {
    const here = this.searchHere(services, signal);
    const search = async (query: RowQuery) => {
      const asked = this.asked(query);
      const together =
        shared && (await searchTogether([{ query: asked, rows: shared }], here, services, signal));
      return (together ?? (await here([asked])))[0]!;
    };
    return {
      views,
      search,
      countBefore: (some, positions) => countByRanking(search, some, positions),
    };
  }

  protected asked(query: RowQuery): EngineSearch['query'] {
    const { vector, metric } = this.by;
    return { ...query, vector, metric };
  }

  #sealedField(collection: Collection): SharedRows['ranking'] {
    return sealField(collection, this.kind, this.by.using, this.scoring?.formula ?? undefined);
  }
}

/** The rows of a snapshot that are scored, as other nodes find them. */
export function sharedRows(
  collection: Collection,
  snapshot: Snapshot,
  using: string | null,
  rows: Pick<SharedRows, 'filters' | 'views'>,
): SharedRows {
  return { collection, snapshot, ranking: sealField(collection, 'vector', using), ...rows };
}

function sealField(
  collection: Collection,
  kind: SealedVectors['kind'],
  using: string | null,
  formula?: Formula,
): SharedRows['ranking'] {
  const column = columnOf(collection, using);
  return { kind, using, ...(column && { column }), ...(formula && { formula }) };
}

/** Where the segments have a vector, if not under its name. */
export function columnOf({ rows }: Collection, using: string | null): string | undefined {
  const column = using === null ? undefined : rows.columnOf(using);
  return column === using ? undefined : column;
}

/** Whether a sealed ranking means the vector that has its name. */
export function hasColumn(
  { rows }: Collection,
  { using, column }: Pick<SealedVectors, 'using' | 'column'>,
): boolean {
  return using === null || rows.columnOf(using) === (column ?? using);
}

/** Throws `cursor_expired` unless the vector of a sealed ranking is still there. */
export function requireColumn(
  collection: Collection,
  sealed: Pick<SealedVectors, 'using' | 'column'>,
): void {
  if (hasColumn(collection, sealed)) return;
  const detail = `The vector "${sealed.using}" of collection "${collection.definition.id}" was dropped since the first page. Start again without a cursor.`;
  throw validationError([{ location: field('cursor'), code: 'cursor_expired', detail }]);
}

export function sameElements<Elements extends Float32Array | Uint32Array>(
  sent: Elements,
  sealed: Elements,
): boolean {
  return sent.length === sealed.length && sent.every((x, i) => x === sealed[i]);
}

/** Row-major. */
export function concatenate(vectors: readonly Float32Array[]): Float32Array {
  const { length } = vectors[0]!;
  const all = new Float32Array(vectors.length * length);
  for (const [i, vector] of vectors.entries()) all.set(vector, i * length);
  return all;
}

/** Rows of one search: a longer ranking is read in parts. */
const RANKED_ROWS = 10_000;

/** Counts by reading the ranking from its beginning, having no better way. */
async function countByRanking(
  search: OpenRanking['search'],
  views: readonly SegmentView[],
  positions: readonly Position[],
): Promise<Float64Array> {
  const { sorted, origins } = sortPositions(positions);
  const counts = new Float64Array(positions.length + 1);
  let after: Position | null = null;
  for (;;) {
    const found: SearchHits = await search({ views, k: RANKED_ROWS, after, scoreMin: null });
    let place = 0;
    for (const [i, score] of found.scores.entries()) {
      const { ids } = views[found.viewIndexes[i]!]!.block;
      const row = found.rows[i]!;
      place = placeOf(sorted, score, ids, row);
      counts[place]!++;
      after = { score, id: ids.bytes.subarray(ids.offsets[row]!, ids.offsets[row + 1]!) };
    }
    const isBehindAll = place === positions.length;
    if (isBehindAll || found.scores.length < RANKED_ROWS) return countsBefore(counts, origins);
  }
}
