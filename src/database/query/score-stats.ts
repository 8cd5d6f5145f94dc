// Statistics of the scores of all rows that pass the filter of a query, not only of its matches. Every row is scored
// canonically, and the scores are summarized like numbers in metadata.

import type { RowSet } from '../../common/bitmap.js';
import { KIND, type MetadataColumn } from '../../common/columns.js';
import { publicScore } from '../../engine/core/engine.js';
import { combineScores } from '../../engine/core/example-search.js';
import { scoreSelected } from '../../engine/core/row-scores.js';
import { EMPTY_COLUMN } from '../../filter/column-plans.js';
import type { WorkerPool } from '../../platform/pool.js';
import { findStats } from '../aggregate/aggregate.js';
import type { PathSource } from '../aggregate/path-columns.js';
import { defineSegmentsTask, runOverSegments } from '../aggregate/segment-tasks.js';
import type { HistogramRequest } from '../api/aggregate-api.js';
import type { ScoreStats } from '../api/query-api.js';
import { countVisible, type SegmentView, withRows } from '../collection/snapshot.js';
import type { Scoring } from '../rankings/ranking.js';
import { toFloat32 } from '../search/hits.js';

/** The scores to summarize. */
interface ScoredQuery extends Scoring {
  /** The least score, rounded to float32; null for all. */
  readonly scoreThreshold: number | null;
}

/** The vectors of a segment. */
interface VectorRows extends RowSet {
  readonly dimension: number;
  /** Row-major, at least [rowCount, dimension] float32. */
  readonly values: Float32Array;
}

/** A value costs about a quarter of a cell. */
const VALUES_PER_CELL = 4;

/** The scores of a segment as a column; rows below the threshold are missing. */
export const scoreRowsTask = defineSegmentsTask({
  name: 'query.scoreRows',
  countCells: ({ rowCount, dimension }: VectorRows) => (rowCount * dimension) / VALUES_PER_CELL,
  run: (rows, query: ScoredQuery) => scoreRows(rows, query),
});

/** The path of the column of scores. */
const SCORE = 'score';

/** Rejects like `runOverSegments`. */
export async function findScoreStats(
  pool: WorkerPool,
  views: readonly SegmentView[],
  query: ScoredQuery,
  histogram: HistogramRequest | undefined,
  signal: AbortSignal | undefined,
): Promise<ScoreStats> {
  const visible = withRows(views);
  const segments = visible.map(({ rowCount, rows, block }) => {
    const { dimension, values } = block!;
    return { rowCount, rows, dimension, values: values.subarray(0, rowCount * dimension) };
  });
  const columns = await runOverSegments(pool, scoreRowsTask, segments, query, signal);
  const targets = visible.map(({ rowCount, rows }, i) => {
    return { rowCount, rows, metadata: asMetadata(columns[i]!) };
  });
  const [{ path: _path, missingCount: _missingCount, ...stats }] = await findStats(
    pool,
    targets,
    [{ path: SCORE, histogram }],
    countVisible(visible),
    signal,
  );
  return stats;
}

function scoreRows(
  { dimension, values, rowCount, rows }: VectorRows,
  { vector, formula, metric, scoreThreshold }: ScoredQuery,
): MetadataColumn {
  const kinds = new Uint8Array(new SharedArrayBuffer(rowCount));
  const numbers = new Float64Array(new SharedArrayBuffer(rowCount * 8));
  const ofRow = new Float64Array(vector.length / dimension);
  const selection = { bitmap: rows, from: 0, to: rowCount };
  scoreSelected({ metric, dimension, values, vectors: vector }, selection, (found, scores) => {
    for (let i = 0; i < found.length; i++) {
      for (let v = 0; v < ofRow.length; v++) {
        ofRow[v] = publicScore(metric, scores[i * ofRow.length + v]!);
      }
      const shown = toFloat32(formula === null ? ofRow[0]! : combineScores(formula, ofRow));
      if (scoreThreshold !== null && shown < scoreThreshold) continue;
      kinds[found[i]!] = KIND.number;
      numbers[found[i]!] = shown;
    }
  });
  return { ...EMPTY_COLUMN, kinds, numbers };
}

function asMetadata(column: MetadataColumn): PathSource {
  return {
    columns: new Map([[SCORE, column]]),
    isComplete: true,
    json: { offsets: new Int32Array(0), bytes: new Uint8Array(0) },
  };
}
