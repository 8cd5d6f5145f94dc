// Queries over REST compared with the same queries on the engine alone: the cost of HTTP, JSON, filters and
// paging. A real server process, with the client on the same cores.
//
//   node dist/bench/rest.js                   smoke parameters: a few seconds, only checks the bench
//   node dist/bench/rest.js --full            100 000 × 768, as docs/performance.md quotes it
//   node dist/bench/rest.js --out FILE        also writes the table as Markdown

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  createCaller,
  type ServerProcess,
  startServerProcess,
} from '../test/support/server-process.js';
import { createDataSet, idOf } from './engine/data.js';
import { COMMAND_SETTINGS, describeMachine } from './engine/machine.js';
import { readOptions } from './engine/options.js';
import { quantile } from './engine/timing.js';

const SMOKE = { batchRows: 500, singleCount: 50, clientCount: 8, concurrentCount: 200, pages: 20 };
const FULL = {
  batchRows: 500,
  singleCount: 400,
  clientCount: 32,
  concurrentCount: 8_000,
  pages: 999,
};
const PAGE_ROWS = 100;

type Call = ReturnType<typeof createCaller>['call'];

interface Row {
  readonly what: string;
  readonly measured: string;
}

const { values: args } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const parameters = args.full ? FULL : SMOKE;
const data = createDataSet('clusters', readOptions(args.full ? ['--full'] : []).parameters);
const rows: Row[] = [];
const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-bench-'));
try {
  const start = { dataDirectory, ...COMMAND_SETTINGS };
  const server = await startServerProcess(start);
  try {
    await run(server);
  } finally {
    await server.stop();
  }
} finally {
  await rm(dataDirectory, { recursive: true, force: true });
}
const table = [
  `REST bench, ${args.full ? 'full' : 'smoke'} parameters, ${data.rowCount} × ${data.dimension}`,
  describeMachine(),
  '',
  '| operation | measured |',
  '| --- | --- |',
  ...rows.map(({ what, measured }) => `| ${what} | ${measured} |`),
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

async function run({ url }: ServerProcess): Promise<void> {
  const { call, close } = createCaller(url, parameters.clientCount);
  try {
    await load(call);
    await checkResults(call);
    await oneAtATime(call);
    await manyClients(call);
    await filtered(call);
    await pages(call);
  } finally {
    close();
  }
}

async function load(call: Call): Promise<void> {
  await expect(
    call('POST', '/v1/collections', { id: 'bench', dimension: data.dimension, metric: 'cosine' }),
  );
  const startedAt = performance.now();
  let row = 0;
  for (const block of data.blocks) {
    for (let from = 0; from < block.rowCount; from += parameters.batchRows) {
      const count = Math.min(parameters.batchRows, block.rowCount - from);
      const vectors = Array.from({ length: count }, (_, i) => ({
        id: idOf(row + i),
        values: base64(block.values, (from + i) * data.dimension),
        metadata: { n: row + i },
      }));
      await expect(call('POST', '/v1/collections/bench/vectors', { vectors }));
      row += count;
    }
  }
  const seconds = (performance.now() - startedAt) / 1000;
  add('ingest as base64, one client, durable', `${Math.round(row / seconds)} vectors/s`);
}

function base64(values: Float32Array, offset: number): string {
  const bytes = values.byteOffset + offset * 4;
  return Buffer.from(values.buffer, bytes, data.dimension * 4).toString('base64');
}

/** Compares some results with float64 brute force. Throws when they differ. */
async function checkResults(call: Call): Promise<void> {
  for (const query of data.queries.slice(0, 3)) {
    const reply = await runQuery(call, { vector: [...query], top_k: 10 });
    const scores: { row: number; score: number }[] = [];
    for (const [index, block] of data.blocks.entries()) {
      for (let row = 0; row < block.rowCount; row++) {
        const score = cosine(block.values, row * data.dimension, query);
        scores.push({ row: data.starts[index]! + row, score });
      }
    }
    scores.sort((a, b) => b.score - a.score);
    const expected = scores.slice(0, 10).map(({ row }) => idOf(row));
    const found = reply.matches.map(({ id }) => id);
    if (found.join() !== expected.join()) throw new Error(`expected ${expected}, found ${found}`);
  }
}

function cosine(values: Float32Array, offset: number, query: Float32Array): number {
  let product = 0;
  let square = 0;
  for (let i = 0; i < query.length; i++) {
    product += values[offset + i]! * query[i]!;
    square += values[offset + i]! ** 2;
  }
  return product / Math.sqrt(square);
}

/** Measures the time of the whole request, and of the search alone as measured by the server. */
async function oneAtATime(call: Call): Promise<void> {
  const requests: number[] = [];
  const searches: number[] = [];
  for (let i = 0; i < parameters.singleCount; i++) {
    const vector = [...data.queries[i % data.queries.length]!];
    const startedAt = performance.now();
    const { explain } = await runQuery(call, { vector, top_k: 10, explain: true });
    requests.push(performance.now() - startedAt);
    searches.push(explain!.search_ms);
  }
  const added = requests.map((milliseconds, i) => milliseconds - searches[i]!);
  add('one JSON query at a time, whole request', percentiles(requests));
  add('… search on the engine', percentiles(searches));
  add('… everything else: HTTP, JSON, planning, paging', percentiles(added));
}

async function manyClients(call: Call): Promise<void> {
  const bodies = data.queries.map((query) => JSON.stringify({ vector: [...query], top_k: 10 }));
  const latencies: number[] = [];
  let next = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: parameters.clientCount }, async () => {
      while (next < parameters.concurrentCount) {
        const body = bodies[next++ % bodies.length]!;
        const sentAt = performance.now();
        await expect(call('POST', '/v1/collections/bench/query', body));
        latencies.push(performance.now() - sentAt);
      }
    }),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  const rate = Math.round(latencies.length / seconds);
  add(
    `${parameters.clientCount} clients, single JSON queries`,
    `${rate} queries/s, ${percentiles(latencies)}`,
  );
}

