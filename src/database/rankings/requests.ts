// Visits the requests of all rankings of a query.

import type { FieldPath } from '../../common/errors.js';
import type { QueryRequest, RankingRequest, TargetRequest } from '../api/query-api.js';

/** Maps the requests of all rankings: the query or the parts of its fusion, and those of its prefetch. */
export function mapRankings(
  request: QueryRequest,
  map: <Request extends RankingRequest>(ranking: Request, path: FieldPath) => Request,
): QueryRequest {
  const mapTarget = <Request extends TargetRequest>(target: Request, path: FieldPath): Request => {
    const { fusion } = target;
    if (fusion === undefined) return map(target, path);
    const parts = fusion.parts.map((part, i) => map(part, [...path, 'fusion', 'parts', i]));
    return { ...target, fusion: { ...fusion, parts } };
  };
  const mapped = mapTarget(request, []);
  const { prefetch } = request;
  return prefetch === undefined
    ? mapped
    : { ...mapped, prefetch: mapTarget(prefetch, ['prefetch']) };
}

/** The requests of all rankings of a query. */
export function rankingsOf(request: QueryRequest): readonly RankingRequest[] {
  const rankings: RankingRequest[] = [];
  mapRankings(request, (ranking) => {
    rankings.push(ranking);
    return ranking;
  });
  return rankings;
}
