// The server as a client sees it: a real server process with its store on disk, measured over loopback. Results
// are checked against brute force before anything is timed.
//
//   node dist/bench/service.js                smoke parameters: a few seconds, only checks the bench
//   node dist/bench/service.js --full         the parameters of docs/performance.md
//   node dist/bench/service.js --out FILE     also writes the table as Markdown

import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createRandom } from '../test/database/harness.js';
import {
  createCaller,
  type ServerProcess,
  startServerProcess,
} from '../test/support/server-process.js';
import { COMMAND_SETTINGS } from './engine/machine.js';

const SMOKE = {
  vectorCount: 2_000,
  batchRows: 500,
  singleCount: 500,
  replayedCount: 500,
  queryCount: 20,
  idleMs: 500,
};
const FULL = {
  vectorCount: 100_000,
  batchRows: 500,
  singleCount: 20_000,
  replayedCount: 30_000,
  queryCount: 300,
  idleMs: 10_000,
};
const DIMENSION = 256;
const BATCH_CLIENTS = 4;
const SINGLE_CLIENTS = 32;
const SEED = 7;

type Call = ReturnType<typeof createCaller>['call'];

interface Row {
  readonly what: string;
  readonly measured: string;
  readonly goal: string;
}

const { values: args } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const parameters = args.full ? FULL : SMOKE;
const MEMORY_GOAL = `${((2.2 * parameters.vectorCount * DIMENSION * 4 + 250e6) / 1e6).toFixed(0)} MB`;
const rows: Row[] = [];
const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-bench-'));
const START = { dataDirectory, ...COMMAND_SETTINGS };
try {
  await run();
} finally {
  await rm(dataDirectory, { recursive: true, force: true });
}
const table = render();
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

async function run(): Promise<void> {
  const vectors = clusteredVectors(parameters.vectorCount);
  const server = await startServerProcess(START);
  const { call, close } = createCaller(server.url, SINGLE_CLIENTS);
  await call('POST', '/v1/collections', { id: 'bench', dimension: DIMENSION, metric: 'cosine' });
  await call('POST', '/v1/collections', { id: 'single', dimension: DIMENSION, metric: 'cosine' });
  await upsertBatches(call, vectors);
  await upsertSingles(call, vectors);
  await queries(call, vectors);
  await call('DELETE', '/v1/collections/single');
  const memory = await residentBytes(server);
  const float32Bytes = parameters.vectorCount * DIMENSION * 4;
  add(
    'resident memory after the writes and queries',
    `${(memory / 1e6).toFixed(0)} MB = ${((memory - 250e6) / float32Bytes).toFixed(2)} × the float32 bytes + 250 MB`,
    MEMORY_GOAL,
  );
  close();
  await server.kill();
  await restart(vectors);
  await startAfterSingleWrites();
}

async function upsertBatches(call: Call, vectors: readonly Float32Array[]): Promise<void> {
  const bodies = batchBodies(vectors, parameters.batchRows);
  const bodyBytes = bodies.reduce((sum, body) => sum + body.length, 0);
  const seconds = await timed(() =>
    forEachConcurrently(bodies, BATCH_CLIENTS, async (body) => {
      expectOk(await call('POST', '/v1/collections/bench/vectors', body));
    }),
  );
  add(
    `JSON upserts of ${parameters.batchRows} × ${DIMENSION}, ${BATCH_CLIENTS} clients, durable`,
    `${rate(parameters.vectorCount, seconds)} vectors/s (${(bodyBytes / seconds / 1e6).toFixed(0)} MB/s of JSON)`,
    '12 000 vectors/s',
  );
}

