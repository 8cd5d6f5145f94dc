// The built-in model: texts per second, the time of single texts, and that of the first one, with the glosses of the
// senses of the demo. Vectors are compared with those of the demo before anything is timed.
//
//   node dist/bench/sentences.js              smoke parameters: seconds, only checks the bench
//   node dist/bench/sentences.js --full       the parameters of docs/performance.md
//   node dist/bench/sentences.js --out FILE   also writes the table as Markdown

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { tableFromIPC } from 'apache-arrow';
import { BuiltinModel } from '../src/server/embedding/builtin-model.js';
import { SENTENCE_DIMENSION } from '../src/server/embedding/sentence-encoder.js';
import { describeMachine, ROOT } from './engine/machine.js';
import { quantile } from './engine/timing.js';

const SMOKE = { textCount: 60, singleCount: 5, runs: 1 };
const FULL = { textCount: 600, singleCount: 100, runs: 5 };
/** The vectors of the demo are scaled and rounded to int8. */
const COSINE_MIN = 0.9998;

const { values: args } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const { textCount, singleCount, runs } = args.full ? FULL : SMOKE;
const path = join(ROOT, 'examples', 'data', 'wordnet-sentences.arrow');
const senses = tableFromIPC(readFileSync(path));
const texts = Array.from({ length: textCount }, (_, row) => {
  return `${senses.getChild('lemma')!.get(row)}: ${senses.getChild('gloss')!.get(row)}`;
});

const model = new BuiltinModel();
const name = model.requireInstalled();
const { signal } = new AbortController();
const firstMs = await timed(() => model.embed(texts.slice(0, 1), name, signal));
await check();
const singles: number[] = [];
for (const text of texts.slice(0, singleCount)) {
  singles.push(await timed(() => model.embed([text], name, signal)));
}
const rates: number[] = [];
const cpuMs: number[] = [];
for (let run = 0; run < runs; run++) {
  const cpu = process.cpuUsage();
  const ms = await timed(() => model.embed(texts, name, signal));
  const { user, system } = process.cpuUsage(cpu);
  rates.push((textCount / ms) * 1_000);
  cpuMs.push((user + system) / 1_000 / textCount);
}
const memoryMb = process.memoryUsage().rss / 2 ** 20;
await model.close();

const lines = [
  `Machine: ${describeMachine()}.`,
  '',
  '| texts | first text | one at a time: p50, p95 | together | processor time a text | memory of the process |',
  '| ---: | ---: | ---: | ---: | ---: | ---: |',
  `| ${textCount} | ${firstMs.toFixed(0)} ms | ${quantile(singles, 0.5).toFixed(1)}, ${quantile(singles, 0.95).toFixed(1)} ms | ${quantile(rates, 0.5).toFixed(0)} texts/s | ${quantile(cpuMs, 0.5).toFixed(1)} ms | ${memoryMb.toFixed(0)} MB |`,
];
console.log(lines.join('\n'));
if (args.out !== undefined) writeFileSync(args.out, `${lines.join('\n')}\n`);

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** Compares vectors with those that the demo has. */
async function check(): Promise<void> {
  const count = Math.min(20, textCount);
  const vectors = await model.embed(texts.slice(0, count), name, signal);
  for (let row = 0; row < count; row++) {
    const known = [...(senses.getChild('values')!.get(row) as Iterable<number>)];
    const start = row * SENTENCE_DIMENSION;
    const product = known.reduce((sum, value, i) => sum + value * vectors[start + i]!, 0);
    const cosine = product / Math.hypot(...known);
    assert.ok(cosine > COSINE_MIN, `row ${row}: ${cosine}`);
  }
}
