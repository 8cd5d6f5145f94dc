// Both engines for GPUs, `cuda` and `tensorflow`, on the same vectors and cases: a line of JSON for each
// engine and case. Results are compared with brute force before anything is timed. An engine that does not
// work here is skipped with the reason; tensorflow also runs on TensorFlow's CPU library.
//
//   node dist/bench/gpu-engines.js            smoke parameters: only checks the bench
//   node dist/bench/gpu-engines.js --full     1 000 000 × 768, for a GPU
//   --engine NAME    cuda or tensorflow; both by default
//   --out FILE       also writes the lines to a file

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  createEngineData,
  type EngineLine,
  type GpuEngineName,
  runEngineStep,
} from './cuda/engine-cases.js';
import type { EngineStep } from './cuda/plan.js';

const ENGINES: readonly GpuEngineName[] = ['cuda', 'tensorflow'];

const FULL: EngineStep = {
  kind: 'engine',
  rowCount: 1_000_000,
  dimension: 768,
  cases: [
    ...[4096, 128, 16, 1].map((batchCount) => ({ batchCount, filterPercent: 100 })),
    { batchCount: 1, filterPercent: 10 },
  ],
  isFull: true,
};
/** So few rows that an emulated GPU needs seconds. */
const SMOKE: EngineStep = {
  kind: 'engine',
  rowCount: 2_000,
  dimension: 48,
  cases: [
    { batchCount: 9, filterPercent: 100 },
    { batchCount: 1, filterPercent: 10 },
  ],
  isFull: false,
};

const { values: options } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    engine: { type: 'string' },
    out: { type: 'string' },
  },
});
const wanted = ENGINES.filter((name) => options.engine === undefined || name === options.engine);
if (wanted.length === 0) {
  throw new Error(`--engine: expected one of ${ENGINES.join(', ')}, found ${options.engine}`);
}
const step = options.full ? FULL : SMOKE;
const source = createEngineData(step);
const lines: EngineLine[] = [];
for (const engine of wanted) {
  const onLine = (line: EngineLine) => {
    lines.push(line);
    console.log(JSON.stringify(line));
  };
  const reason = await runEngineStep(step, { engine, source, onLine });
  if (reason !== null) console.error(`skipped: ${engine}: ${reason}`);
}
if (options.out !== undefined) {
  writeFileSync(options.out, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}
