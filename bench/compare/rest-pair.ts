// The servers of two checkouts with the same vectors, and the requests that they answer in turns. The client
// runs on the same cores.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { ServerProcess, startServerProcess } from '../../test/support/server-process.js';
import { ARROW, arrowStream, sendRequest } from '../batches/wire.js';
import { type DataSet, idOf } from '../engine/data.js';
import { COMMAND_SETTINGS } from '../engine/machine.js';
import { quantile } from '../engine/timing.js';
import { openRawClient, postRequest, type RawClient } from './raw-client.js';
import { type Compared, compareFigures, type TurnPlan, takeTurns } from './turns.js';

/** One figure of both checkouts. */
export interface RestResult extends Compared {
  readonly name: string;
  readonly unit: 'ms' | '/s';
}

interface Side {
  readonly start: () => Promise<ServerProcess>;
  readonly directory: string;
  server: ServerProcess;
}

const QUERY_PATH = '/v1/collections/bench/query';
const UPSERT_ROWS = 500;
/** With more rows, writing their text would take the client longer than the servers take. */
const UPSERT_ROWS_MAX = 20_000;
/** The number of upserts per turn. */
const UPSERTS_PER_TURN = 10;
const CLIENT_COUNT = 32;
const BATCH_QUERIES = 500;
const START_COUNT = 3;
/** Rows of a join per turn, each of which is compared with all rows, and the least score of near duplicates. */
const JOINED_ROWS = 4_096;
const DUPLICATE_SCORE = 0.9;
const JOIN_COUNT = 5;

/** Measures upserts, a load, queries of every kind, a join, and a start. */
export function runRestPair(
  roots: readonly string[],
  data: DataSet,
  plan: TurnPlan,
): Promise<RestResult[]> {
  return withSides(roots, data, async (sides) => {
    const results = [await upsert(sides, data), ...(await loadArrow(sides, data))];
    const texts = data.queries.map((query) => JSON.stringify({ vector: [...query], top_k: 10 }));
    const requests = texts.map((text) => postRequest(QUERY_PATH, text));
    const base64Requests = data.queries.map((query) =>
      postRequest(QUERY_PATH, JSON.stringify({ vector: base64(query), top_k: 10 })),
    );
    const batch = `{"queries":[${Array.from({ length: BATCH_QUERIES }, (_, i) => texts[i % texts.length]).join(',')}]}`;
    const batches = [postRequest(`${QUERY_PATH}/batch`, batch)];
    await compareReplies(sides, requests.slice(0, 16));
    const rate = (name: string, turn: Turn) => measure(name, '/s', sides, plan, turn);
    results.push(
      ...(await oneAtATime(sides, requests, plan)),
      await cpuTime(sides, requests, CLIENT_COUNT, plan),
      await rate(`${CLIENT_COUNT} clients, JSON queries`, async (server) =>
        rateOf(await send(server, requests, CLIENT_COUNT, plan)),
      ),
      await rate(`${CLIENT_COUNT} clients, base64 queries`, async (server) =>
        rateOf(await send(server, base64Requests, CLIENT_COUNT, plan)),
      ),
      await rate(
        `JSON batches of ${BATCH_QUERIES}, queries`,
        async (server) => BATCH_QUERIES * rateOf(await send(server, batches, 1, plan)),
      ),
      await selfJoin(sides, data, { ...plan, turnCount: Math.min(plan.turnCount, JOIN_COUNT) }),
      await restart(sides, requests[0]!, {
        ...plan,
        turnCount: Math.min(plan.turnCount, START_COUNT),
      }),
    );
    return results;
  });
}

/** Measures a load, single queries and a start, for collections that would take long to load as JSON. */
export function runLargeRestPair(
  roots: readonly string[],
  data: DataSet,
  plan: TurnPlan,
): Promise<RestResult[]> {
  return withSides(roots, data, async (sides) => {
    const loads = await loadArrow(sides, data);
    const requests = data.queries.map((query) =>
      postRequest(QUERY_PATH, JSON.stringify({ vector: [...query], top_k: 10 })),
    );
    await compareReplies(sides, requests.slice(0, 16));
    return [
      ...loads,
      ...(await oneAtATime(sides, requests, plan)),
      await restart(sides, requests[0]!, {
        ...plan,
        turnCount: Math.min(plan.turnCount, START_COUNT),
      }),
    ];
  });
}

/** Starts a server of each checkout, with two empty collections. */
async function withSides(
  roots: readonly string[],
  { dimension }: DataSet,
  run: (sides: readonly Side[]) => Promise<RestResult[]>,
): Promise<RestResult[]> {
  const sides: Side[] = [];
  try {
    for (const root of roots) sides.push(await openSide(root));
    for (const { server } of sides) {
      await createCollection(server, 'bench', dimension);
      await createCollection(server, 'upserts', dimension);
    }
    return await run(sides);
  } finally {
    for (const side of sides) {
      await side.server.stop();
      await rm(side.directory, { recursive: true, force: true });
    }
  }
}

