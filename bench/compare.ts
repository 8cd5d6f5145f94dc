// Compares this checkout with another one: the cases of the engine bench, except later pages, and figures of REST,
// measured in turns so that both run on the same machine at the same time. Both checkouts must find the same rows
// and scores, must be built, and must share the interfaces that bench/compare uses.
//
//   node dist/bench/compare.js --before DIRECTORY           smoke parameters: only checks the bench
//   node dist/bench/compare.js --before DIRECTORY --full    the parameters of docs/performance.md
//   --only TEXT      only cases whose name contains TEXT, and the parts REST; REST, sentences; REST, large
//   --out FILE       also writes the table as Markdown

import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { EnginePair } from './compare/engine-pair.js';
import { runLargeRestPair, runRestPair } from './compare/rest-pair.js';
import type { Compared, TurnPlan } from './compare/turns.js';
import { type Case, listCases } from './engine/cases.js';
import { createDataSet } from './engine/data.js';
import { describeMachine, ROOT, THREAD_COUNT } from './engine/machine.js';
import { DATA_NAMES, type DataName, type Parameters, readOptions } from './engine/options.js';
import { findMissing } from './engine/vectors.js';

const SMOKE: TurnPlan = { turnCount: 1, turnSeconds: 0.01 };
const FULL: TurnPlan = { turnCount: 15, turnSeconds: 0.4 };

const { values: args } = parseArgs({
  options: {
    before: { type: 'string', default: ROOT },
    full: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    out: { type: 'string' },
  },
});
const roots = [resolve(args.before), ROOT] as const;
const plan = args.full ? FULL : SMOKE;
const { parameters: found } = readOptions(args.full ? ['--full'] : []);
/** Smoke runs need few queries, since both sides prepare them for every turn. */
const parameters: Parameters = { ...found, queryCount: args.full ? found.queryCount : 100 };

interface Row extends Compared {
  readonly name: string;
  readonly unit: 'ms' | '/s';
}

const rows: Row[] = [];
const missing: string[] = [];

const cases = listCases(parameters).filter(({ name, page }) => page === 1 && isWanted(name));
for (const name of DATA_NAMES) {
  const own = cases.filter(({ data }) => data === name);
  if (own.length > 0 && isPresent(name)) await runEngines(name, own);
}
await runRest('REST', 'clusters', runRestPair);
await runRest('REST, sentences', 'sentences', runRestPair);
await runRest('REST, large', 'large clusters', runLargeRestPair);
const report = render();
console.log(report);
if (args.out !== undefined) await writeFile(args.out, report);

async function runEngines(name: DataName, own: readonly Case[]): Promise<void> {
  const pair = await EnginePair.open(roots, name, parameters);
  try {
    for (const benchCase of own) {
      const unit = benchCase.batchCount === 1 ? 'ms' : '/s';
      add({ name: benchCase.name, unit, ...(await pair.run(benchCase, plan)) });
    }
  } finally {
    pair.close();
  }
}

async function runRest(part: string, name: DataName, run: typeof runRestPair): Promise<void> {
  if (!isWanted(part) || !isPresent(name)) return;
  const data = createDataSet(name, parameters);
  for (const result of await run(roots, data, plan)) {
    add({ ...result, name: `REST, ${name} ${data.rowCount} × ${data.dimension}: ${result.name}` });
  }
}

function isPresent(name: DataName): boolean {
  const reason = findMissing(parameters.data[name]);
  if (reason !== null) missing.push(`- ${name}: ${reason}`);
  return reason === null;
}

function isWanted(name: string): boolean {
  return name.includes(args.only);
}

function add(row: Row): void {
  rows.push(row);
  console.error(rowText(row));
}

function rowText({ name, unit, before, after, ratio }: Row): string {
  const digits = unit === 'ms' ? 3 : 0;
  const [from, to] = [before, after].map((figure) => `${figure.toFixed(digits)} ${unit}`);
  return `| ${name} | ${from} | ${to} | ${ratio.toFixed(3)} |`;
}

function render(): string {
  return [
    `Comparison, ${args.full ? 'full' : 'smoke'} parameters, ${THREAD_COUNT} threads, medians of ${plan.turnCount} turns of ${plan.turnSeconds} s; ratios are of neighbouring turns`,
    describeMachine(),
    '',
    ...missing,
    ...(missing.length === 0 ? [] : ['']),
    '| case | before | after | after / before |',
    '| --- | --- | --- | --- |',
    ...rows.map(rowText),
    '',
  ].join('\n');
}
