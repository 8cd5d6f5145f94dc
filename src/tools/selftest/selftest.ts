// Runs the contract on this machine with every engine that starts, created with threads as the service does. Engines
// that do not start are reported as skipped, with the reason.

import { type Logger, silentLogger } from '../../common/logger.js';
import { createEngine } from '../../engine/choose-engine.js';
import { ENGINE_NAMES, type Engine, type EngineName } from '../../engine/core/engine.js';
import type { CudaEngine } from '../../engine/cuda/cuda-engine.js';
import { ProbeError } from '../../engine/probe.js';
import { loadKernels } from '../../engine/simd/simd-kernels.js';
import type { TensorEngine } from '../../engine/tensor/tensor-engine.js';
import { createThreadPool, type WorkerPool } from '../../platform/pool.js';
import { CONTRACT } from './contract.js';
import type { ContractCase } from './contract-case.js';
import { type CodeChoice, withCodes } from './encoding-engine.js';
import { type CaseResult, runContract } from './run-contract.js';

interface SelftestOptions {
  /** The engines to check, all of which must start; null for all that start. */
  readonly engines: readonly EngineName[] | null;
  readonly seed: number;
  /** Run only cases whose names contain this; null for all. */
  readonly only: string | null;
  /** Whether to check the simd engine with every instruction set of the processor, not only with the fastest. */
  readonly allTargets: boolean;
  /** Number of worker threads; null for one per core. */
  readonly threadCount: number | null;
  readonly onStart: (label: string, name: string, place: number, count: number) => void;
  readonly onResult: (result: CaseResult) => void;
  /** Overridden by tests. */
  readonly create?: typeof createEngine;
}

export interface EngineReport {
  readonly engine: EngineName;
  /** The engine and its configuration. */
  readonly label: string;
  readonly status: 'passed' | 'failed' | 'skipped';
  /** What the engine runs on, or why it did not start. */
  readonly facts: string;
  /** Number of searches that the fallback answered at least partly; null for engines without one. */
  readonly fallbackCount: number | null;
  /** Empty if the engine did not start. */
  readonly cases: readonly CaseResult[];
  readonly seconds: number;
}

export interface SelftestReport {
  readonly engines: readonly EngineReport[];
  readonly passed: boolean;
  /** Whether an engine hangs, so that the process must be terminated. */
  readonly hangs: boolean;
}

/** An engine and its configuration. */
interface Subject {
  readonly engine: EngineName;
  readonly label: string;
  readonly simdTarget: string | null;
  /** Which codes blocks have; none for engines that make none. */
  readonly codes: CodeChoice | 'none';
}

interface Outcome {
  readonly report: EngineReport;
  readonly hangs: boolean;
  /** Whether the engine makes codes. */
  readonly encodes: boolean;
}

/** The cases whose names contain the text. */
export function chooseCases(only: string | null): ContractCase[] {
  return CONTRACT.filter(({ name }) => only === null || name.includes(only));
}

export async function runSelftest(options: SelftestOptions): Promise<SelftestReport> {
  const engines: EngineReport[] = [];
  let hangs = false;
  for (const engine of options.engines ?? ENGINE_NAMES) {
    const first = { engine, label: engine, simdTarget: null, codes: 'all' } as const;
    const outcome = await runSubject(first, options);
    engines.push(outcome.report);
    hangs ||= outcome.hangs;
    if (outcome.hangs || !outcome.encodes) continue;
    for (const subject of listOthers(first, options)) {
      const other = await runSubject(subject, options);
      engines.push(other.report);
      hangs ||= other.hangs;
    }
  }
  return { engines, hangs, passed: engines.every(({ status }) => status !== 'failed') };
}

