// Cases through the engine named cuda, the way of a query of the service: blocks as the database cuts
// them, the worker thread, packing and merging. Answers are compared with brute force before timing.

import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { silentLogger } from '../../src/common/logger.js';
import { createEngine } from '../../src/engine/choose-engine.js';
import { type Engine, EngineAbsent } from '../../src/engine/core/engine.js';
import type { CudaEngine } from '../../src/engine/cuda/cuda-engine.js';
import { createThreadPool } from '../../src/platform/pool.js';
import type { Case } from '../engine/cases.js';
import { Truth } from '../engine/check.js';
import { createDataSet, type DataSet } from '../engine/data.js';
import { encodeData } from '../engine/encode.js';
import type { Parameters } from '../engine/options.js';
import { runCase } from '../engine/run-case.js';
import type { CaseShape } from './lines.js';
import { type EngineStep, type EngineStepCase, nameOf } from './plan.js';

const K = 10;
/** The pieces in which blocks come to a device are sent while the fallback answers. */
const UPLOAD_MS_MAX = 120_000;

export interface EngineLine extends CaseShape {
  readonly kind: 'engine';
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly queries_per_s: number;
  readonly rescored_per_query: number;
  /** Queries of the check and of the timing that the CPU answered, in whole or in part. */
  readonly fallback_queries: number;
}

export interface EngineStepOptions {
  /** Of the native addon, where it is another than the one that is built for GPUs. */
  readonly cudaAddonPath?: string;
  readonly onLine: (line: EngineLine) => void;
}

/** Returns why nothing was measured, where there is no device; rejects with WrongAnswer for a wrong one. */
export async function runEngineStep(
  step: EngineStep,
  { cudaAddonPath, onLine }: EngineStepOptions,
): Promise<string | null> {
  const pool = createThreadPool({ workerUrl: new URL('../../src/worker.js', import.meta.url) });
  const said: string[] = [];
  const say = (details: object, message: string) => {
    said.push(`${message} ${JSON.stringify(details)}`);
  };
  const logger = { ...silentLogger, warn: say, error: say };
  const addon = cudaAddonPath === undefined ? {} : { cudaAddonPath };
  try {
    const { engine } = await createEngine({ requested: 'cuda', pool, logger, ...addon });
    try {
      await runCases(engine, step, onLine);
    } finally {
      await engine.close();
    }
    return null;
  } catch (error) {
    if (error instanceof EngineAbsent) return error.message;
    throw error;
  } finally {
    for (const line of said) console.error(line);
    await pool.close();
  }
}

async function runCases(
  engine: Engine,
  step: EngineStep,
  onLine: EngineStepOptions['onLine'],
): Promise<void> {
  const parameters = parametersOf(step);
  const { data } = await encodeData(engine, createDataSet('wide', parameters));
  const truth = new Truth(data, parameters.checkedCount);
  await waitUntilResident(engine, data);
  for (const each of step.cases) {
    const before = countFallback(engine);
    const { timing, rescoredPerQuery } = await runCase(
      engine,
      toCase(step, each),
      data,
      truth,
      parameters,
    );
    onLine({
      kind: 'engine',
      rows: step.rowCount,
      dimension: step.dimension,
      queries: each.batchCount,
      k: K,
      filter_percent: each.filterPercent,
      p50_ms: timing.p50Ms,
      p99_ms: timing.p99Ms,
      queries_per_s: timing.queriesPerSecond,
      rescored_per_query: rescoredPerQuery,
      fallback_queries: countFallback(engine) - before,
    });
  }
}

function parametersOf({ rowCount, dimension, cases, isFull }: EngineStep): Parameters {
  const shape = { rowCount, dimension };
  return {
    data: { wide: shape, long: shape },
    blockRowsMax: isFull ? DEFAULT_LIMITS.segmentRowsMax : 1_500,
    queryCount: Math.max(128, ...cases.map(({ batchCount }) => batchCount)),
    checkedCount: isFull ? 4 : 1,
    roundQueriesMin: isFull ? 128 : 1,
    roundsMin: isFull ? 5 : 1,
    secondsMin: isFull ? 1 : 0,
    casesPerPeak: 1,
  };
}

function toCase(step: EngineStep, { batchCount, filterPercent }: EngineStepCase): Case {
  return {
    name: `${nameOf(step)}, batch of ${batchCount}, ${filterPercent} % pass`,
    data: 'wide',
    metric: 'cosine',
    batchCount,
    k: K,
    passShare: filterPercent === 100 ? null : filterPercent / 100,
    page: 1,
    baseline: null,
  };
}

/** Searches until the devices have every block, and rejects where they never do: figures would be the CPU's. */
async function waitUntilResident(engine: Engine, { parts, queries }: DataSet): Promise<void> {
  const query = { metric: 'cosine', k: K, views: parts, after: null, scoreMin: null } as const;
  const giveUpAt = performance.now() + UPLOAD_MS_MAX;
  for (;;) {
    const before = countFallback(engine);
    await engine.search([{ ...query, vector: queries[0]! }]);
    if (countFallback(engine) === before) return;
    if (performance.now() > giveUpAt) {
      throw new Error(`the device does not answer for all blocks within ${UPLOAD_MS_MAX / 1000} s`);
    }
  }
}

function countFallback(engine: Engine): number {
  return (engine as CudaEngine).stats().fallbackQueryCount;
}
