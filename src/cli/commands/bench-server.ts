// Measures a running server: single queries from several clients at once for some seconds, each sent
// when the one before it is answered; how many a second, and how long each took.

import type { Client } from '../../client/client.js';
import type { Metric } from '../../common/types.js';
import { usageError } from '../failure.js';
import { formatCount } from '../progress.js';
import { openVectors } from '../readers/formats.js';

export interface ServerBenchOptions {
  readonly collection: string;
  readonly clients: number;
  readonly seconds: number;
  readonly topK: number;
  readonly file?: string;
  readonly json?: boolean;
}

/** As many queries are told apart; more of them would fill the memory, not the caches. */
const QUERIES_MAX = 1_000;
/** Answered before the clock starts: connections are open then. */
const WARM_UP_QUERIES = 2;

export interface ServerBenchResult {
  readonly collection: string;
  readonly vectors: number;
  readonly dimension: number;
  readonly metric: Metric;
  readonly clients: number;
  readonly queries: number;
  readonly queries_per_second: number;
  readonly p50_ms: number;
  readonly p95_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
}

export async function benchServer(client: Client, options: ServerBenchOptions): Promise<void> {
  const result = await measure(client, options);
  process.stdout.write(options.json ? `${JSON.stringify(result)}\n` : describe(result, options));
}

async function measure(client: Client, options: ServerBenchOptions): Promise<ServerBenchResult> {
  const { collection, clients, topK } = options;
  const { dimension, metric, vector_count } = await client.collections.get(collection);
  const queries =
    options.file === undefined
      ? randomQueries(dimension)
      : await readQueries(options.file, dimension);
  const vectors = client.collection(collection);
  let next = 0;
  const ask = async (): Promise<void> => {
    await vectors.query({ vector: queries[next++ % queries.length]!, top_k: topK });
  };
  await inParallel(clients, async () => {
    for (let at = 0; at < WARM_UP_QUERIES; at++) await ask();
  });
  const durations: number[] = [];
  const start = performance.now();
  const end = start + options.seconds * 1000;
  await inParallel(clients, async () => {
    for (let from = performance.now(); from < end; ) {
      await ask();
      const to = performance.now();
      durations.push(to - from);
      from = to;
    }
  });
  const seconds = (performance.now() - start) / 1000;
  durations.sort((left, right) => left - right);
  const at = (share: number): number =>
    round(durations[Math.min(durations.length - 1, Math.floor(durations.length * share))]!);
  return {
    collection,
    vectors: vector_count,
    dimension,
    metric,
    clients,
    queries: durations.length,
    queries_per_second: round(durations.length / seconds),
    p50_ms: at(0.5),
    p95_ms: at(0.95),
    p99_ms: at(0.99),
    max_ms: at(1),
  };
}

async function inParallel(count: number, work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, work));
}

function randomQueries(dimension: number): Float32Array[] {
  return Array.from({ length: QUERIES_MAX }, () =>
    Float32Array.from({ length: dimension }, () => Math.random() * 2 - 1),
  );
}

async function readQueries(path: string, dimension: number): Promise<Float32Array[]> {
  const { reader } = await openVectors(path, {
    dataset: 'test',
    rowsPerBatch: QUERIES_MAX,
  });
  for await (const batch of reader.batches(0)) {
    if (batch.dimension !== dimension) {
      throw usageError(
        `${path}: found ${batch.dimension} values, expected the ${dimension} of the collection`,
      );
    }
    return Array.from({ length: batch.rowCount }, (_, row) =>
      batch.values.subarray(row * dimension, (row + 1) * dimension),
    );
  }
  throw usageError(`${path}: found no queries`);
}

function describe(result: ServerBenchResult, { topK, file }: ServerBenchOptions): string {
  const what = file === undefined ? 'random queries' : `queries of ${file}`;
  return `${result.collection}: ${formatCount(result.vectors)} × ${result.dimension}, ${result.metric}
${what}, top ${topK}, ${result.clients} at a time: ${formatCount(result.queries)} answered
${result.queries_per_second} queries/s   p50 ${result.p50_ms} ms   p95 ${result.p95_ms} ms   p99 ${result.p99_ms} ms   max ${result.max_ms} ms
`;
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
