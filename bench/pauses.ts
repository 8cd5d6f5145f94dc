// How long large requests and maintenance occupy the main thread of a server at a time: the longest iteration
// of its event loop, as measured in the server process (pauses/probe.ts).
//
//   node dist/bench/pauses.js                 smoke parameters: a few seconds, only checks the bench
//   node dist/bench/pauses.js --full          bodies of 16 MB, as docs/performance.md quotes it
//   node dist/bench/pauses.js --out FILE      also writes the table as Markdown

import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { GeneratedRows, streamRows } from '../test/durability/generated-rows.js';
import {
  createCaller,
  type ServerProcess,
  startServerProcess,
} from '../test/support/server-process.js';
import { eventually } from '../test/support/waiting.js';
import { COMMAND_SETTINGS, describeMachine } from './engine/machine.js';
import { quantile } from './engine/timing.js';
import type { Pauses } from './pauses/probe.js';

const SMOKE = { dimension: 128, jsonRows: 200, arrowRows: 500, queryCount: 64, loadedRows: 9_000 };
const FULL = {
  dimension: 768,
  jsonRows: 1_800,
  arrowRows: 5_200,
  queryCount: 1_024,
  loadedRows: 60_000,
};
const ROUNDS = 5;

type Call = ReturnType<typeof createCaller>['call'];

