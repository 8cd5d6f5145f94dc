// Bulk operations over loopback against a real server process with its store on disk: streams in both
// directions, batches of queries, self-joins, one of which finds near duplicates among sentences. Search rates are
// compared with the same queries on the engine alone, measured in the same run.
//
//   node dist/bench/batches.js                smoke parameters: a few seconds, only checks the bench
//   node dist/bench/batches.js --full         100 000 × 768, as docs/performance.md quotes it
//   node dist/bench/batches.js --out FILE     also writes the table as Markdown

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { tableFromIPC } from 'apache-arrow';
import { silentLogger } from '../src/common/logger.js';
import { createEngine } from '../src/engine/choose-engine.js';
import type { SearchQuery } from '../src/engine/core/engine.js';
import { createThreadPool } from '../src/platform/pool.js';
import {
  createCaller,
  type ServerProcess,
  startServerProcess,
} from '../test/support/server-process.js';
import { ARROW, arrowStream, memoryOf, NDJSON, type Rows, sendRequest } from './batches/wire.js';
import { createDataSet, type DataSet, encodeData, idOf } from './engine/data.js';
import { COMMAND_SETTINGS, describeMachine } from './engine/machine.js';
import { readOptions } from './engine/options.js';
import { quantile } from './engine/timing.js';
import { findMissing } from './engine/vectors.js';

const SMOKE = { joined: { rowCount: 2_000, dimension: 64 }, ndjsonRows: 1_000, streamed: 5_000 };
const FULL = {
  joined: { rowCount: 20_000, dimension: 256 },
  ndjsonRows: 20_000,
  streamed: 100_000,
};
const ROUNDS = 5;
const BATCH_ROWS = 2_048;
const JSON_BATCH = 256;
const K = 10;
/** Pairs of sentences with this score are near duplicates; a row has fewer of them than DUPLICATES_MAX. */
const DUPLICATE_SCORE = 0.9;
const DUPLICATES_MAX = 256;
const STREAM_BATCH = 1_000;
/** The end-of-stream marker of Arrow. */
const END_BYTES = 8;