/** The other configurations of a started engine that makes codes. */
function listOthers(first: Subject, { allTargets }: SelftestOptions): Subject[] {
  const others: Subject[] = [
    { ...first, label: `${first.engine}, no codes`, codes: 'none' },
    { ...first, label: `${first.engine}, no coarse codes`, codes: 'tiles' },
  ];
  if (first.engine !== 'simd' || !allTargets) return others;
  const targets = loadKernels().targets().slice(1);
  return [
    ...others,
    ...targets.map((simdTarget) => ({ ...first, label: `simd, ${simdTarget}`, simdTarget })),
  ];
}

async function runSubject(subject: Subject, options: SelftestOptions): Promise<Outcome> {
  const { engine: name, label, codes } = subject;
  const { seed, only, threadCount, onStart, onResult } = options;
  const startedAt = performance.now();
  const log = createReportLog();
  const pool = createThreadPool({
    ...(threadCount !== null && { threadCount }),
  });
  let hangs = false;
  let engine: Engine | null = null;
  try {
    const chosen = await start(subject, pool, log.logger, options.create ?? createEngine);
    engine = chosen.engine;
    const run = await runContract({
      engine: codes === 'none' ? engine : withCodes(engine, codes),
      name,
      seed,
      cases: chooseCases(only),
      takeReports: log.take,
      // An engine may use its fallback for blocks without codes.
      ...(codes !== 'none' && { countFallbacks: () => countFallbacks(chosen.engine) ?? 0 }),
      onStart: (caseName, place, count) => onStart(label, caseName, place, count),
      onResult,
    });
    hangs = run.hangs;
    const failed = run.results.some(({ status }) => status !== 'passed');
    const report: EngineReport = {
      engine: name,
      label,
      status: failed ? 'failed' : 'passed',
      facts: chosen.facts,
      fallbackCount: countFallbacks(engine),
      cases: run.results,
      seconds: secondsSince(startedAt),
    };
    return { report, hangs, encodes: engine.rowEncoder !== null };
  } catch (error) {
    // Engines that were not requested may be missing, but an engine that starts must answer correctly.
    const skipped = options.engines === null && !(error instanceof ProbeError);
    const report: EngineReport = {
      engine: name,
      label,
      status: skipped ? 'skipped' : 'failed',
      facts: error instanceof Error ? error.message : String(error),
      fallbackCount: null,
      cases: [],
      seconds: secondsSince(startedAt),
    };
    return { report, hangs, encodes: false };
  } finally {
    // Closing waits for running work, which never ends in an engine that hangs.
    if (!hangs) {
      await engine?.close();
      await pool.close();
    }
  }
}

/** Rejects with the reason if the engine does not start. */
async function start(
  { engine: requested, simdTarget }: Subject,
  pool: WorkerPool,
  logger: Logger,
  create: typeof createEngine,
): Promise<{ engine: Engine; facts: string }> {
  const { engine, reason } = await create({ requested, pool, simdTarget, logger });
  if (engine.name !== requested) {
    await engine.close();
    throw new Error(`the ${engine.name} engine started instead: ${reason}`);
  }
  return { engine, facts: reason.replace(/^requested by name(: )?/, '') || 'plain TypeScript' };
}

type Counting = Partial<Pick<TensorEngine, 'fallbackCount'> & Pick<CudaEngine, 'stats'>>;

/** Reads the count of fallbacks, which the tensor and cuda engines keep differently. */
function countFallbacks(engine: Engine): number | null {
  const { fallbackCount, stats }: Counting = engine as Counting & Engine;
  return fallbackCount ?? stats?.call(engine).fallbackQueryCount ?? null;
}

/** Collects the errors that an engine logs, for example when its thread failed and its fallback answers. */
function createReportLog(): { logger: Logger; take: () => string[] } {
  const reports: string[] = [];
  const error = (details: object, message: string) => {
    const cause = 'error' in details ? ` (${String(details.error)})` : '';
    reports.push(`${message}${cause}`);
  };
  return { logger: { ...silentLogger, error }, take: () => reports.splice(0) };
}

function secondsSince(startedAt: number): number {
  return (performance.now() - startedAt) / 1000;
}
