// Where the rows of a ranking come from: the engine, or a search of its own. A source finds rows in the
// order (score descending, id bytes ascending); parts of fusions also count those before a position.

import { countsBefore, placeOf, sortPositions } from '../../common/row-positions.js';
import type { Position, SearchHits, SearchQuery } from '../../engine/core/engine.js';

export interface SearchSource {
  /** Rejects with `overloaded`. */
  search(query: SearchQuery): Promise<SearchHits>;
}

export interface RankedSource extends SearchSource {
  /** The number of rows of the query's views that come before each position. Ignores its k, position and threshold. */
  countBefore(query: SearchQuery, positions: readonly Position[]): Promise<Float64Array>;
}

/** Rows of one search: a longer ranking is read in parts. */
const RANKED_ROWS = 10_000;

/** A source that counts by reading the ranking from its beginning, having no better way. */
export function rankedSource(search: SearchSource['search']): RankedSource {
  return { search, countBefore: (query, positions) => countByRanking(search, query, positions) };
}

async function countByRanking(
  search: SearchSource['search'],
  query: SearchQuery,
  positions: readonly Position[],
): Promise<Float64Array> {
  const { sorted, origins } = sortPositions(positions);
  const counts = new Float64Array(positions.length + 1);
  let after: Position | null = null;
  for (;;) {
    const found: SearchHits = await search({ ...query, k: RANKED_ROWS, after, scoreMin: null });
    let place = 0;
    for (const [i, score] of found.scores.entries()) {
      const { ids } = query.views[found.viewIndexes[i]!]!.block;
      const row = found.rows[i]!;
      place = placeOf(sorted, score, ids, row);
      counts[place]!++;
      after = { score, id: ids.bytes.subarray(ids.offsets[row]!, ids.offsets[row + 1]!) };
    }
    const isBehindAll = place === positions.length;
    if (isBehindAll || found.scores.length < RANKED_ROWS) return countsBefore(counts, origins);
  }
}
