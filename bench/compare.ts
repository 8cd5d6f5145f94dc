// Compares this checkout with another one: the figures of engine and REST, measured in turns so that both run
// on the same machine at the same time, along with other libraries. Both checkouts must find the same rows and
// scores, must be built, and must share the interfaces that bench/compare uses.
//
//   node dist/bench/compare.js --before DIRECTORY           smoke parameters: only checks the bench
//   node dist/bench/compare.js --before DIRECTORY --full    the parameters of docs/performance.md
//   --vectors FILE   also real vectors: a .npy file of float32 [rows, dimension]
//   --only TEXT      only the parts whose name contains TEXT: clusters, isotropic noise, file, large, REST,
//                    or REST, large
//   --no-peers       without other libraries
//   --out FILE       also writes the table as Markdown

import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { EngineCase } from './compare/engine-child.js';
import { EnginePair, type PairResult } from './compare/engine-pair.js';
import { runLargeRestPair, runRestPair } from './compare/rest-pair.js';
import type { Compared, TurnPlan } from './compare/turns.js';
import { openVectors, type VectorSource } from './compare/vectors.js';
import { describeMachine, ROOT, THREAD_COUNT } from './engine/machine.js';
import { type Parameters, readOptions, type Shape } from './engine/options.js';
import { askPeers } from './engine/peers.js';

interface Sizes {
  readonly wide: Shape;
  readonly large: Shape;
  readonly plan: TurnPlan;
}

const SMOKE: Sizes = {
  wide: { rowCount: 2_000, dimension: 64 },
  large: { rowCount: 4_000, dimension: 64 },
  plan: { turnCount: 1, turnSeconds: 0.05 },
};
const FULL: Sizes = {
  wide: { rowCount: 100_000, dimension: 768 },
  large: { rowCount: 1_000_000, dimension: 768 },
  plan: { turnCount: 15, turnSeconds: 0.4 },
};

const { values: args } = parseArgs({
  allowNegative: true,
  options: {
    before: { type: 'string', default: ROOT },
    full: { type: 'boolean', default: false },
    vectors: { type: 'string' },
    only: { type: 'string', default: '' },
    peers: { type: 'boolean' },
    out: { type: 'string' },
  },
});
const roots = [resolve(args.before), ROOT] as const;
const sizes = args.full ? FULL : SMOKE;
const options = readOptions(args.full ? ['--full'] : []);
const hasPeers = args.peers ?? args.full;
/** Fewer queries than in the engine bench, so that the filters of a million rows fit into memory. */
const parameters: Parameters = { ...options.parameters, queryCount: args.full ? 1_000 : 100 };

interface Row extends Compared {
  readonly name: string;
  readonly unit: 'ms' | '/s';
}

const rows: Row[] = [];
const peerRows: string[] = [];

const single: EngineCase = { name: 'one at a time', batchCount: 1, k: 10, passShare: null };
const batch: EngineCase = { ...single, name: 'batch of 1 000', batchCount: 1_000 };
const singles = [single];
const wideCases: readonly EngineCase[] = [
  single,
  { ...single, name: 'batch of 128', batchCount: 128 },
  batch,
  { ...batch, name: 'batch of 1 000, k = 1 000', k: 1_000 },
  { ...single, name: 'filter that 1 % pass, one at a time', passShare: 0.01 },
  { ...single, name: 'filter that 1 % pass, batch of 128', batchCount: 128, passShare: 0.01 },
];

await runEngines('clusters', { kind: 'clusters', shape: sizes.wide }, wideCases, true);
await runEngines('isotropic noise', { kind: 'noise', shape: sizes.wide }, [single, batch]);
if (args.vectors !== undefined) {
  await runEngines('file', { kind: 'file', path: resolve(args.vectors) }, [single, batch]);
}
await runEngines('large', { kind: 'clusters', shape: sizes.large }, singles);
if (isWanted('REST')) {
  const data = openVectors({ kind: 'clusters', shape: sizes.wide }, parameters);
  for (const result of await runRestPair(roots, data, sizes.plan)) {
    add({ ...result, name: `REST, ${result.name}` });
  }
}
if (isWanted('REST, large')) {
  const data = openVectors({ kind: 'clusters', shape: sizes.large }, parameters);
  for (const result of await runLargeRestPair(roots, data, sizes.plan)) {
    add({ ...result, name: `REST, ${data.rowCount} × ${data.dimension}: ${result.name}` });
  }
}
const report = render();
console.log(report);
if (args.out !== undefined) await writeFile(args.out, report);

async function runEngines(
  name: string,
  source: VectorSource,
  cases: readonly EngineCase[],
  isCompared = false,
): Promise<void> {
  if (!isWanted(name)) return;
  const pair = await EnginePair.open(roots, source, parameters);
  const found = new Map<EngineCase, PairResult>();
  try {
    const size = `${pair.shape.rowCount} × ${pair.shape.dimension}`;
    for (const engineCase of cases) {
      const result = await pair.run(engineCase, sizes.plan);
      found.set(engineCase, result);
      add({
        name: `${size}, ${name}: ${engineCase.name}`,
        unit: engineCase.batchCount === 1 ? 'ms' : '/s',
        ...result.compared,
      });
    }
  } finally {
    pair.close();
  }
  if (hasPeers && isCompared) await comparePeers(source, found);
}

/** Runs the other libraries on the cases that they support. */
async function comparePeers(
  source: VectorSource,
  found: ReadonlyMap<EngineCase, PairResult>,
): Promise<void> {
  const data = openVectors(source, parameters);
  const cases = [single, batch].map((engineCase) => ({
    name: engineCase.name,
    metric: 'cosine' as const,
    batchCount: engineCase.batchCount,
    truth: found.get(engineCase)!.rows,
  }));
  for (const { peer, reply } of await askPeers(data, () => cases, options)) {
    if ('failure' in reply) peerRows.push(`| ${peer.name} | ${reply.failure} | | |`);
    else {
      for (const { name, timing } of reply.answers) {
        const engineCase = name === single.name ? single : batch;
        const ratio = found.get(engineCase)!.queriesPerSecond / timing.queriesPerSecond;
        const p50 = timing.p50Ms.toFixed(3);
        peerRows.push(`| ${peer.name} | ${name} | p50 ${p50} ms | ${ratio.toFixed(2)} × |`);
      }
    }
  }
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
  const { plan } = sizes;
  return [
    `Comparison, ${args.full ? 'full' : 'smoke'} parameters, ${THREAD_COUNT} threads, medians of ${plan.turnCount} turns of ${plan.turnSeconds} s; ratios are of neighbouring turns`,
    describeMachine(),
    '',
    '| case | before | after | after / before |',
    '| --- | --- | --- | --- |',
    ...rows.map(rowText),
    '',
    ...(peerRows.length === 0
      ? []
      : ['| peer | case | measured | this checkout / peer |', '| --- | --- | --- | --- |']),
    ...peerRows,
    '',
  ].join('\n');
}