async function createCollection(
  { url }: ServerProcess,
  id: string,
  dimension: number,
): Promise<void> {
  const created = await fetch(`${url}/v1/collections`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id, dimension, metric: 'cosine' }),
  });
  if (!created.ok) throw new Error(`creating a collection: ${await created.text()}`);
}

/** Loads one stream per block, since a buffer cannot hold the bytes of all rows. */
async function loadArrow(
  sides: readonly Side[],
  { blocks, starts }: DataSet,
): Promise<RestResult[]> {
  const before = await Promise.all(sides.map(({ server }) => cpuSeconds(server)));
  const rates: number[][] = sides.map(() => []);
  let rowsLoaded = 0;
  for (const [turn, { values, rowCount, dimension }] of blocks.entries()) {
    const rows = { values, rowCount, dimension, idOf: (row: number) => idOf(starts[turn]! + row) };
    const body = arrowStream(rows, 2_048);
    for (const index of turn % 2 === 0 ? [0, 1] : [1, 0]) {
      const target = `${sides[index]!.server.url}/v1/collections/bench/vectors`;
      const { seconds } = await sendRequest(target, { headers: { 'content-type': ARROW }, body });
      rates[index]!.push(rowCount / seconds);
    }
    rowsLoaded += rowCount;
  }
  await waitUntilIdle(sides);
  const cpuMs = await Promise.all(
    sides.map(async ({ server }, index) => {
      const ticks = Math.round(((await cpuSeconds(server)) - before[index]!) * 100);
      return (Math.max(1, ticks) * 10_000) / rowsLoaded;
    }),
  );
  const what = 'CPU of 1 000 rows loaded, sealed and compacted';
  return [
    { name: 'Arrow load, rows', unit: '/s', ...compareFigures(rates[0]!, rates[1]!) },
    { name: what, unit: 'ms', ...compareFigures([cpuMs[0]!], [cpuMs[1]!]) },
  ];
}

/** The share of a core below which a server is idle, and how long it is watched and waited for. */
const IDLE_SHARE_MAX = 0.05;
const IDLE_WATCH_MS = 500;
const IDLE_WATCHES_MAX = 120;

/** Waits for checkpoints and compactions, which follow a load in the background and occupy both cores. */
async function waitUntilIdle(sides: readonly Side[]): Promise<void> {
  for (const { server } of sides) {
    for (let watch = 0; watch < IDLE_WATCHES_MAX; watch++) {
      const before = await cpuSeconds(server);
      await sleep(IDLE_WATCH_MS);
      const used = (await cpuSeconds(server)) - before;
      if (used <= (IDLE_SHARE_MAX * IDLE_WATCH_MS) / 1000) break;
    }
  }
}

/** Returns the CPU time of the threads of the process, which live as long as it does. */
async function cpuSeconds({ child }: ServerProcess): Promise<number> {
  const folder = `/proc/${child.pid}/task`;
  let nanoseconds = 0;
  for (const thread of await readdir(folder)) {
    const [onCpu] = (await readFile(join(folder, thread, 'schedstat'), 'utf8')).split(' ');
    nanoseconds += Number(onCpu);
  }
  return nanoseconds / 1e9;
}

/** Measures latencies, and the CPU time of the server, which says more on a busy machine. */
async function oneAtATime(
  sides: readonly Side[],
  requests: readonly Buffer[],
  plan: TurnPlan,
): Promise<RestResult[]> {
  const latency = (name: string, share: number) =>
    measure(`one JSON query at a time, ${name}`, 'ms', sides, plan, async (server) =>
      quantile((await send(server, requests, 1, plan)).latenciesMs, share),
    );
  return [
    await latency('p50', 0.5),
    await latency('p99', 0.99),
    await cpuTime(sides, requests, 1, plan),
  ];
}

/** Measures the CPU time of all threads of the server per query. */
function cpuTime(
  sides: readonly Side[],
  requests: readonly Buffer[],
  clientCount: number,
  plan: TurnPlan,
): Promise<RestResult> {
  const clients = clientCount === 1 ? 'one client' : `${clientCount} clients`;
  const name = `CPU time of the server per JSON query, ${clients}`;
  return measure(name, 'ms', sides, plan, async (server) => {
    const before = await cpuSeconds(server);
    const { latenciesMs } = await send(server, requests, clientCount, plan);
    return (((await cpuSeconds(server)) - before) * 1000) / latenciesMs.length;
  });
}

/** Each turn finds the near duplicates of the same sample of rows among all rows. */
function selfJoin(
  sides: readonly Side[],
  { rowCount }: DataSet,
  plan: TurnPlan,
): Promise<RestResult> {
  const count = Math.min(JOINED_ROWS, rowCount);
  const body = Buffer.from(JSON.stringify({ score_threshold: DUPLICATE_SCORE, sample: count }));
  const headers = { 'content-type': 'application/json', accept: ARROW };
  return measure(`self-join at ${DUPLICATE_SCORE}, rows`, '/s', sides, plan, async ({ url }) => {
    const { seconds } = await sendRequest(`${url}/v1/collections/bench/join`, { headers, body });
    return count / seconds;
  });
}

