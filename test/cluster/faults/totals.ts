// The totals of runs of faults, one line of JSON each, and their sum.

import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { type NodeFaultsReport, resumeTimes } from './node-faults.js';

export interface Totals {
  readonly date: string;
  readonly commit: string;
  readonly seed: number;
  /** Faults by kind. */
  readonly kinds: Readonly<Record<string, number>>;
  readonly faults: number;
  readonly acknowledged: number;
  readonly lost: number;
  readonly doubled: number;
  /** Other failures, such as a read that went back. */
  readonly otherwiseWrong: number;
  readonly resumeP50Ms: number;
  readonly resumeP99Ms: number;
  readonly seconds: number;
}

export function totalsOf(report: NodeFaultsReport, seed: number): Totals {
  const kinds: Record<string, number> = {};
  for (const { kind } of report.faults) kinds[kind] = (kinds[kind] ?? 0) + 1;
  const { p50, p99 } = resumeTimes(report.faults);
  const { acknowledged, lost, doubled, seconds, details } = report;
  return {
    date: new Date().toISOString(),
    commit: commitHere(),
    seed,
    kinds,
    faults: report.faults.length,
    acknowledged,
    lost,
    doubled,
    otherwiseWrong: lost + doubled > 0 ? 0 : details.length,
    resumeP50Ms: p50,
    resumeP99Ms: p99,
    seconds,
  };
}

export function appendTotals(file: string, totals: Totals): void {
  appendFileSync(file, `${JSON.stringify(totals)}\n`);
}

export function sumOf(file: string) {
  const runs = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Totals);
  const total = (name: 'faults' | 'acknowledged' | 'lost' | 'doubled' | 'otherwiseWrong') =>
    runs.reduce((sum, run) => sum + run[name], 0);
  const kinds: Record<string, number> = {};
  for (const run of runs) {
    for (const [kind, count] of Object.entries(run.kinds)) kinds[kind] = (kinds[kind] ?? 0) + count;
  }
  return {
    runs: runs.length,
    faults: total('faults'),
    acknowledged: total('acknowledged'),
    lost: total('lost'),
    doubled: total('doubled'),
    otherwiseWrong: total('otherwiseWrong'),
    resumeP99MsMax: Math.max(0, ...runs.map(({ resumeP99Ms }) => resumeP99Ms)),
    kinds,
  };
}

/** The commit of the running code, marked if files differ from it. */
function commitHere(): string {
  const { stdout, status } = spawnSync('git', ['describe', '--always', '--dirty', '--exclude=*'], {
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : 'unknown';
}
