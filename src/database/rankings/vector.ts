// The ranking by the score with one vector, which the engine searches.

import { type FieldPath, field, validationError } from '../../common/errors.js';
import { isDistance } from '../../common/types.js';
import { countBefore } from '../../engine/core/count-before.js';
import { publicScore } from '../../engine/core/engine.js';
import { vectorNotFound } from '../collection/collection.js';
import type { FieldView } from '../collection/snapshot.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { SealedVectors } from '../search/peers.js';
import type { ReadServices } from '../search/read-services.js';
import {
  countWithPeers,
  type LocalSearch,
  type SharedRows,
  searchByEngine,
} from '../search/scattered-search.js';
import type { PassingRows } from './passing-rows.js';
import type { OpenRanking, RankingContext, RankingKind, Scoring } from './ranking.js';
import { type FieldQuery, requireColumn, ScoredRanking } from './scored.js';

export class VectorRanking extends ScoredRanking {
  readonly kind = 'vector';

  override get scoring(): Scoring {
    const { vector, metric } = this.by;
    return { vector, metric, formula: null };
  }

  override get hasDistance(): boolean {
    return isDistance(this.by.metric);
  }

  override shownScore(score: number): number {
    return publicScore(this.by.metric, score);
  }

  protected localSearch({ scheduler }: ReadServices, signal?: AbortSignal): LocalSearch {
    return async (queries) => (await scheduler.search(queries, signal)).hits;
  }

  protected override openRows(
    views: readonly FieldView[],
    rows: SharedRows | null,
    { services, signal }: PassingRows['searched'],
  ): OpenRanking {
    const engineSearch = (query: FieldQuery) => ({ query: this.toVectorQuery(query), rows });
    return {
      views,
      engineSearch,
      async search(query: FieldQuery) {
        const { hits } = await searchByEngine([engineSearch(query)], services, signal);
        return hits[0]!;
      },
      countBefore: async (some: readonly FieldView[], rankKeys) => {
        const counted = this.toVectorQuery({ views: some, k: 1, after: null, scoreMin: null });
        const counts = rows && (await countWithPeers(rows, counted, rankKeys, services, signal));
        return counts ?? countBefore(services, counted, rankKeys, signal && { signal });
      },
    };
  }
}

export const vectorKind: RankingKind = {
  kind: 'vector',
  check({ embed, using }, { locate }) {
    if (embed === undefined || using === undefined) return [];
    const detail = 'Expected embed without using: texts become unnamed vectors.';
    return [{ location: locate('using'), code: 'invalid_request', detail }];
  },
  plan(request, { view }, path) {
    const { collection } = view;
    const { id } = request;
    const searched = collection.searchedVector(request, path);
    const { metric, using } = searched;
    const vector = request.vector ?? storedVector(view, id!, using, [...path, 'id']);
    const location = field(...path, id === undefined ? 'vector' : 'id');
    collection.checkQueryVector(vector, searched, location);
    const excludedIds = id === undefined ? [] : [id];
    return new VectorRanking({ vector, using, metric, excludedIds, origin: null });
  },
  unseal(sealed, { view }) {
    return new VectorRanking(unsealVectors(sealed as SealedVectors, view));
  },
};

/** Throws `cursor_expired`. */
export function unsealVectors(sealed: SealedVectors, { collection }: RankingContext['view']) {
  requireColumn(collection, sealed);
  const { vector, metric, using, excludedIds, digest: origin } = sealed;
  return { vector, metric, using, excludedIds, origin };
}

/** The stored vector of an id. Throws `vector_not_found` at the path if the id or its vector does not exist. */
export function storedVector(
  view: SnapshotView,
  id: string,
  using: string,
  path: FieldPath,
): Float32Array {
  const { collection } = view;
  const address = view.find(id);
  const values = address && collection.storedValues(address, using);
  if (values !== undefined) return values;
  throw missingVector(view, { id, using: address ? using : null }, path);
}

/** @param using the name of the missing vector; null if the id does not exist. */
export function missingVector(
  { collection }: SnapshotView,
  { id, using }: { readonly id: string; readonly using: string | null },
  path: FieldPath,
) {
  const { code, message: detail } = vectorNotFound(collection.definition.id, id, using);
  return validationError([{ location: field(...path), code, detail }]);
}
