// The probe search: a small search with a known answer, which shows whether an engine works on this machine.
// The answer was computed by the reference engine; test/engine/probe.test.ts compares the two.

import { METRICS, type Metric, type RowEncoder, type VectorBlock } from '../common/types.js';
import type { Engine, SearchHits, SearchQuery } from './core/engine.js';

/** Thrown when an engine starts but does not answer the probe search correctly. */
export class ProbeError extends Error {}

const DIMENSION = 8;
/** More rows than fit into one chunk. */
const ROW_COUNT = 16_500;
const ID_LENGTH = 5;
const HIT_COUNT = 10;

/** The rows nearest to row 0, best first, with their canonical scores. */
const ANSWERS: Readonly<
  Record<Exclude<Metric, 'hamming'>, { rows: readonly number[]; scores: readonly number[] }>
> = {
  cosine: {
    rows: [0, 5473, 10946, 16419, 5150, 10623, 16096, 4827, 10300, 15773],
    scores: [
      1, 0.9999999692530908, 0.9999998769743801, 0.9999997231530879, 0.9999996609049872,
      0.9999994257929501, 0.9999991290349348, 0.9999990210400721, 0.9999986429726414,
      0.999998203128219,
    ],
  },
  dot: {
    rows: [0, 5473, 10946, 16419, 5150, 10623, 16096, 4827, 10300, 15773],
    scores: [
      2.8050383945499675, 2.8048249369295206, 2.804611353456494, 2.8043977981249384,
      2.804329595715842, 2.8041160188861056, 2.803902435413079, 2.8038341419361643,
      2.803620593247942, 2.8034071008426906,
    ],
  },
  jaccard: {
    rows: [0, 5473, 10946, 16419, 5150, 10623, 16096, 4827, 10300, 15773],
    scores: [
      1, 0.9999999327195269, 0.9999997308054774, 0.9999993942663947, 0.9999992581143137,
      0.9999987438005828, 0.9999980947087218, 0.9999978585295809, 0.9999970317134169,
      0.9999960699451711,
    ],
  },
  euclidean: {
    rows: [0, 5473, 10946, 16419, 5150, 10623, 16096, 4827, 10300, 15773],
    scores: [
      0, -1.887099614350518e-7, -7.549862175437738e-7, -1.6987190178952005e-6,
      -2.0804935303431193e-6, -3.5225333334665265e-6, -5.342261033547402e-6, -6.004340733056779e-6,
      -8.321974092950768e-6, -1.1017586913908417e-5,
    ],
  },
};

/** Closes the engine and throws a ProbeError unless it answers the probe search exactly. */
export async function probe(engine: Engine): Promise<void> {
  try {
    const block = createProbeBlock(engine.rowEncoder);
    const hits = await engine.search(createProbeQueries(block));
    engine.unload(block.key);
    if (!METRICS.every((metric, index) => isAnswer(hits[index]!, metric))) {
      throw new ProbeError('its answer to the probe search is wrong');
    }
  } catch (error) {
    await engine.close();
    if (error instanceof ProbeError) throw error;
    throw new ProbeError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** One query for each of METRICS. */
function createProbeQueries(block: VectorBlock): SearchQuery[] {
  const views = [{ block, rowCount: block.rowCount, rows: null }];
  const vector = block.values.slice(0, block.dimension);
  return METRICS.map((metric) => ({
    ...{ vector, metric, k: HIT_COUNT, views, after: null, scoreMin: null },
  }));
}

function isAnswer({ rows, scores }: SearchHits, metric: Metric): boolean {
  // The scores of both metrics are negated squares of the distance.
  const answer = ANSWERS[metric === 'hamming' ? 'euclidean' : metric];
  return (
    rows.length === HIT_COUNT &&
    rows.every((row, index) => row === answer.rows[index]) &&
    scores.every((score, index) => Object.is(score, answer.scores[index]))
  );
}

/** Rows of values between -1 and 1 that float32 represents exactly. The ids are the row numbers. */
function createProbeBlock(encoder: RowEncoder | null): VectorBlock {
  const values = new Float32Array(new SharedArrayBuffer(ROW_COUNT * DIMENSION * 4));
  for (let i = 0; i < values.length; i++) {
    values[i] = (Math.imul(i, 2_654_435_761) >>> 8) / 2 ** 23 - 1;
  }
  const offsets = new Int32Array(new SharedArrayBuffer((ROW_COUNT + 1) * 4));
  const bytes = new Uint8Array(new SharedArrayBuffer(ROW_COUNT * ID_LENGTH));
  for (let row = 0; row < ROW_COUNT; row++) {
    for (let digit = ID_LENGTH - 1, rest = row; digit >= 0; digit--) {
      bytes[row * ID_LENGTH + digit] = 48 + (rest % 10);
      rest = Math.floor(rest / 10);
    }
    offsets[row + 1] = (row + 1) * ID_LENGTH;
  }
  const dimension = DIMENSION;
  const codes = encoder?.allocate(ROW_COUNT, dimension) ?? null;
  if (codes !== null) encoder?.encode({ values, dimension, from: 0, to: ROW_COUNT, codes });
  const ids = { offsets, bytes };
  return { key: 'engine probe', dimension, rowCount: ROW_COUNT, values, ids, codes };
}
