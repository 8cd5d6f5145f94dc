// A collection that need not fit into memory: loaded by one Arrow stream while maintenance runs, queried with
// its segments mapped and in memory, compacted and restarted. Matches are checked against brute force.
//
//   node dist/bench/loading.js                smoke parameters: a few seconds, only checks the bench
//   node dist/bench/loading.js --full         1 000 000 × 768
//   node dist/bench/loading.js --rows N --dimension D     another size
//   node dist/bench/loading.js --prefix 'prlimit --data=3000000000'   the server under a limit
//   node dist/bench/loading.js --out FILE     also writes the table as Markdown
//   node dist/bench/loading.js --rates FILE   also writes the rows/s of each batch, one per line

import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { GeneratedRows, streamRows } from '../test/durability/generated-rows.js';
import {
  createCaller,
  type ServerProcess,
  startServerProcess,
} from '../test/support/server-process.js';
import { COMMAND_SETTINGS, describeMachine } from './engine/machine.js';

const { values: args } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    rows: { type: 'string' },
    dimension: { type: 'string' },
    prefix: { type: 'string' },
    directory: { type: 'string', default: tmpdir() },
    out: { type: 'string' },
    rates: { type: 'string' },
  },
});
const rowCount = Number(args.rows ?? (args.full ? 1_000_000 : 20_000));
const dimension = Number(args.dimension ?? (args.full ? 768 : 128));
const queryCount = args.full ? 60 : 10;
/** The number of queries whose matches are compared with brute force. */
const CHECKED_COUNT = 3;
const TOP_K = 10;
/** Rows sent again so that compaction has rows to remove: more than a segment, which is checkpointed. */
const replacedCount = Math.max(10_000, rowCount / 10);
/** The rounds alternate so that both run under the same conditions. Under a limit the rows do not fit into memory. */
const ROUNDS =
  args.prefix === undefined
    ? (['mapped', 'memory', 'memory', 'mapped'] as const)
    : (['mapped'] as const);
const FILTER = { n: { $lt: 10 } };
const SETTLED_MS_MAX = 120_000;

type Call = ReturnType<typeof createCaller>['call'];

const rows = new GeneratedRows(dimension);
const table: (readonly [what: string, measured: string])[] = [];
const expected = findExpected();
const dataDirectory = await mkdtemp(join(args.directory, 'sagitta-bench-'));
try {
  await run();
} finally {
  await rm(dataDirectory, { recursive: true, force: true });
}
const report = render();
console.log(report);
if (args.out !== undefined) await writeFile(args.out, report);

async function run(): Promise<void> {
  await withServer('auto', async (server, call) => {
    await call('POST', '/v1/collections', { id: 'c', dimension, metric: 'cosine' });
    await load(server);
    await waitUntilSettled(call);
    add('memory after the load', memoryOf(server));
    await check(call);
    await replaceRows(server, call);
    await check(call);
  });
  const times = { mapped: [] as number[], memory: [] as number[] };
  for (const values of ROUNDS) {
    await withServer(values, async (server, call, startedAt) => {
      const isFirst = times[values].length === 0;
      await answer(call, 0);
      if (isFirst) add(`start to the first answer, ${values}`, milliseconds(startedAt));
      for (let i = 0; i < queryCount; i++) {
        const queriedAt = performance.now();
        await answer(call, i);
        times[values].push(performance.now() - queriedAt);
      }
      if (isFirst) add(`memory after the queries, ${values}`, memoryOf(server));
      if (isFirst && values === 'mapped') await check(call);
    });
  }
  const mapped = medianOf(times.mapped);
  add('one query at a time, p50, mapped', `${mapped.toFixed(2)} ms`);
  if (times.memory.length === 0) return;
  const memory = medianOf(times.memory);
  add(
    'one query at a time, p50, memory',
    `${memory.toFixed(2)} ms; mapped takes ${(mapped / memory).toFixed(2)} × as long`,
  );
}

async function withServer(
  values: 'auto' | 'mapped' | 'memory',
  use: (server: ServerProcess, call: Call, startedAt: number) => Promise<void>,
): Promise<void> {
  const startedAt = performance.now();
  const server = await startServerProcess({
    ...COMMAND_SETTINGS,
    dataDirectory,
    settings: {
      ...COMMAND_SETTINGS.settings,
      SAGITTA_VALUES: values,
      SAGITTA_RETENTION_MS: '1000',
      SAGITTA_WRITE_RATE_MAX: '0',
      SAGITTA_READ_RATE_MAX: '0',
      ...(rowCount < 100_000 && { SAGITTA_SEGMENT_ROWS_MAX: '4096' }),
    },
    ...(args.prefix === undefined ? {} : { prefix: args.prefix.split(' ') }),
  });
  const { call, close } = createCaller(server.url, 1);
  try {
    await use(server, call, startedAt);
  } finally {
    close();
    await server.stop();
  }
}