async function filtered(call: Call): Promise<void> {
  for (const share of [0.01, 0.1, 0.5]) {
    const latencies: number[] = [];
    for (let i = 0; i < parameters.singleCount; i++) {
      const vector = [...data.queries[i % data.queries.length]!];
      // Every second filter is new, so it is not cached.
      const from = i % 2 === 0 ? 0 : i;
      const filter = { n: { $gte: from, $lt: from + Math.floor(share * data.rowCount) } };
      const startedAt = performance.now();
      await runQuery(call, { vector, top_k: 10, filter });
      latencies.push(performance.now() - startedAt);
    }
    add(
      `one at a time, range filter matching ${share * 100} % of the rows`,
      percentiles(latencies),
    );
  }
}

/** Pages through the nearest 100 000 by cursor. */
async function pages(call: Call): Promise<void> {
  const first: number[] = [];
  for (let i = 0; i < 20; i++) {
    const startedAt = performance.now();
    await runQuery(call, { vector: [...data.queries[1]!], limit: PAGE_ROWS });
    first.push(performance.now() - startedAt);
  }
  const later: number[] = [];
  let page = await runQuery(call, { vector: [...data.queries[1]!], limit: PAGE_ROWS });
  for (let i = 0; i < parameters.pages && page.next_cursor !== undefined; i++) {
    const startedAt = performance.now();
    page = await runQuery(call, { cursor: page.next_cursor });
    later.push(performance.now() - startedAt);
  }
  add(`the first page of ${PAGE_ROWS}`, percentiles(first));
  add(`the last 20 of ${later.length} pages by cursor`, percentiles(later.slice(-20)));
}

interface QueryReply {
  readonly matches: readonly { readonly id: string }[];
  readonly next_cursor?: string;
  readonly explain?: { readonly search_ms: number };
}

async function runQuery(call: Call, body: object): Promise<QueryReply> {
  return (await expect(call('POST', '/v1/collections/bench/query', body))).json<QueryReply>();
}

async function expect(pending: ReturnType<Call>): Promise<Awaited<ReturnType<Call>>> {
  const reply = await pending;
  if (reply.status >= 300) throw new Error(`status ${reply.status}: ${reply.text}`);
  return reply;
}

function percentiles(milliseconds: readonly number[]): string {
  const at = (share: number) => quantile([...milliseconds], share).toFixed(2);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}

function add(what: string, measured: string): void {
  rows.push({ what, measured });
  console.error(`${what}: ${measured}`);
}