const { values: args } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const sizes = args.full ? FULL : SMOKE;
const rows = new GeneratedRows(sizes.dimension);
const lines: string[] = [];
const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-bench-'));
try {
  await run();
} finally {
  await rm(dataDirectory, { recursive: true, force: true });
}
const table = [
  `Pauses bench, ${args.full ? 'full' : 'smoke'} parameters, ${sizes.dimension} dimensions`,
  describeMachine(),
  '',
  `| what | longest iteration, median of ${ROUNDS} rounds | at most | over 2 ms, each round |`,
  '| --- | --- | --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

async function run(): Promise<void> {
  const probe = new URL('./pauses/probe.js', import.meta.url);
  const server = await startServerProcess({
    dataDirectory,
    settings: {
      ...COMMAND_SETTINGS.settings,
      SAGITTA_RETENTION_MS: '1000',
      SAGITTA_WRITE_RATE_MAX: '0',
      ...(!args.full && { SAGITTA_SEGMENT_ROWS_MAX: '4096' }),
    },
    nodeArguments: [...COMMAND_SETTINGS.nodeArguments, '--import', probe.href],
  });
  const { call, close } = createCaller(server.url, 1);
  try {
    await create(call, 'c');
    await measure(server, 'idle', async () => {
      await call('GET', '/v1/collections/c');
    });
    await upserts(server, call);
    await load(server, call);
    await queries(server, call);
  } finally {
    close();
    await server.stop();
  }
}

async function upserts(server: ServerProcess, call: Call): Promise<void> {
  let next = 0;
  const bodies = Array.from({ length: ROUNDS }, (_, i) => jsonBody(i * sizes.jsonRows));
  const megabytes = (bodies[0]!.length / 1e6).toFixed(0);
  await measure(
    server,
    `upsert of ${sizes.jsonRows} rows, ${megabytes} MB of JSON`,
    async (round) => {
      await expect(call('POST', '/v1/collections/c/vectors', bodies[round]!));
      next += sizes.jsonRows;
    },
  );
  await measure(server, 'the same rows again', async (round) => {
    await expect(call('POST', '/v1/collections/c/vectors', bodies[round]!));
  });
  const arrowMegabytes = ((sizes.arrowRows * sizes.dimension * 4) / 1e6).toFixed(0);
  await measure(
    server,
    `upsert of ${sizes.arrowRows} rows, ${arrowMegabytes} MB of Arrow`,
    async () => {
      await streamRows(url(server, 'c'), rows, [next, next + sizes.arrowRows]);
      next += sizes.arrowRows;
    },
  );
  await check(call, next);
}

/** Compares the answer to a query with brute force. Throws when they differ. */
async function check(call: Call, storedRows: number): Promise<void> {
  const vector = rows.vector(storedRows + 1);
  const [expected] = rows.nearest([{ vector }], 10, storedRows);
  const reply = await call('POST', '/v1/collections/c/query', { vector: [...vector], top_k: 10 });
  const found = reply.json<{ matches: { id: string }[] }>().matches.map(({ id }) => id);
  if (found.join() !== expected!.join()) throw new Error(`expected ${expected}, found ${found}`);
}

/** Segments are sealed, written and mapped while rows arrive; then compaction removes the former rows. */
async function load(server: ServerProcess, call: Call): Promise<void> {
  const { loadedRows } = sizes;
  const replacedRows = loadedRows / 2;
  await measure(
    server,
    `load of ${loadedRows} rows by Arrow, half of them again`,
    async (round) => {
      await create(call, `load${round}`);
      const before = await rowCount(call);
      await streamRows(url(server, `load${round}`), rows, [0, loadedRows]);
      await streamRows(url(server, `load${round}`), rows, [0, replacedRows]);
      await eventually('compaction removes the former rows', async () => {
        return (await rowCount(call)) < before + loadedRows + replacedRows / 2;
      });
      await expect(call('DELETE', `/v1/collections/load${round}`));
    },
  );
}

async function rowCount(call: Call): Promise<number> {
  const { text } = await call('GET', '/metrics');
  return Number(/^sagitta_rows (\S+)$/m.exec(text)?.[1]);
}

async function queries(server: ServerProcess, call: Call): Promise<void> {
  const vectors = Array.from({ length: sizes.queryCount }, (_, i) => ({
    vector: Array.from(rows.vector(sizes.loadedRows + i), (value) => value / 3),
    top_k: 10,
  }));
  const body = Buffer.from(JSON.stringify({ queries: vectors }));
  await measure(
    server,
    `batch of ${sizes.queryCount} queries, ${(body.length / 1e6).toFixed(0)} MB of JSON`,
    async () => {
      await expect(call('POST', '/v1/collections/c/query/batch', body));
    },
  );
}

function url({ url: base }: ServerProcess, collection: string): string {
  return `${base}/v1/collections/${collection}/vectors`;
}

async function create(call: Call, id: string): Promise<void> {
  await expect(
    call('POST', '/v1/collections', { id, dimension: sizes.dimension, metric: 'cosine' }),
  );
}

function jsonBody(from: number): Buffer {
  const vectors = Array.from({ length: sizes.jsonRows }, (_, i) => ({
    id: rows.idOf(from + i),
    values: Array.from(rows.vector(from + i), (value) => Number(value.toPrecision(8))),
    metadata: JSON.parse(rows.metadataOf(from + i)) as object,
  }));
  return Buffer.from(JSON.stringify({ vectors }));
}

async function expect(pending: ReturnType<Call>): Promise<void> {
  const { status, text } = await pending;
  if (status >= 300) throw new Error(`status ${status}: ${text}`);
}

async function measure(
  server: ServerProcess,
  what: string,
  perform: (round: number) => Promise<void>,
): Promise<void> {
  const measured: Pauses[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    server.child.kill('SIGUSR2');
    await perform(round);
    measured.push(await endMeasuring(server));
  }
  const longest = measured.map(({ longestMs }) => longestMs);
  const [median, most] = [quantile(longest, 0.5), Math.max(...longest)];
  const longCounts = measured.map(({ longCount }) => longCount).join(', ');
  const line = `| ${what} | ${median.toFixed(1)} ms | ${most.toFixed(1)} ms | ${longCounts} |`;
  console.error(line);
  lines.push(line);
}

async function endMeasuring({ child }: ServerProcess): Promise<Pauses> {
  const output = createInterface({ input: child.stdout! });
  const printed = once(output, 'line') as Promise<[string]>;
  child.kill('SIGUSR2');
  const [line] = await printed;
  output.close();
  child.stdout!.resume();
  return JSON.parse(line) as Pauses;
}
