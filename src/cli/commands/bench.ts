// `sagitta bench`: measures a running server with single queries from several concurrent clients, or runs the compiled
// benches, if the installation includes them, and passes their options on.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import type { Client } from '@sagitta/client';
import { type Command, Option } from 'commander';
import { packageFile } from '../../common/package-files.js';
import type { Metric } from '../../common/types.js';
import { ENGINE_CHOICES } from '../../platform/config.js';
import { openVectors } from '../../readers/formats.js';
import { openInput } from '../files/file-source.js';
import { addConnectionOptions, type ConnectionOptions, connect } from '../service/connection.js';
import { CliError, EXIT_CODES, EXIT_CODES_TEXT, usageError } from '../terminal/failure.js';
import { wholeNumber } from '../terminal/option-values.js';
import { pluralize } from '../terminal/units.js';

const EXAMPLES = `
Without --full a bench takes seconds: it only checks that the bench works, and
its figures mean nothing.

Examples:
  $ sagitta bench
  $ sagitta bench engine --full
  $ sagitta bench engine rest --full --out results
  $ sagitta bench engine --full --engine reference
  $ sagitta bench --collection docs --clients 32 --seconds 10
  $ sagitta bench --collection sift --file sift-128-euclidean.hdf5 \\
      --url http://10.0.0.5:8484

With --collection it queries a running server with random vectors or those of
--file.

${EXIT_CODES_TEXT}`;

interface BenchOptions extends ConnectionOptions {
  readonly collection?: string;
  readonly clients: number;
  readonly seconds: number;
  readonly topK: number;
  readonly file?: string;
  readonly json?: boolean;
  readonly full?: boolean;
  readonly out?: string;
  readonly engine?: string;
}

export function defineBench(command: Command): void {
  command
    .argument('[names...]', 'benches to run (default: all)')
    .option('--full', 'the sizes of docs/performance.md; takes half an hour')
    .option('--out <directory>', 'also write a Markdown file per bench')
    .addOption(new Option('--engine <name>', 'engine for the engine bench').choices(ENGINE_CHOICES))
    .option('-c, --collection <id>', 'query this collection on a running server')
    .option('--clients <n>', 'number of concurrent clients', wholeNumber(1, 1_000), 8)
    .option('--seconds <n>', 'duration of the measurement', wholeNumber(1, 3_600), 5)
    .option('-k, --top-k <n>', 'number of matches per query', wholeNumber(1, 1e6), 10)
    .option('--file <file>', 'read query vectors from a file, in any format of sagitta import')
    .option('--json', 'print the figures of a server as JSON')
    .addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(async (names: readonly string[], options: BenchOptions) => {
    const { collection } = options;
    if (collection !== undefined) {
      if (names.length > 0) {
        throw usageError(
          `--collection measures a server and cannot be combined with the bench ${names[0]}`,
        );
      }
      return await benchServer(connect(options), { ...options, collection });
    }
    process.exitCode = await runBench(benchPath(), [...names, ...toArguments(options)]);
  });
}

function toArguments({ full, out, engine }: BenchOptions): string[] {
  return [
    ...(full === true ? ['--full'] : []),
    ...(out === undefined ? [] : ['--out', out]),
    ...(engine === undefined ? [] : ['--engine', engine]),
  ];
}

function benchPath(): string {
  const path = packageFile('dist/bench/main.js');
  if (existsSync(path)) return path;
  throw new CliError(
    `this installation contains no benches (expected ${path}). ` +
      'They are part of the source repository; npm run build compiles them.',
  );
}

/** Runs the bench in a child process that inherits stdio. Returns its exit code. */
function runBench(path: string, args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [path, ...args], { stdio: 'inherit' });
  const forward = (signal: NodeJS.Signals): void => {
    child.kill(signal);
  };
  process.on('SIGTERM', forward);
  process.on('SIGINT', forward);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      resolve(code ?? (signal === null ? EXIT_CODES.failure : 128 + constants.signals[signal]));
    });
  });
}

interface ServerBenchOptions extends BenchOptions {
  readonly collection: string;
}

/** Number of distinct queries: enough to defeat caches, few enough to keep in memory. */
const QUERIES_MAX = 1_000;
/** Queries per client before the measurement, to open the connections. */
const WARM_UP_QUERIES = 2;

interface ServerBenchResult {
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

async function benchServer(client: Client, options: ServerBenchOptions): Promise<void> {
  const result = await measure(client, options);
  process.stdout.write(options.json ? `${JSON.stringify(result)}\n` : describe(result, options));
}

async function measure(client: Client, options: ServerBenchOptions): Promise<ServerBenchResult> {
  const { collection, clients, topK } = options;
  const { dimension, metric, vector_count } = await client.collections.get(collection);
  if (dimension === undefined || metric === undefined) {
    throw usageError(`collection ${collection} has no unnamed vectors, which this bench searches`);
  }
  const queries =
    options.file === undefined
      ? randomQueries(dimension)
      : await readQueries(options.file, dimension);
  const vectors = client.collection(collection);
  let next = 0;
  const query = async (): Promise<void> => {
    await vectors.query({ vector: queries[next++ % queries.length]!, top_k: topK });
  };
  await inParallel(clients, async () => {
    for (let at = 0; at < WARM_UP_QUERIES; at++) await query();
  });
  const durations: number[] = [];
  const start = performance.now();
  const end = start + options.seconds * 1000;
  await inParallel(clients, async () => {
    for (let from = performance.now(); from < end; ) {
      await query();
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
  const reader = await openVectors(await openInput(path), {
    dataset: 'test',
    rowsPerBatch: QUERIES_MAX,
  });
  for await (const batch of reader.batches(0)) {
    if (batch.dimension !== dimension) {
      throw usageError(
        `${path}: found vectors of ${batch.dimension} values, but the collection has dimension ${dimension}`,
      );
    }
    return Array.from({ length: batch.rowCount }, (_, row) =>
      batch.values.subarray(row * dimension, (row + 1) * dimension),
    );
  }
  throw usageError(`${path}: the file contains no vectors`);
}

function describe(result: ServerBenchResult, { topK, file }: ServerBenchOptions): string {
  const what = file === undefined ? 'random queries' : `queries from ${file}`;
  return `collection ${result.collection}: ${pluralize(result.vectors, 'vector')}, dimension ${result.dimension}, ${result.metric}
${what}, top_k ${topK}, ${pluralize(result.clients, 'client')}: ${pluralize(result.queries, 'query', 'queries')} answered
${result.queries_per_second} queries/s   p50 ${result.p50_ms} ms   p95 ${result.p95_ms} ms   p99 ${result.p99_ms} ms   max ${result.max_ms} ms
`;
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
