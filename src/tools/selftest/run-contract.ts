// Runs the cases of the contract on one engine and says what became of each. Never rejects: whatever
// an engine does is a result.

import type { Engine } from '../../engine/core/engine.js';
import { CONTRACT, type ContractCase, createContext } from './contract.js';

export type CaseStatus = 'passed' | 'failed' | 'not_run';

export interface CaseResult {
  readonly name: string;
  readonly status: CaseStatus;
  readonly seconds: number;
  /** Why it failed; null unless it did. */
  readonly failure: string | null;
}

export interface ContractRun {
  readonly results: readonly CaseResult[];
  /** Whether a case did not end: the engine is still at work, and cannot be closed. */
  readonly hangs: boolean;
}

export interface ContractOptions {
  readonly engine: Engine;
  /** What the engine should be called. */
  readonly name: string;
  readonly seed: number;
  /** All of the contract unless told otherwise. */
  readonly cases?: readonly ContractCase[];
  /** A device that hangs is told from one that is slow by this time; the cases after it are not run. */
  readonly caseMsMax?: number;
  /** What the engine has reported since it was asked last: an answer behind a failure is no answer. */
  readonly takeReports?: () => readonly string[];
  /** See ContractContext. */
  readonly countFallbacks?: () => number;
  readonly onStart?: (name: string, place: number, count: number) => void;
  readonly onResult?: (result: CaseResult) => void;
}

/** The slowest case takes the slowest engine half a minute on one slow processor. */
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

/** Null when the engine keeps the case. */
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
  if (failure === null) return new Error(`the answers are true, but ${reported}`);
  failure.message += `\n${reported}`;
  return failure;
}