async function load(server: ServerProcess): Promise<void> {
  const rates: number[] = [];
  const startedAt = performance.now();
  await streamRows(`${server.url}/v1/collections/c/vectors`, rows, [0, rowCount], (count, ms) => {
    rates.push((count / ms) * 1000);
  });
  const seconds = (performance.now() - startedAt) / 1000;
  if (args.rates !== undefined) {
    await writeFile(args.rates, `${rates.map((rate) => rate.toFixed(0)).join('\n')}\n`);
  }
  const tenth = Math.ceil(rates.length / 10);
  const first = meanRate(rates.slice(0, tenth));
  const last = meanRate(rates.slice(-tenth));
  add(
    `load of ${rowCount} × ${dimension} by one Arrow stream`,
    `${(rowCount / seconds).toFixed(0)} rows/s; the first tenth ${first.toFixed(0)}, the last ${last.toFixed(0)}`,
  );
}

/** Returns the rate over batches of the same length. */
function meanRate(rates: readonly number[]): number {
  return rates.length / rates.reduce((sum, rate) => sum + 1 / rate, 0);
}

/** Sends some rows again and waits until compaction has removed the former ones. */
async function replaceRows(server: ServerProcess, call: Call): Promise<void> {
  const count = replacedCount;
  const startedAt = performance.now();
  await streamRows(`${server.url}/v1/collections/c/vectors`, rows, [0, count]);
  await until(async () => (await metric(call, 'sagitta_rows')) < rowCount + count / 2);
  add(`${count} rows sent again and compacted`, milliseconds(startedAt));
  add('memory after the compaction', memoryOf(server));
}

/** Waits until the full segments are in files: the rest is less than two segments and the index. */
async function waitUntilSettled(call: Call): Promise<void> {
  const startedAt = performance.now();
  const bytesMax = 200e6 + rowCount * 64;
  await until(async () => (await metric(call, 'sagitta_host_bytes')) < bytesMax);
  add('from the end of the load until the full segments are mapped', milliseconds(startedAt));
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + SETTLED_MS_MAX;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error('maintenance did not end in two minutes');
    await sleep(100);
  }
}

async function metric(call: Call, name: string): Promise<number> {
  const { text } = await call('GET', '/metrics');
  const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(text);
  if (found === null) throw new Error(`/metrics has no ${name}`);
  return Number(found[1]);
}

/** Returns a vector near others that is not in the collection. */
function queryVector(index: number): Float32Array {
  return rows.vector(rowCount + index * 7);
}

/** Returns the ids of the matches. Retries while the collection is being loaded. */
async function answer(call: Call, index: number, filter?: object): Promise<string[]> {
  const body = { vector: [...queryVector(index)], top_k: TOP_K, ...(filter && { filter }) };
  for (;;) {
    const reply = await call('POST', '/v1/collections/c/query', body);
    const found = reply.json<{ matches: { id: string }[]; code?: string }>();
    if (reply.status === 200) return found.matches.map(({ id }) => id);
    if (found.code !== 'starting') throw new Error(`${reply.status}: ${reply.text}`);
    await sleep(5);
  }
}

/** Finds the matches of the first queries by brute force, of the last one with the filter. */
function findExpected(): string[][] {
  const questions = Array.from({ length: CHECKED_COUNT }, (_, i) => ({
    vector: queryVector(i),
    isIncluded: (row: number) => i < CHECKED_COUNT - 1 || row % 1000 < FILTER.n.$lt,
  }));
  return rows.nearest(questions, TOP_K, rowCount);
}

/** Compares matches with brute force. Throws when they differ. */
async function check(call: Call): Promise<void> {
  for (const [i, ids] of expected.entries()) {
    const found = await answer(call, i, i === CHECKED_COUNT - 1 ? FILTER : undefined);
    if (found.join() !== ids.join()) {
      throw new Error(`query ${i} found ${found}, brute force ${ids}`);
    }
  }
}

/** Describes the memory that the system cannot reclaim, and mapped files. */
function memoryOf({ child }: ServerProcess): string {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  const megabytes = (name: string) =>
    (Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)![1]) / 1e3).toFixed(0);
  return `${megabytes('RssAnon')} MB not reclaimable, ${megabytes('RssFile')} MB of files`;
}

function medianOf(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1]!;
}

function milliseconds(since: number): string {
  return `${(performance.now() - since).toFixed(0)} ms`;
}

function add(what: string, measured: string): void {
  table.push([what, measured]);
  console.log(`${what}: ${measured}`);
}

function render(): string {
  const lines = table.map(([what, measured]) => `| ${what} | ${measured} |`);
  return [describeMachine(), '', '| what | measured |', '| --- | --- |', ...lines, ''].join('\n');
}
