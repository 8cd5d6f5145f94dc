// The contract on the machine where it stands: every engine that starts here, as the service starts
// it, with threads and all. Whatever cannot start is said to be skipped, and why.

import { type Logger, silentLogger } from '../../common/logger.js';
import { createEngine, ProbeError } from '../../engine/choose-engine.js';
import { ENGINE_NAMES, type Engine, type EngineName } from '../../engine/core/engine.js';
import type { CudaEngine } from '../../engine/cuda/cuda-engine.js';
import { loadKernels } from '../../engine/simd/simd-kernels.js';
import type { TensorEngine } from '../../engine/tensor/tensor-engine.js';
import { createThreadPool, type WorkerPool } from '../../platform/pool.js';
import { CONTRACT, type ContractCase } from './contract.js';
import { withCodes } from './encoding-engine.js';
import { type CaseResult, runContract } from './run-contract.js';

export interface SelftestOptions {
  /** Those that have to start; null for every one that can. */
  readonly engines: readonly EngineName[] | null;
  readonly seed: number;
  /** Only cases whose names contain this; null for all. */
  readonly only: string | null;
  /** Whether the simd engine is checked with every instruction set of the processor, not only with the best. */
  readonly allTargets: boolean;
  /** Worker threads; null for one a core. */
  readonly threadCount: number | null;
  readonly onStart: (label: string, name: string, place: number, count: number) => void;
  readonly onResult: (result: CaseResult) => void;
  /** For tests. */
  readonly create?: typeof createEngine;
}

export interface EngineReport {
  readonly engine: EngineName;
  /** The engine, and how it was used where that makes a difference. */
  readonly label: string;
  readonly status: 'passed' | 'failed' | 'skipped';
  /** What the engine runs on, or why it does not run. */
  readonly facts: string;
  /** Searches, or parts of them, that another engine answered; null where there is no other. */
  readonly fallbackCount: number | null;
  /** None where the engine did not start. */
  readonly cases: readonly CaseResult[];
  readonly seconds: number;
}

export interface SelftestReport {
  readonly engines: readonly EngineReport[];
  readonly passed: boolean;
  /** Whether an engine hangs: the process has to be ended. */
  readonly hangs: boolean;
}

/** One way to use an engine. */
interface Subject {
  readonly engine: EngineName;
  readonly label: string;
  readonly simdTarget: string | null;
  /** Whether blocks come with the codes that the engine asks for: a full segment has them, a young one may not. */
  readonly hasCodes: boolean;
}

interface Outcome {
  readonly report: EngineReport;
  readonly hangs: boolean;
  /** Whether the engine makes codes. */
  readonly encodes: boolean;
}

/** The cases that a text chooses. */
export function chooseCases(only: string | null): ContractCase[] {
  return CONTRACT.filter(({ name }) => only === null || name.includes(only));
}

export async function runSelftest(options: SelftestOptions): Promise<SelftestReport> {
  const engines: EngineReport[] = [];
  let hangs = false;
  for (const engine of options.engines ?? ENGINE_NAMES) {
    const first = { engine, label: engine, simdTarget: null, hasCodes: true };
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

/** The other ways to use an engine that makes codes and has started. */
function listOthers(first: Subject, { allTargets }: SelftestOptions): Subject[] {
  const others = [{ ...first, label: `${first.engine}, no codes`, hasCodes: false }];
  if (first.engine !== 'simd' || !allTargets) return others;
  const targets = loadKernels().targets().slice(1);
  return [
    ...others,
    ...targets.map((simdTarget) => ({ ...first, label: `simd, ${simdTarget}`, simdTarget })),
  ];
}

async function runSubject(subject: Subject, options: SelftestOptions): Promise<Outcome> {
  const { engine: name, label, hasCodes } = subject;
  const { seed, only, threadCount, onStart, onResult } = options;
  const startedAt = performance.now();
  const log = createReportLog();
  const pool = createThreadPool({
    workerUrl: new URL('../../worker.js', import.meta.url),
    ...(threadCount !== null && { threadCount }),
  });
  let hangs = false;
  let engine: Engine | null = null;
  try {
    const chosen = await start(subject, pool, log.logger, options.create ?? createEngine);
    engine = chosen.engine;
    const run = await runContract({
      engine: hasCodes ? withCodes(engine) : engine,
      name,
      seed,
      cases: chooseCases(only),
      takeReports: log.take,
      // Blocks without codes may be nothing that the engine searches by itself.
      ...(hasCodes && { countFallbacks: () => countFallbacks(chosen.engine) ?? 0 }),
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
    // An engine that nobody asked for need not start; one that starts and lies is no reason to go on.
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
    // Closing waits for work under way, and a hanging engine never ends its own.
    if (!hangs) {
      await engine?.close();
      await pool.close();
    }
  }
}

/** Rejects with the reason where the engine does not start. */
async function start(
  { engine: requested, simdTarget }: Subject,
  pool: WorkerPool,
  logger: Logger,
  create: typeof createEngine,
): Promise<{ engine: Engine; facts: string }> {
  const { engine, reason } = await create({ requested, pool, simdTarget, logger });
  if (engine.name !== requested) {
    await engine.close();
    throw new Error(`the ${engine.name} engine started in its place: ${reason}`);
  }
  return { engine, facts: reason.replace(/^asked for by name(: )?/, '') || 'plain TypeScript' };
}

type Counting = Partial<Pick<TensorEngine, 'fallbackCount'> & Pick<CudaEngine, 'stats'>>;

/** As the engines that have a fallback count it, each in its own way. */
function countFallbacks(engine: Engine): number | null {
  const { fallbackCount, stats }: Counting = engine as Counting & Engine;
  return fallbackCount ?? stats?.call(engine).fallbackQueryCount ?? null;
}

/** Errors that an engine reports: that its thread died, say, and that another engine answered instead. */
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
