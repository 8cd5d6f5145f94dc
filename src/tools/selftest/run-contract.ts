// Runs the cases of the contract on one engine and reports the result of each. Never rejects: errors of the engine are
// results.

import type { Engine } from '../../engine/core/engine.js';
import { CONTRACT } from './contract.js';
import { type ContractCase, createContext } from './contract-case.js';

type CaseStatus = 'passed' | 'failed' | 'not_run';

export interface CaseResult {
  readonly name: string;
  readonly status: CaseStatus;
  readonly seconds: number;
  /** The reason of a failure; null if the case passed. */
  readonly failure: string | null;
}

interface ContractRun {
  readonly results: readonly CaseResult[];
  /** Whether a case did not finish: the engine is still working and cannot be closed. */
  readonly hangs: boolean;
}

interface ContractOptions {
  readonly engine: Engine;
  /** The name that the engine must report. */
  readonly name: string;
  readonly seed: number;
  /** The whole contract by default. */
  readonly cases?: readonly ContractCase[];
  /** Time after which a case counts as hanging; later cases are then not run. */
  readonly caseMsMax?: number;
  /** Returns the errors that the engine has logged since the last call; they make a case fail. */
  readonly takeReports?: () => readonly string[];
  /** See `ContractContext`. */
  readonly countFallbacks?: () => number;
  readonly onStart?: (name: string, place: number, count: number) => void;
  readonly onResult?: (result: CaseResult) => void;
}

/** The slowest case takes half a minute with the slowest engine on one slow processor. */
const CASE_MS_MAX = 600_000;

class Hang extends Error {}

export async function runContract(options: ContractOptions): Promise<ContractRun> {
  const { cases = CONTRACT, onStart, onResult } = options;
  const results: CaseResult[] = [];
  let hangs = false;
  for (const [index, each] of cases.entries()) {
    if (hangs) {
      results.push({ name: each.name, status: 'not_run', seconds: 0, failure: null });
      continue;
    }
    onStart?.(each.name, index + 1, cases.length);
    const startedAt = performance.now();
    const error = await runCase(each, options);
    const seconds = (performance.now() - startedAt) / 1000;
    hangs = error instanceof Hang;
    const failure = error === null ? null : error.message;
    const status = error === null ? 'passed' : 'failed';
    results.push({ name: each.name, status, seconds, failure });
    onResult?.(results.at(-1)!);
  }
  return { results, hangs };
}

/** Returns null if the engine passes the case. */
async function runCase(each: ContractCase, options: ContractOptions): Promise<Error | null> {
  const {
    engine,
    name,
    seed,
    countFallbacks,
    caseMsMax = CASE_MS_MAX,
    takeReports = () => [],
  } = options;
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    const message = `did not end within ${caseMsMax / 1000} s`;
    timer = setTimeout(() => reject(new Hang(message)), caseMsMax);
  });
  let failure: Error | null = null;
  try {
    await Promise.race([each.run(createContext(engine, name, seed, countFallbacks)), tooLate]);
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
  } finally {
    clearTimeout(timer);
  }
  const reports = takeReports();
  if (reports.length === 0) return failure;
  const reported = `the engine reported: ${reports.join('; ')}`;
  if (failure === null) return new Error(`the answers are correct, but ${reported}`);
  failure.message += `\n${reported}`;
  return failure;
}
