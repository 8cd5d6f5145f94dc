// Another order over the nearest: by metadata, score or id.

import { resolvePath } from '../../common/metadata-path.js';
import type { Json, JsonObject, Metric } from '../../common/types.js';
import { publicScore } from '../../engine/core/engine.js';
import type { SortKey } from './query-api.js';
import type { Hit } from './search.js';

/** Stable: equal keys keep the order of scores. Rows without a comparable value come last, whatever the order. */
export function sortHits(hits: readonly Hit[], metric: Metric, sort: readonly SortKey[]): Hit[] {
  const isMetadataRead = sort.some(({ field }) => field !== 'score' && field !== 'id');
  const rows = hits.map((hit) => {
    const metadata = isMetadataRead
      ? (JSON.parse(hit.view.segment.metadata(hit.row)) as JsonObject)
      : {};
    const values = sort.map(({ field }): Json | undefined => {
      if (field === 'score') return publicScore(metric, hit.score);
      if (field === 'id') return hit.view.segment.id(hit.row);
      return resolvePath(metadata, field);
    });
    return { hit, values };
  });
  rows.sort((a, b) => {
    for (let i = 0; i < sort.length; i++) {
      const order = compareSortValues(a.values[i], b.values[i], sort[i]!.order);
      if (order !== 0) return order;
    }
    return 0;
  });
  return rows.map(({ hit }) => hit);
}

/** Numbers before strings before booleans before everything else. */
function sortRank(value: Json | undefined): number {
  if (typeof value === 'number') return 0;
  if (typeof value === 'string') return 1;
  if (typeof value === 'boolean') return 2;
  return 3;
}

function compareSortValues(
  a: Json | undefined,
  b: Json | undefined,
  order: 'asc' | 'desc',
): number {
  const rank = sortRank(a);
  if (rank !== sortRank(b)) return rank - sortRank(b);
  if (rank === 3) return 0;
  const ascending =
    rank === 1
      ? Buffer.compare(Buffer.from(a as string), Buffer.from(b as string))
      : Number(a) - Number(b);
  return order === 'asc' ? ascending : -ascending;
}
