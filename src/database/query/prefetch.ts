// A first stage of a query, which then searches only the first rows of another ranking.

import type { JsonObject } from '../../common/types.js';
import type { FilterNode } from '../../filter/filter-node.js';
import type { Collection } from '../collection/collection.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { PrefetchRequest } from './query-api.js';
import {
  digestRequest,
  planRanking,
  type Ranking,
  type RankingContext,
  type SealedRanking,
  sealRanking,
  unsealRanking,
} from './ranking.js';

/** A ranking whose first `limit` rows are searched. */
export interface Prefetch {
  readonly ranking: Ranking;
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
  readonly limit: number;
  /** Of the request, by which a cursor recognizes it. */
  readonly digest: string;
}

/** What a cursor keeps of it. */
export type SealedPrefetch = Omit<Prefetch, 'ranking' | 'filterNode'> & {
  readonly ranking: SealedRanking;
};

/** Where it is in the body of a query. */
const PATH = ['prefetch'];
const FILTER_PATH = [...PATH, 'filter'];

/** Throws what `planRanking` throws. */
export function planPrefetch(
  view: SnapshotView,
  request: PrefetchRequest,
  context: RankingContext,
): Prefetch {
  const { filter = null, limit } = request;
  return {
    ranking: planRanking(view, request, context, PATH),
    filter,
    filterNode: filter && context.parseFilter(filter, FILTER_PATH),
    limit,
    digest: digestRequest(request),
  };
}

export function sealPrefetch(
  { filterNode: _filterNode, ...prefetch }: Prefetch,
  collection: Collection,
): SealedPrefetch {
  return { ...prefetch, ranking: sealRanking(prefetch.ranking, collection) };
}

/** Throws what `unsealRanking` throws. */
export function unsealPrefetch(
  sealed: SealedPrefetch,
  collection: Collection,
  context: RankingContext,
): Prefetch {
  const { filter } = sealed;
  return {
    ...sealed,
    ranking: unsealRanking(sealed.ranking, collection, context, PATH),
    filterNode: filter && context.parseFilter(filter, FILTER_PATH),
  };
}
