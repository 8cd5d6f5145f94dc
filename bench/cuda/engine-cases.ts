// Cases through an engine for GPUs, on the path of a real query: blocks of the size that the database uses,
// the worker thread, packing and merging. Results are compared with brute force before timing.

import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { silentLogger } from '../../src/common/logger.js';
import { createEngine } from '../../src/engine/choose-engine.js';
import { type Engine, EngineUnavailable } from '../../src/engine/core/engine.js';
import type { CudaEngine } from '../../src/engine/cuda/cuda-engine.js';
import type { TensorEngine } from '../../src/engine/tensor/tensor-engine.js';
import { createThreadPool } from '../../src/platform/pool.js';
import type { Case } from '../engine/cases.js';
import { Truth } from '../engine/check.js';
import { createDataSet, type DataSet, encodeData } from '../engine/data.js';
import type { Parameters } from '../engine/options.js';
import { runCase } from '../engine/run-case.js';
import type { CaseShape } from './lines.js';
import { type EngineStep, type EngineStepCase, nameOf } from './plan.js';

const K = 10;
/** Timeout of the upload to the device, during which the fallback engine is used. */
const UPLOAD_MS_MAX = 120_000;

export type GpuEngineName = 'cuda' | 'tensorflow';

export interface EngineLine extends CaseShape {
  readonly kind: 'engine';
  readonly engine: GpuEngineName;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly queries_per_s: number;
  readonly rescored_per_query: number;
  /**
   * Queries (checked and timed) that the CPU executed, in whole or in part; searches of a block for
   * tensorflow.
   */
  readonly fallback_queries: number;
}

/** The vectors of a step, and the results that are expected. */
export interface EngineData {
  readonly parameters: Parameters;
  readonly data: DataSet;
  readonly truth: Truth;
}

export function createEngineData(step: EngineStep): EngineData {
  const parameters = parametersOf(step);
  const data = createDataSet('wide', parameters);
  return { parameters, data, truth: new Truth(data, parameters.checkedCount) };
}

export interface EngineStepOptions {
  /** cuda by default. */
  readonly engine?: GpuEngineName;
  /** Created for this step by default. */
  readonly source?: EngineData;
  /** Path of the native addon, if it is not the default one. */
  readonly cudaAddonPath?: string;
  readonly onLine: (line: EngineLine) => void;
}

/** Returns null, or why nothing was measured without a device. Rejects with WrongResult. */
export async function runEngineStep(
  step: EngineStep,
  { engine: requested = 'cuda', source, cudaAddonPath, onLine }: EngineStepOptions,
): Promise<string | null> {
  const pool = createThreadPool();
  const said: string[] = [];
  const say = (details: object, message: string) => {
    said.push(`${message} ${JSON.stringify(details)}`);
  };
  const logger = { ...silentLogger, warn: say, error: say };
  const addon = cudaAddonPath === undefined ? {} : { cudaAddonPath };
  try {
    const { engine } = await createEngine({ requested, pool, logger, ...addon });
    try {
      await runCases(engine, requested, step, source ?? createEngineData(step), onLine);
    } finally {
      await engine.close();
    }
    return null;
  } catch (error) {
    if (error instanceof EngineUnavailable) return error.message;
    throw error;
  } finally {
    for (const line of said) console.error(line);
    await pool.close();
  }
}

async function runCases(
  engine: Engine,
  name: GpuEngineName,
  step: EngineStep,
  { parameters, data: plain, truth }: EngineData,
  onLine: EngineStepOptions['onLine'],
): Promise<void> {
  const { data } = await encodeData(engine, plain);
  // The tensor engine uploads blocks within the first search.
  if (name === 'cuda') await waitUntilResident(engine, data);
  for (const each of step.cases) {
    const before = countFallback(engine, name);
    const { timing, rescoredPerQuery } = await runCase(
      engine,
      toCase(step, each),
      data,
      truth,
      parameters,
    );
    onLine({
      kind: 'engine',
      engine: name,
      // As the lines of the kernels that it is compared with.
      data: 'clustered',
      rows: step.rowCount,
      dimension: step.dimension,
      queries: each.batchCount,
      k: K,
      filter_percent: each.filterPercent,
      p50_ms: timing.p50Ms,
      p99_ms: timing.p99Ms,
      queries_per_s: timing.queriesPerSecond,
      rescored_per_query: rescoredPerQuery,
      fallback_queries: countFallback(engine, name) - before,
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
    name: `${nameOf(step)}, batch of ${batchCount}, filter ${filterPercent} %`,
    data: 'wide',
    metric: 'cosine',
    batchCount,
    k: K,
    passShare: filterPercent === 100 ? null : filterPercent / 100,
    page: 1,
    baseline: null,
  };
}

/** Searches until the devices hold every block; rejects after a timeout, since the CPU would be timed. */
async function waitUntilResident(engine: Engine, { views, queries }: DataSet): Promise<void> {
  const query = { metric: 'cosine', k: K, views, after: null, scoreMin: null } as const;
  const deadline = performance.now() + UPLOAD_MS_MAX;
  for (;;) {
    const before = countFallback(engine, 'cuda');
    await engine.search([{ ...query, vector: queries[0]! }]);
    if (countFallback(engine, 'cuda') === before) return;
    if (performance.now() > deadline) {
      throw new Error(`the device did not load all blocks within ${UPLOAD_MS_MAX / 1000} s`);
    }
  }
}

function countFallback(engine: Engine, name: GpuEngineName): number {
  if (name === 'cuda') return (engine as CudaEngine).stats().fallbackQueryCount;
  return (engine as TensorEngine).fallbackCount;
}
