// The ranking by MaxSim with multi-vectors.

import { type FieldPath, field, validationError } from '../../common/errors.js';
import { UNNAMED } from '../../common/vectors.js';
import { searchByMaxSim } from '../../engine/core/max-sim.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { SealedVectors } from '../search/peers.js';
import type { ReadServices } from '../search/read-services.js';
import type { LocalSearch } from '../search/scattered-search.js';
import { type RankingKind, tooManyVectors } from './ranking.js';
import { concatenate, ScoredRanking } from './scored.js';
import { missingVector, unsealVectors } from './vector.js';

class MultiRanking extends ScoredRanking {
  readonly kind = 'multi';

  override searcher(): string {
    return 'max_sim';
  }

  protected localSearch({ pool }: ReadServices, signal?: AbortSignal): LocalSearch {
    const options = signal ? { signal } : {};
    return (queries) => Promise.all(queries.map((query) => searchByMaxSim(pool, query, options)));
  }
}

export const multiKind: RankingKind = {
  kind: 'multi',
  check({ multiVector = [] }, { limits, locate }) {
    if (multiVector.length <= limits.queryVectorsMax) return [];
    return [{ location: locate('multi_vector'), ...tooManyVectors(multiVector.length, limits) }];
  },
  plan({ id, multiVector, using = UNNAMED, metric: requested }, { view, limits }, path) {
    const { collection } = view;
    const shape = collection.multiShapeOf(using);
    if (shape === undefined) {
      const found = using === UNNAMED ? 'none' : JSON.stringify(using);
      const detail = `Expected the name of a multi-vector in "using", by which multi_vector searches; found ${found}.`;
      const location = field(...path, 'using');
      throw validationError([{ location, code: 'invalid_request', detail }]);
    }
    const metric = requested ?? shape.metric;
    if (metric !== 'cosine' && metric !== 'dot') {
      const detail = `Expected cosine or dot for a multi-vector; found ${metric}.`;
      const location = field(...path, 'metric');
      throw validationError([{ location, code: 'invalid_request', detail }]);
    }
    const member = [...path, id === undefined ? 'multi_vector' : 'id'];
    const vectors = multiVector ?? storedMulti(view, id!, using, member);
    if (vectors.length > limits.queryVectorsMax) {
      const location = field(...member);
      throw validationError([{ location, ...tooManyVectors(vectors.length, limits) }]);
    }
    const searched = { dimension: shape.dimension, metric, using };
    for (const [i, vector] of vectors.entries()) {
      const location = field(...member, ...(id === undefined ? [i] : []));
      collection.checkQueryVector(vector, searched, location);
    }
    const excludedIds = id === undefined ? [] : [id];
    const origin = multiVector ?? null;
    return new MultiRanking({ vector: concatenate(vectors), using, metric, excludedIds, origin });
  },
  unseal(sealed, { view }) {
    return new MultiRanking(unsealVectors(sealed as SealedVectors, view));
  },
};

function storedMulti(
  view: SnapshotView,
  id: string,
  using: string,
  path: FieldPath,
): readonly Float32Array[] {
  const address = view.find(id);
  const found = address?.segment.vectorAt(address.row, using);
  if (found === undefined || !('dimension' in found)) {
    throw missingVector(view, { id, using: address ? using : null }, path);
  }
  const { dimension, values } = found;
  return Array.from({ length: values.length / dimension }, (_, i) =>
    values.subarray(i * dimension, (i + 1) * dimension),
  );
}
