// Where the rows of a ranking come from: the engine, or a search of its own. A source finds rows in the
// order (score descending, id bytes ascending), and counts those before a position.

import { comparePositions } from '../../common/row-positions.js';
import type { Position, SearchHits, SearchQuery } from '../../engine/core/engine.js';

export interface SearchSource {
  /** Rejects with `overloaded`. */
  search(query: SearchQuery): Promise<SearchHits>;
  /** The number of rows of the query's views that come before each position. Ignores its k, position and threshold. */
  countBefore(query: SearchQuery, positions: readonly Position[]): Promise<Float64Array>;
}

/** Rows of one search: a longer ranking is read in parts. */
const RANKED_ROWS = 10_000;

/** Counts by reading the ranking from its beginning: for sources that have no better way. */
export async function countByRanking(
  search: SearchSource['search'],
  query: SearchQuery,
  positions: readonly Position[],
): Promise<Float64Array> {
  const counts = new Float64Array(positions.length);
  const order = positions
    .map((_, i) => i)
    .sort((a, b) => comparePositions(positions[a]!, positions[b]!));
  let next = 0;
  let after: Position | null = null;
  for (let rankedCount = 0; next < order.length; ) {
    const found: SearchHits = await search({ ...query, k: RANKED_ROWS, after, scoreMin: null });
    const { scores, viewIndexes, rows } = found;
    for (const [i, score] of scores.entries()) {
      const position = { score, id: idAt(query, viewIndexes[i]!, rows[i]!) };
      for (
        ;
        next < order.length && comparePositions(positions[order[next]!]!, position) <= 0;
        next++
      ) {
        counts[order[next]!] = rankedCount;
      }
      rankedCount++;
      after = position;
    }
    if (scores.length === RANKED_ROWS) continue;
    for (; next < order.length; next++) counts[order[next]!] = rankedCount;
  }
  return counts;
}

function idAt({ views }: SearchQuery, viewIndex: number, row: number): Uint8Array {
  const { offsets, bytes } = views[viewIndex]!.block.ids;
  return bytes.subarray(offsets[row]!, offsets[row + 1]!);
}