const { values: args } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const sizes = args.full ? FULL : SMOKE;
const { parameters } = readOptions(args.full ? ['--full'] : []);
const lines: string[] = [];
const pool = createThreadPool();
const { engine } = await createEngine({ requested: 'auto', pool, logger: silentLogger });
const directories: string[] = [];
try {
  await measureWide();
  await measureSelfJoin();
  await measureDuplicates();
} finally {
  await engine.close();
  await pool.close();
  for (const directory of directories) await rm(directory, { recursive: true, force: true });
}
const table = [
  `Batches bench, ${args.full ? 'full' : 'smoke'} parameters, engine ${engine.name}`,
  describeMachine(),
  '',
  '| operation | measured | goal |',
  '| --- | --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

/** Measures ingest, queries and export with 100 000 × 768. */
async function measureWide(): Promise<void> {
  const drawn = createDataSet('clusters', parameters);
  const rows = rowsOf(drawn);
  const { data } = await encodeData(engine, drawn);
  const server = await startServer();
  try {
    await ingestArrow(server, rows);
    const url = `${server.url}/v1/collections/bench`;
    await queries(url, data);
    await exported(url, rows);
    await ingestNdjson(server, rows);
  } finally {
    await server.stop();
  }
}

async function ingestArrow(server: ServerProcess, rows: Rows): Promise<void> {
  await createCollection(server, 'bench', rows.dimension);
  const body = arrowStream(rows, BATCH_ROWS);
  const before = await memoryOf(server);
  const { seconds } = await sendRequest(`${server.url}/v1/collections/bench/vectors`, {
    headers: { 'content-type': ARROW },
    body,
  });
  const { peak, now } = await memoryOf(server);
  const stored = rows.rowCount * (rows.dimension * 4 + 8);
  add(
    `Arrow ingest, ${rows.rowCount} × ${rows.dimension}, one stream, durable`,
    `${(body.length / seconds / 1e6).toFixed(0)} MB/s`,
    '150 MB/s',
  );
  add(
    'peak resident memory (before, after)',
    `${megabytes(peak)} MB (${megabytes(before.now)}, ${megabytes(now)}) for ${megabytes(stored)} MB of data`,
    `${megabytes(1.3 * stored + 300e6)} MB`,
  );
}

async function ingestNdjson(server: ServerProcess, rows: Rows): Promise<void> {
  await createCollection(server, 'lines', rows.dimension);
  const count = Math.min(sizes.ndjsonRows, rows.rowCount);
  const texts = Array.from({ length: count }, (_, row) => {
    const values = rows.values.subarray(row * rows.dimension, (row + 1) * rows.dimension);
    // Numbers in the shortest decimal form of float32.
    const numbers = Array.from(values, (value) => Number(value.toPrecision(8)));
    return JSON.stringify({ id: idOf(row), values: numbers, metadata: { n: row } });
  });
  const body = Buffer.from(texts.join('\n'));
  const { seconds } = await sendRequest(`${server.url}/v1/collections/lines/vectors`, {
    headers: { 'content-type': NDJSON },
    body,
  });
  add(
    `NDJSON ingest, ${count} × ${rows.dimension}, one stream, durable`,
    `${(body.length / seconds / 1e6).toFixed(0)} MB/s, ${Math.round(count / seconds)} rows/s`,
    '25 MB/s',
  );
}

async function queries(url: string, data: DataSet): Promise<void> {
  const plan = { k: K, scoreMin: null, roundCount: ROUNDS };
  const { rate: engineAlone } = await searchAlone(data, data.queries, plan);
  const some = data.queries.slice(0, JSON_BATCH);
  const { rate: engineAloneJson } = await searchAlone(data, some, plan);
  const body = arrowStream(rowsOfQueries(data.queries), 256);
  const headers = { 'content-type': ARROW, accept: ARROW };
  const target = `${url}/query/batch?top_k=${K}`;
  const { body: reply } = await sendRequest(target, { headers, body, keepsBody: true });
  await checkReply(reply, data);
  const rates = await rounds(async () => {
    const { seconds } = await sendRequest(target, { headers, body });
    return data.queries.length / seconds;
  });
  addShare(`Arrow batch of ${data.queries.length} queries, k = ${K}`, rates, engineAlone, 75);

  const texts = data.queries
    .slice(0, JSON_BATCH)
    .map((query) => `{"vector":[${Array.from(query).join()}],"top_k":${K}}`);
  const json = Buffer.from(`{"queries":[${texts.join()}]}`);
  const jsonRates = await rounds(async () => {
    const { seconds } = await sendRequest(`${url}/query/batch`, {
      headers: { 'content-type': 'application/json' },
      body: json,
    });
    return JSON_BATCH / seconds;
  });
  addShare(`JSON batch of ${JSON_BATCH} queries`, jsonRates, engineAloneJson, 45);
}

async function exported(url: string, rows: Rows): Promise<void> {
  for (const format of ['arrow', 'ndjson', 'parquet']) {
    const rates = await rounds(
      async () => {
        const target = `${url}/export?format=${format}`;
        const { byteCount, seconds } = await sendRequest(target, { method: 'GET' });
        return byteCount / seconds / 1e6;
      },
      format === 'arrow' ? ROUNDS : 1,
    );
    const goal = format === 'arrow' ? '300 MB/s' : '';
    const what = `export as ${format}, ${rows.rowCount} × ${rows.dimension}`;
    add(what, `${quantile(rates, 0.5).toFixed(0)} MB/s`, goal);
  }
}

/** Measures a self-join with 20 000 × 256, and a stream of 100 000 queries. */
async function measureSelfJoin(): Promise<void> {
  const drawn = createDataSet('clusters', {
    ...parameters,
    data: { ...parameters.data, clusters: { kind: 'clusters', shape: sizes.joined } },
  });
  const rows = rowsOf(drawn);
  const { data } = await encodeData(engine, drawn);
  const server = await startServer();
  try {
    await createCollection(server, 'bench', rows.dimension);
    const url = `${server.url}/v1/collections/bench`;
    await sendRequest(`${url}/vectors`, {
      headers: { 'content-type': ARROW },
      body: arrowStream(rows, BATCH_ROWS),
    });
    await selfJoin(url, rows, data);
    await longStream(server, url, rows);
  } finally {
    await server.stop();
  }
}

async function selfJoin(url: string, rows: Rows, data: DataSet): Promise<void> {
  // One more match, since the row itself is found and dropped.
  const all = vectorsOf(rows);
  const { rate } = await searchAlone(data, all, { k: K + 1, scoreMin: null, roundCount: 1 });
  const rates = await rounds(async () => {
    const { seconds } = await sendJoin(url, { top_k: K });
    return rows.rowCount / seconds;
  }, 3);
  addShare(`self-join of ${rows.rowCount} × ${rows.dimension}, k = ${K}`, rates, rate, 75);
}

/** Measures the load of sentences, and a join that finds each pair of near duplicates once. */
async function measureDuplicates(): Promise<void> {
  const missing = findMissing(parameters.data.sentences);
  if (missing !== null) {
    add('near duplicates of sentences', missing, '');
    return;
  }
  const drawn = createDataSet('sentences', parameters);
  const rows = rowsOf(drawn);
  const size = `${rows.rowCount} × ${rows.dimension} sentences`;
  const { data } = await encodeData(engine, drawn);
  const found = await searchAlone(data, vectorsOf(rows), {
    k: DUPLICATES_MAX,
    scoreMin: DUPLICATE_SCORE,
    roundCount: 1,
  });
  const server = await startServer();
  try {
    await createCollection(server, 'bench', rows.dimension);
    const url = `${server.url}/v1/collections/bench`;
    const headers = { 'content-type': ARROW };
    const body = arrowStream(rows, BATCH_ROWS);
    const { seconds } = await sendRequest(`${url}/vectors`, { headers, body });
    add(`Arrow ingest, ${size}`, `${Math.round(rows.rowCount / seconds)} rows/s`, '');
    const request = { score_threshold: DUPLICATE_SCORE, unordered_pairs: true };
    const joined = await sendJoin(url, request, true);
    const pairCount = tableFromIPC(joined.body).numRows;
    // Every row finds itself, and both rows of a pair find each other.
    const expected = (found.hitCount - rows.rowCount) / 2;
    if (pairCount !== expected) throw new Error(`expected ${expected} pairs, found ${pairCount}`);
    const rates = [rows.rowCount / joined.seconds];
    const what = `self-join of ${size} at ${DUPLICATE_SCORE}, ${pairCount} pairs`;
    addShare(what, rates, found.rate, 75);
  } finally {
    await server.stop();
  }
}

function sendJoin(url: string, request: object, keepsBody = false) {
  return sendRequest(`${url}/join`, {
    headers: { 'content-type': 'application/json', accept: ARROW },
    body: Buffer.from(JSON.stringify(request)),
    keepsBody,
  });
}

async function longStream(server: ServerProcess, url: string, rows: Rows): Promise<void> {
  const { dimension, values } = rows;
  const some = arrowStream({ dimension, values, rowCount: STREAM_BATCH }, STREAM_BATCH);
  const head = headOf(some);
  // The same batch repeated between the schema and the end-of-stream marker.
  const batch = some.subarray(head.length, some.length - END_BYTES);
  const body = function* (count: number) {
    yield head;
    for (let sent = 0; sent < count; sent += STREAM_BATCH) yield batch;
    yield some.subarray(some.length - END_BYTES);
  };
  const send = (count: number) =>
    sendRequest(`${url}/query/batch?top_k=${K}`, {
      headers: { 'content-type': ARROW, accept: ARROW },
      body: body(count),
    });
  await send(sizes.streamed / 5);
  const before = await memoryOf(server);
  const { seconds, byteCount } = await send(sizes.streamed);
  const after = await memoryOf(server);
  add(
    `${sizes.streamed} queries in one Arrow stream`,
    `${Math.round(sizes.streamed / seconds)} queries/s, ${megabytes(byteCount)} MB of replies; resident ${megabytes(before.now)} MB before, ${megabytes(after.now)} MB after`,
    'no growth',
  );
}

/** Returns the schema message: a marker, its length, and that many bytes. */
function headOf(stream: Uint8Array): Uint8Array {
  const view = new DataView(stream.buffer, stream.byteOffset);
  return stream.subarray(0, 8 + view.getInt32(4, true));
}

/** Measures the queries per second of the engine alone, in batches as the server forms them. */
async function searchAlone(
  { views }: DataSet,
  vectors: readonly Float32Array[],
  options: { readonly k: number; readonly scoreMin: number | null; readonly roundCount: number },
): Promise<{ readonly rate: number; readonly hitCount: number }> {
  const { k, scoreMin, roundCount } = options;
  const all = vectors.map(
    (vector): SearchQuery => ({ vector, metric: 'cosine', k, views, after: null, scoreMin }),
  );
  await engine.search(all.slice(0, 64));
  let hitCount = 0;
  const rates = await rounds(async () => {
    hitCount = 0;
    const startedAt = performance.now();
    for (let at = 0; at < all.length; at += 1_024) {
      const hits = await engine.search(all.slice(at, at + 1_024));
      for (const { rows } of hits) hitCount += rows.length;
    }
    return (all.length * 1000) / (performance.now() - startedAt);
  }, roundCount);
  return { rate: quantile(rates, 0.5), hitCount };
}

/** Compares the ids of a reply with the engine's. Throws when they differ. */
async function checkReply(reply: Buffer, data: DataSet): Promise<void> {
  const found = tableFromIPC(reply);
  const index = found.getChild('query_index')!;
  const ids = found.getChild('id')!;
  const [hits] = await engine.search([
    {
      vector: data.queries[7]!,
      metric: 'cosine',
      k: K,
      views: data.views,
      after: null,
      scoreMin: null,
    },
  ]);
  const expected = Array.from(hits!.rows, (row, i) =>
    idOf(data.starts[hits!.viewIndexes[i]!]! + row),
  );
  const answered: string[] = [];
  for (let row = 0; row < found.numRows; row++) {
    if (Number(index.get(row)) === 7) answered.push(ids.get(row));
  }
  if (answered.join() !== expected.join())
    throw new Error(`expected ${expected}, found ${answered}`);
}

async function rounds(measure: () => Promise<number>, count = ROUNDS): Promise<number[]> {
  const found: number[] = [];
  for (let i = 0; i < (args.full ? count : 1); i++) found.push(await measure());
  return found;
}

function rowsOf(data: DataSet): Rows {
  const { dimension, rowCount } = data;
  const values = new Float32Array(rowCount * dimension);
  for (const [i, block] of data.blocks.entries()) {
    values.set(block.values.subarray(0, block.rowCount * dimension), data.starts[i]! * dimension);
  }
  return { dimension, rowCount, values, idOf };
}

function vectorsOf({ rowCount, dimension, values }: Rows): Float32Array[] {
  return Array.from({ length: rowCount }, (_, row) =>
    values.subarray(row * dimension, (row + 1) * dimension),
  );
}

function rowsOfQueries(vectors: readonly Float32Array[]): Rows {
  const dimension = vectors[0]!.length;
  const values = new Float32Array(vectors.length * dimension);
  for (const [i, vector] of vectors.entries()) values.set(vector, i * dimension);
  return { dimension, rowCount: vectors.length, values };
}

async function startServer(): Promise<ServerProcess> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-bench-'));
  directories.push(dataDirectory);
  return startServerProcess({
    dataDirectory,
    ...COMMAND_SETTINGS,
  });
}

async function createCollection(
  { url }: ServerProcess,
  id: string,
  dimension: number,
): Promise<void> {
  const { call, close } = createCaller(url, 1);
  const reply = await call('POST', '/v1/collections', { id, dimension, metric: 'cosine' });
  close();
  if (reply.status !== 200) throw new Error(`status ${reply.status}: ${reply.text}`);
}

function addShare(what: string, rates: readonly number[], engineAlone: number, goal: number): void {
  const rate = quantile(rates, 0.5);
  const share = `${Math.round((100 * rate) / engineAlone)} % of the engine's ${Math.round(engineAlone)}`;
  add(what, `${Math.round(rate)} queries/s, ${share}`, `${goal} %`);
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}

function add(what: string, measured: string, goal: string): void {
  lines.push(`| ${what} | ${measured} | ${goal} |`);
  console.error(`${what}: ${measured}`);
}
