// The engine without the server: every case is checked against brute force before it is timed, and compared
// with the machine's peak and with other libraries (peers). A wrong result ends with exit code 1. Real vectors come
// from bench/data/make-vectors.mjs; without them, their cases are left out.
//
//   node dist/bench/engine.js                 smoke parameters: a few seconds, only checks the bench
//   node dist/bench/engine.js --full          the parameters of docs/performance.md, with peers
//   --only TEXT         only cases whose name contains TEXT, such as 'sentences' or 'one at a time'
//   --engine NAME       auto or the name of an engine
//   --[no-]peers        run the peers (bench/peers/install); --no-graph-peers skips graph indexes
//   --out FILE          also writes the tables as Markdown

import { writeFile } from 'node:fs/promises';
import { silentLogger } from '../src/common/logger.js';
import { createEngine } from '../src/engine/choose-engine.js';
import type { Engine } from '../src/engine/core/engine.js';
import { createThreadPool } from '../src/platform/pool.js';
import { type Case, listCases } from './engine/cases.js';
import { Truth } from './engine/check.js';
import { createDataSet, type EncodedData, encodeData } from './engine/data.js';
import { DATA_NAMES, type DataName, readOptions } from './engine/options.js';
import {
  type KernelCase,
  type KernelFailure,
  type KernelScan,
  listTargets,
  Peaks,
  scanKernel,
} from './engine/peaks.js';
import { type PeerResult, runPeers } from './engine/peers.js';
import { renderReport } from './engine/report.js';
import { type CaseResult, runCase } from './engine/run-case.js';
import { findMissing } from './engine/vectors.js';

const options = readOptions(process.argv.slice(2));
const cases = listCases(options.parameters).filter(({ name }) => isWanted(name));
const peaks = new Peaks();
const dataLines: string[] = [];
const results: CaseResult[] = [];
const peers: PeerResult[] = [];
const kernels: (KernelScan | KernelFailure)[] = [];

const pool = createThreadPool();
const logger = { ...silentLogger, warn: logError, error: logError };
const { engine, reason } = await createEngine({ requested: options.engine, pool, logger }).catch(
  (error: Error) => {
    console.error(`the ${options.engine} engine failed to start: ${error.message}`);
    process.exit(1);
  },
);
try {
  for (const name of DATA_NAMES) {
    const own = cases.filter(({ data }) => data === name);
    if (own.length > 0) await runData(name, own);
  }
  await runKernels();
  if (results.length + kernels.length === 0) {
    const reasons = dataLines.map((line) => `; ${line}`).join('');
    throw new Error(
      `--only: no case that can run on this machine contains ${JSON.stringify(options.only)}${reasons}`,
    );
  }
} finally {
  await engine.close();
  await pool.close();
}
const report = renderReport({
  isFull: options.isFull,
  engineName: engine.name,
  engineReason: reason,
  peaks,
  dataLines,
  cases: results,
  kernels,
  peers,
  peersMissing: options.hasPeers ? null : 'Run with --peers to compare with other libraries.',
});
console.log(report);
if (options.outFile !== null) await writeFile(options.outFile, report);

async function runData(name: DataName, own: readonly Case[]): Promise<void> {
  const { parameters } = options;
  const missing = findMissing(parameters.data[name]);
  if (missing !== null) {
    dataLines.push(`${name}: ${missing}`);
    return;
  }
  const startedAt = performance.now();
  const generated = createDataSet(name, parameters);
  const generatedSeconds = (performance.now() - startedAt) / 1000;
  const { data, encoding } = await encodeData(engine, generated);
  const truth = new Truth(data, parameters.checkedCount);
  const found: CaseResult[] = [];
  for (const each of own) {
    if ((results.length + found.length) % parameters.casesPerPeak === 0) await peaks.measure();
    const result = await runCase(engine, each, data, truth, parameters);
    const { queriesPerSecond, p50Ms } = result.timing;
    console.error(`${each.name}: ${queriesPerSecond.toFixed(1)} queries/s, ${p50Ms.toFixed(2)} ms`);
    found.push(result);
  }
  results.push(...found);
  dataLines.push(
    `${name}: ${data.rowCount} × ${data.dimension} in ${data.blocks.length} blocks, generated in ` +
      `${generatedSeconds.toFixed(1)} s; ${describeCopies(engine, data.blocks, encoding)}`,
  );
  if (options.hasPeers) {
    peers.push(...(await runPeers(engine, data, found, options, () => peaks.measure())));
  }
  for (const { key } of data.blocks) engine.unload(key);
}

function describeCopies(
  owner: Engine,
  blocks: readonly { readonly key: string }[],
  encoding: EncodedData['encoding'],
): string {
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
  const hostBytes = blocks.reduce((sum, { key }) => sum + owner.bytesUsed(key).hostBytes, 0);
  const held = `${megabytes(hostBytes)} held by the engine`;
  if (encoding === null) return held;
  const rate = encoding.bytes / encoding.seconds / 1e6;
  return `${megabytes(encoding.bytes)} of codes, encoded at ${rate.toFixed(0)} MB/s on one thread; ${held}`;
}

/** Measures each instruction set alone, for a batch and for one query; smoke runs use one size. */
async function runKernels(): Promise<void> {
  if (peaks.missing !== null) return;
  for (const kernelCase of await listKernelCases()) {
    const { target, shape, queryCount } = kernelCase;
    const size = `${shape.rowCount} × ${shape.dimension}`;
    const name = `kernel ${target} ${size}, batch of ${queryCount}`;
    if (!isWanted(name)) continue;
    const scan = await scanKernel(kernelCase);
    kernels.push(scan);
    const text = 'failure' in scan ? scan.failure : `${scan.queriesPerSecond.toFixed(1)} queries/s`;
    console.error(`${name}: ${text}`);
  }
  await peaks.measure();
}

async function listKernelCases(): Promise<KernelCase[]> {
  // The serial reference is a hundred times slower, so full runs skip it.
  const targets = (await listTargets()).filter((name) => name !== 'reference' || !options.isFull);
  const names = options.isFull ? (['clusters', 'long clusters'] as const) : ['clusters' as const];
  const shapes = names.map((name) => options.parameters.data[name].shape);
  return targets.flatMap((target) =>
    shapes.flatMap((shape) => [1_000, 1].map((queryCount) => ({ target, shape, queryCount }))),
  );
}

function isWanted(name: string): boolean {
  return options.only === null || name.includes(options.only);
}

function logError(details: object, message: string): void {
  console.error(message, details);
}
