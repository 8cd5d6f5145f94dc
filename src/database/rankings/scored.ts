// Rankings that score every row by its vectors. They rank the rows that have the vector, and the nodes
// of a cluster share their searches.

import { field, validationError } from '../../common/errors.js';
import { bucketOf, countsBefore, type RankKey, sortRankKeys } from '../../common/rank-key.js';
import type { Metric } from '../../common/types.js';
import type { Engine, SearchHits } from '../../engine/core/engine.js';
import type { Collection } from '../collection/collection.js';
import type { FieldView } from '../collection/snapshot.js';
import type { SealedVectors } from '../search/peers.js';
import type { ReadServices } from '../search/read-services.js';
import {
  type EngineSearch,
  type LocalSearch,
  type SharedRows,
  searchWithPeers,
} from '../search/scattered-search.js';
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
  /** One or several vectors, row-major. */
  readonly vector: Float32Array;
  readonly metric: Metric;
  /** The name of the searched vector; '' for the unnamed one. */
  readonly using: string;
  readonly excludedIds: readonly string[];
  /** Null if the other members show it. */
  readonly origin: Origin;
}

/** A query whose views come from a ranking, so that they have vectors. */
export interface FieldQuery extends RowQuery {
  readonly views: readonly FieldView[];
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
    return { ...sealField(collection, this.#field), ...by, digest: digestOf(origin) };
  }

  async open(rows: PassingRows): Promise<OpenRanking> {
    const { searched } = rows;
    const { view, snapshot, services } = searched;
    const views = searched.viewsWith(await rows.views(), this.by.using);
    const mayBeShared = services.peers.valuesMin < Number.POSITIVE_INFINITY;
    const filters = mayBeShared ? rows.sharedFilters : null;
    const shared =
      filters && sharedRows({ collection: view.collection, snapshot, filters, views }, this.#field);
    return this.openRows(views, shared, searched);
  }

  /** Returns the function that searches on this node. */
  protected abstract localSearch(services: ReadServices, signal?: AbortSignal): LocalSearch;

  protected openRows(
    views: readonly FieldView[],
    shared: SharedRows | null,
    { services, signal }: PassingRows['searched'],
  ): OpenRanking {
    const local = this.localSearch(services, signal);
    const search = async (query: FieldQuery) => {
      const asked = this.toVectorQuery(query);
      const hits =
        shared &&
        (await searchWithPeers([{ query: asked, rows: shared }], local, services, signal));
      return (hits ?? (await local([asked])))[0]!;
    };
    return {
      views,
      search,
      countBefore: (some: readonly FieldView[], rankKeys) => countByRanking(search, some, rankKeys),
    };
  }

  protected toVectorQuery(query: FieldQuery): EngineSearch['query'] {
    const { vector, metric } = this.by;
    return { ...query, vector, metric };
  }

  get #field(): RankedField {
    const formula = this.scoring?.formula;
    return { kind: this.kind, using: this.by.using, ...(formula && { formula }) };
  }
}

/** The vector that a ranking compares, and its formula. */
type RankedField = Omit<SharedRows['ranking'], 'column'>;

/** The rows to score, in the form in which other nodes find them. */
export function sharedRows(rows: Omit<SharedRows, 'ranking'>, ranked: RankedField): SharedRows {
  return { ...rows, ranking: sealField(rows.collection, ranked) };
}

function sealField(collection: Collection, ranked: RankedField): SharedRows['ranking'] {
  const column = columnOf(collection, ranked.using);
  return { ...ranked, ...(column && { column }) };
}

/** The column of a vector in the segments; undefined if it equals the name. */
export function columnOf({ rows }: Collection, using: string): string | undefined {
  const column = rows.columnOf(using);
  return column === using ? undefined : column;
}

/** Whether a sealed ranking refers to the vector that now has its name. */
export function hasColumn(
  { rows }: Collection,
  { using, column }: Pick<SealedVectors, 'using' | 'column'>,
): boolean {
  return rows.columnOf(using) === (column ?? using);
}

/** Throws `cursor_expired` if the vector of a sealed ranking was dropped. */
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

/** Concatenates vectors of equal dimension, row-major. */
export function concatenate(vectors: readonly Float32Array[]): Float32Array {
  const { length } = vectors[0]!;
  const all = new Float32Array(vectors.length * length);
  for (const [i, vector] of vectors.entries()) all.set(vector, i * length);
  return all;
}

/** Rows per search when a ranking is read from its beginning. */
const RANKED_ROWS = 10_000;

/** Counts by reading the ranking from its beginning, for rankings without a faster way. */
async function countByRanking(
  search: (query: FieldQuery) => Promise<SearchHits>,
  views: readonly FieldView[],
  rankKeys: readonly RankKey[],
): Promise<Float64Array> {
  const { sorted, origins } = sortRankKeys(rankKeys);
  const counts = new Float64Array(rankKeys.length + 1);
  let after: RankKey | null = null;
  for (;;) {
    const found: SearchHits = await search({ views, k: RANKED_ROWS, after, scoreMin: null });
    let bucket = 0;
    for (const [i, score] of found.scores.entries()) {
      const { segment, metadata } = views[found.viewIndexes[i]!]!;
      const row = found.rows[i]!;
      bucket = bucketOf(sorted, score, metadata.ids, row);
      counts[bucket]!++;
      after = { score, id: segment.idBytes(row) };
    }
    const isBehindAll = bucket === rankKeys.length;
    if (isBehindAll || found.scores.length < RANKED_ROWS) return countsBefore(counts, origins);
  }
}