async function upsertSingles(call: Call, vectors: readonly Float32Array[]): Promise<void> {
  const bodies = Array.from({ length: parameters.singleCount }, (_, i) =>
    JSON.stringify({
      id: `s${i}`,
      values: Array.from(vectors[i % vectors.length]!),
      metadata: { i },
    }),
  );
  const latencies: number[] = [];
  const seconds = await timed(() =>
    forEachConcurrently(bodies, SINGLE_CLIENTS, async (body) => {
      const startedAt = performance.now();
      expectOk(await call('POST', '/v1/collections/single/vectors', body));
      latencies.push(performance.now() - startedAt);
    }),
  );
  add(
    `single upserts, ${SINGLE_CLIENTS} clients, durable`,
    `${rate(bodies.length, seconds)} writes/s, ${percentiles(latencies)}`,
    '3 000 writes/s',
  );
}

async function queries(call: Call, vectors: readonly Float32Array[]): Promise<void> {
  const checkedCount = await checkResults(call, vectors);
  const queryMs: number[] = [];
  for (let i = 0; i < parameters.queryCount; i++) {
    const body = { vector: Array.from(vectors[(i * 37) % vectors.length]!), top_k: 10 };
    const startedAt = performance.now();
    expectOk(await call('POST', '/v1/collections/bench/query', body));
    queryMs.push(performance.now() - startedAt);
  }
  add(
    `one query at a time over ${parameters.vectorCount} × ${DIMENSION}, top_k 10`,
    `${percentiles(queryMs)} (${checkedCount} results equal brute force)`,
    '—',
  );
}

/** Measures a restart after SIGKILL: the time until ready, memory, and CPU time when idle. */
async function restart(vectors: readonly Float32Array[]): Promise<void> {
  const server = await startServerProcess(START);
  const { call, close } = createCaller(server.url, 1);
  const { vector_count } = (await call('GET', '/v1/collections/bench')).json<{
    vector_count: number;
  }>();
  if (vector_count !== parameters.vectorCount) {
    throw new Error(
      `expected ${parameters.vectorCount} vectors after the restart, found ${vector_count}`,
    );
  }
  add(
    `restart after SIGKILL with ${parameters.vectorCount} × ${DIMENSION}`,
    `ready in ${(server.readyMs / 1000).toFixed(2)} s, listening in ${(server.listeningMs / 1000).toFixed(2)} s`,
    '1.5 s',
  );
  await checkResults(call, vectors);
  add(
    'resident memory after the restart and a query',
    `${((await residentBytes(server)) / 1e6).toFixed(0)} MB`,
    MEMORY_GOAL,
  );
  await sleep(3_000);
  const before = await cpuTicks(server);
  await sleep(parameters.idleMs);
  const ticks = (await cpuTicks(server)) - before;
  add(`CPU of the idle server over ${parameters.idleMs / 1000} s`, `${ticks * 10} ms`, '0 ms');
  close();
  await server.stop();
}