async function openSide(root: string): Promise<Side> {
  const path = join(root, 'dist', 'test', 'support', 'server-process.js');
  const module = (await import(pathToFileURL(path).href)) as {
    startServerProcess: typeof startServerProcess;
  };
  const directory = await mkdtemp(join(tmpdir(), 'sagitta-bench-'));
  const start = () => module.startServerProcess({ dataDirectory: directory, ...COMMAND_SETTINGS });
  return { start, directory, server: await start() };
}

/** Upserts the first rows, with a few requests in each turn. */
async function upsert(sides: readonly Side[], data: DataSet): Promise<RestResult> {
  const clients = sides.map(({ server }) => openRawClient(server.url));
  const { dimension } = data;
  const rates: number[][] = sides.map(() => []);
  let turn = 0;
  for (const requests of upsertTurns(data)) {
    for (const index of turn++ % 2 === 0 ? [0, 1] : [1, 0]) {
      const startedAt = performance.now();
      for (const request of requests) await clients[index]!.send(request);
      const seconds = (performance.now() - startedAt) / 1000;
      rates[index]!.push((requests.length * UPSERT_ROWS) / seconds);
    }
  }
  for (const client of clients) client.close();
  const name = `JSON upserts of ${UPSERT_ROWS} × ${dimension}, one client, durable, rows`;
  return { name, unit: '/s', ...compareFigures(rates[0]!, rates[1]!) };
}

/** Returns the requests of each turn. Rows at the end of a block that do not fill a request are left out. */
function* upsertTurns({ blocks, starts, dimension }: DataSet): Generator<Buffer[]> {
  let requests: Buffer[] = [];
  for (const [index, block] of blocks.entries()) {
    for (let from = 0; from + UPSERT_ROWS <= block.rowCount; from += UPSERT_ROWS) {
      if (starts[index]! + from >= UPSERT_ROWS_MAX) return;
      const vectors = Array.from({ length: UPSERT_ROWS }, (_, i) => {
        const row = from + i;
        const values = block.values.subarray(row * dimension, (row + 1) * dimension);
        // Float32 as most clients write it: with the digits that distinguish it from its neighbours.
        const numbers = Array.from(values, (value) => Number(value.toPrecision(9)));
        return { id: idOf(starts[index]! + row), values: numbers, metadata: { n: row } };
      });
      requests.push(postRequest('/v1/collections/upserts/vectors', JSON.stringify({ vectors })));
      if (requests.length < UPSERTS_PER_TURN) continue;
      yield requests;
      requests = [];
    }
  }
  if (requests.length > 0) yield requests;
}

/** Throws if the two reply with different matches. */
async function compareReplies(sides: readonly Side[], requests: readonly Buffer[]): Promise<void> {
  const clients = sides.map(({ server }) => openRawClient(server.url));
  for (const request of requests) {
    const [expected, found] = await Promise.all(
      clients.map(async (client) => {
        const { matches } = JSON.parse((await client.send(request)).toString());
        return JSON.stringify(matches);
      }),
    );
    if (expected !== found) throw new Error(`expected ${expected} as before, found ${found}`);
  }
  for (const client of clients) client.close();
}

type Turn = (server: ServerProcess) => Promise<number>;

async function measure(
  name: string,
  unit: RestResult['unit'],
  sides: readonly Side[],
  plan: TurnPlan,
  turn: Turn,
): Promise<RestResult> {
  const compared = await takeTurns(plan, (side) => turn(sides[side]!.server));
  return { name, unit, ...compared };
}

interface Sent {
  readonly latenciesMs: readonly number[];
  readonly seconds: number;
}

/** Each client sends one request after another for the duration of a turn. */
async function send(
  { url }: ServerProcess,
  requests: readonly Buffer[],
  clientCount: number,
  { turnSeconds }: TurnPlan,
): Promise<Sent> {
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  const endsAt = startedAt + turnSeconds * 1000;
  let next = 0;
  const sendAll = async (client: RawClient) => {
    for (let sentAt = performance.now(); sentAt < endsAt; ) {
      await client.send(requests[next++ % requests.length]!);
      const now = performance.now();
      latenciesMs.push(now - sentAt);
      sentAt = now;
    }
    client.close();
  };
  await Promise.all(Array.from({ length: clientCount }, () => sendAll(openRawClient(url))));
  return { latenciesMs, seconds: (performance.now() - startedAt) / 1000 };
}

function rateOf({ latenciesMs, seconds }: Sent): number {
  return latenciesMs.length / seconds;
}

/** Measures from the start of the process to the answer to the first query. */
async function restart(
  sides: readonly Side[],
  request: Buffer,
  plan: TurnPlan,
): Promise<RestResult> {
  const sideOf = new Map(sides.map((side) => [side.server, side]));
  return measure('start to first answer', 'ms', sides, plan, async (server) => {
    const side = sideOf.get(server)!;
    await server.stop();
    const startedAt = performance.now();
    side.server = await side.start();
    sideOf.set(side.server, side);
    const client = openRawClient(side.server.url);
    await client.send(request);
    client.close();
    return performance.now() - startedAt;
  });
}

function base64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
}
