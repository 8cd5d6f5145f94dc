// The report of `sagitta selftest`, as text or JSON: the machine, a table of engines, the hardware of each, and each
// failure with the command that reproduces it.

import { availableParallelism, cpus, totalmem } from 'node:os';
import { printable } from '../../common/printable.js';
import type { EngineReport, SelftestReport } from '../../tools/selftest/selftest.js';
import { renderFitting } from '../terminal/table.js';

export interface SelftestRun {
  readonly machine: Machine;
  readonly seed: number;
  readonly only: string | null;
  readonly report: SelftestReport;
}

export interface Machine {
  readonly version: string;
  readonly node: string;
  readonly platform: string;
  readonly cpu: string;
  readonly threads: number;
  readonly memoryBytes: number;
}

/** A failed comparison can print thousands of lines; the first ones are enough. */
const FAILURE_LINES_MAX = 12;

const COLUMNS = [
  { title: 'engine' },
  { title: 'result' },
  { title: 'cases', align: 'right' },
  { title: 'passed', align: 'right' },
  { title: 'failed', align: 'right' },
  { title: 'not run', align: 'right' },
  { title: 'seconds', align: 'right' },
] as const;

export function describeMachine(version: string): Machine {
  return {
    version,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    cpu: cpus()[0]?.model.trim() || 'unknown CPU',
    threads: availableParallelism(),
    memoryBytes: totalmem(),
  };
}

/** The report as text; lines of the table have at most `width` characters. */
export function renderReport({ machine, seed, only, report }: SelftestRun, width: number): string {
  const { engines } = report;
  const gigabytes = (machine.memoryBytes / 1e9).toFixed(0);
  const cases = only === null ? '' : `, cases with ${JSON.stringify(only)}`;
  const blocks = [
    [
      `Sagitta ${machine.version}, Node ${machine.node}, ${machine.platform}`,
      `${machine.threads} × ${machine.cpu}, ${gigabytes} GB`,
      `seed ${seed}${cases}`,
    ].join('\n'),
    renderFitting(COLUMNS, engines.map(rowOf), width),
    engines.map((engine) => printable(factsOf(engine))).join('\n'),
    ...engines.flatMap((engine) => failuresOf(engine, seed)),
    summaryOf(engines),
  ];
  return blocks.join('\n\n');
}

function rowOf(engine: EngineReport): string[] {
  const { label, status, cases, seconds } = engine;
  const result = status === 'failed' ? 'FAILED' : status;
  if (cases.length === 0) return [label, result, '', '', '', '', ''];
  const counts = [cases.length, ...Object.values(countsOf(engine))];
  return [label, result, ...counts.map(String), seconds.toFixed(1)];
}

function countsOf({ cases }: EngineReport) {
  const count = (wanted: string) => cases.filter(({ status }) => status === wanted).length;
  return { passed: count('passed'), failed: count('failed'), not_run: count('not_run') };
}

function factsOf({ label, status, facts, fallbackCount, cases }: EngineReport): string {
  if (status === 'skipped') return `${label}: skipped, ${facts}`;
  if (cases.length === 0) return `${label}: did not start, ${facts}`;
  const fallback =
    fallbackCount === null ? '' : `; the fallback engine executed ${fallbackCount} queries`;
  return `${label}: ${facts}${fallback}`;
}

function failuresOf({ engine, label, cases }: EngineReport, seed: number): string[] {
  return cases.flatMap(({ name, failure }) => {
    if (failure === null) return [];
    const lines = failure.split('\n').filter((line) => line.trim() !== '');
    const shown = lines.slice(0, FAILURE_LINES_MAX);
    if (shown.length < lines.length) shown.push(`and ${lines.length - shown.length} more lines`);
    return [
      [
        `${label}: ${name}`,
        ...shown.map((line) => `  ${printable(line)}`),
        `  $ sagitta selftest --engine ${engine} --seed ${seed} --case ${quote(name)}`,
      ].join('\n'),
    ];
  });
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function summaryOf(engines: readonly EngineReport[]): string {
  const labels = (wanted: EngineReport['status']) =>
    engines.filter(({ status }) => status === wanted).map(({ label }) => label);
  const [failed, passed, skipped] = [labels('failed'), labels('passed'), labels('skipped')];
  const parts = [
    ...(failed.length === 0 ? [] : [`Failed: ${failed.join('; ')}.`]),
    ...(passed.length === 0 ? [] : [`Passed: ${passed.join('; ')}.`]),
    ...(skipped.length === 0 ? [] : [`Skipped (not tested): ${skipped.join('; ')}.`]),
  ];
  return parts.join(' ');
}

/** The report for --json; times in seconds. */
export function toJson({ machine, seed, only, report }: SelftestRun): object {
  const { memoryBytes, ...rest } = machine;
  return {
    passed: report.passed,
    seed,
    only,
    machine: { ...rest, memory_bytes: memoryBytes },
    engines: report.engines.map((engine) => ({
      engine: engine.engine,
      label: engine.label,
      status: engine.status,
      facts: engine.facts,
      fallbacks: engine.fallbackCount,
      seconds: engine.seconds,
      ...countsOf(engine),
      cases: engine.cases,
    })),
  };
}