/** Measures the start of an empty server, and of one that is killed after single writes of short vectors. */
async function startAfterSingleWrites(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'sagitta-bench-'));
  const start = { ...START, dataDirectory: directory };
  try {
    const empty = await startServerProcess(start);
    add('start of an empty server', await describeStart(empty, empty.listeningMs), '0.3 s');
    const { call, close } = createCaller(empty.url, SINGLE_CLIENTS);
    await call('POST', '/v1/collections', { id: 'log', dimension: 16, metric: 'cosine' });
    const numbers = Array.from({ length: parameters.replayedCount }, (_, i) => i);
    await forEachConcurrently(numbers, SINGLE_CLIENTS, async (i) => {
      const values = Array.from({ length: 16 }, (_, d) => ((7 * i + d) % 11) + 1);
      expectOk(await call('POST', '/v1/collections/log/vectors', { id: `r${i}`, values }));
    });
    close();
    await empty.kill();
    const again = await startServerProcess(start);
    const what = `ready after SIGKILL, ${numbers.length} single writes of 16 elements`;
    add(what, await describeStart(again, again.readyMs), '3 s');
    await again.stop();
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function describeStart(server: ServerProcess, durationMs: number): Promise<string> {
  return `${(durationMs / 1000).toFixed(2)} s, CPU ${(await cpuTicks(server)) * 10} ms`;
}

/** Creates unit vectors around 200 centres. */
function clusteredVectors(count: number): Float32Array[] {
  const random = createRandom(SEED);
  const gaussian = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const centres = Array.from({ length: 200 }, () =>
    Float32Array.from({ length: DIMENSION }, gaussian),
  );
  return Array.from({ length: count }, () => {
    const centre = centres[Math.floor(random() * centres.length)]!;
    const vector = centre.map((x) => x + 0.5 * gaussian());
    const norm = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
    return vector.map((x) => x / norm);
  });
}

function batchBodies(vectors: readonly Float32Array[], batchRows: number): Buffer[] {
  const bodies: Buffer[] = [];
  for (let start = 0; start < vectors.length; start += batchRows) {
    const batch = vectors.slice(start, start + batchRows).map((values, i) => ({
      id: `v${start + i}`,
      values: Array.from(values),
      metadata: { i: start + i, group: `g${(start + i) % 100}` },
    }));
    bodies.push(Buffer.from(JSON.stringify({ vectors: batch })));
  }
  return bodies;
}

/** Compares some results with float64 brute force. Throws when they differ. */
async function checkResults(call: Call, vectors: readonly Float32Array[]): Promise<number> {
  const queries = [0, 1, 2].map((i) => vectors[Math.floor((i * vectors.length) / 3)]!);
  for (const query of queries) {
    const reply = await call('POST', '/v1/collections/bench/query', {
      vector: Array.from(query),
      top_k: 10,
    });
    const found = expectOk(reply).json<{ matches: { id: string }[] }>();
    const scores = vectors.map((vector) => dot(vector, query) / Math.sqrt(dot(vector, vector)));
    const expected = scores
      .map((score, i) => ({ score, id: `v${i}` }))
      .sort((a, b) => b.score - a.score)
      .slice(0, 10)
      .map(({ id }) => id);
    const ids = found.matches.map(({ id }) => id);
    if (ids.join() !== expected.join()) throw new Error(`expected ${expected}, found ${ids}`);
  }
  return queries.length;
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

async function forEachConcurrently<T>(
  items: readonly T[],
  concurrency: number,
  run: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (next < items.length) await run(items[next++]!);
    }),
  );
}

function expectOk<R extends { status: number; text: string }>(reply: R): R {
  if (reply.status !== 200) throw new Error(`status ${reply.status}: ${reply.text}`);
  return reply;
}

async function timed(run: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await run();
  return (performance.now() - startedAt) / 1000;
}

function rate(count: number, seconds: number): string {
  return Math.round(count / seconds)
    .toLocaleString('en')
    .replaceAll(',', ' ');
}

function percentiles(milliseconds: number[]): string {
  const sorted = milliseconds.toSorted((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(2);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}

async function residentBytes({ child }: ServerProcess): Promise<number> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024;
}

/** Returns the user and system time of the process in units of 10 ms. */
async function cpuTicks({ child }: ServerProcess): Promise<number> {
  const stat = await readFile(`/proc/${child.pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

function add(what: string, measured: string, goal: string): void {
  rows.push({ what, measured, goal });
  console.error(`${what}: ${measured}`);
}

function render(): string {
  const commit = git('rev-parse', '--short', 'HEAD');
  const lines = rows.map(({ what, measured, goal }) => `| ${what} | ${measured} | ${goal} |`);
  return [
    `Service bench, ${args.full ? 'full' : 'smoke'} parameters, commit ${commit}, seed ${SEED}`,
    `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.version}`,
    '',
    '| operation | measured | goal |',
    '| --- | --- | --- |',
    ...lines,
    '',
  ].join('\n');
}

function git(...words: string[]): string {
  try {
    return execFileSync('git', words, { stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .trim();
  } catch {
    return 'unknown';
  }
}
