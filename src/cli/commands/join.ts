// `sagitta join`: finds the nearest neighbours of every vector of a collection, in another collection or
// in the same one.

import type { StreamFormat } from '@sagitta/client';
import { type Command, Option } from 'commander';
import { METRICS, type Metric } from '../../common/types.js';
import { addConnectionOptions, type ConnectionOptions, connect } from '../service/connection.js';
import { EXIT_CODES_TEXT, usageError } from '../terminal/failure.js';
import { anyNumber, readJsonObject, wholeNumber } from '../terminal/option-values.js';
import {
  MATCH_FORMATS,
  type MatchFormat,
  toFileFormat,
  WRITE_FORMATS,
  writeFormatOf,
} from '../writers/formats.js';
import {
  addOutputFileOptions,
  checkOutput,
  countBytes,
  type OutputFileOptions,
  printResult,
  progressOf,
  writeFile,
} from '../writers/output-file.js';
import { requireWhole } from '../writers/whole-reply.js';

const EXAMPLES = `
Uses every vector of the collection as a query, and searches the collection of
--with or, by default, the same collection, where a vector does not match
itself. NDJSON has one line per vector with its matches; CSV, Arrow and Parquet
have one row per match. With --unordered-pairs, each pair of near vectors is
reported once instead of from both sides. --sample uses only some of the vectors
as queries; --with-sample also limits the matches to a sample, which is the same
one if a collection is joined with itself and both numbers are equal.

Examples:
  $ sagitta join articles --score-threshold 0.95 --unordered-pairs \\
      -o duplicates.csv
  $ sagitta join questions --with articles --top-k 5 -o results.arrow
  $ sagitta join new --with articles --top-k 1 --metadata \\
      --filter '{"day": "2026-11-21"}'

${EXIT_CODES_TEXT}`;

interface JoinOptions extends ConnectionOptions, OutputFileOptions<MatchFormat> {
  readonly with?: string;
  readonly topK?: number;
  readonly scoreThreshold?: number;
  readonly filter?: string;
  readonly withFilter?: string;
  readonly sample?: number;
  readonly withSample?: number;
  readonly seed?: number;
  readonly includeSelf?: boolean;
  readonly unorderedPairs?: boolean;
  readonly metric?: Metric;
  readonly metadata?: boolean;
}

export function defineJoin(command: Command): void {
  command
    .argument('<collection>', 'collection whose vectors are the queries')
    .option('--with <collection>', 'collection to search (default: the same one)')
    .option('-k, --top-k <n>', 'number of matches per vector', wholeNumber(1, 1e9))
    .option('--score-threshold <n>', 'minimum score of a match', anyNumber('--score-threshold'))
    .option('--filter <json|@file>', 'use only vectors that match as queries')
    .option('--with-filter <json|@file>', 'search only vectors that match')
    .option('--sample <n>', 'use a sample of n queries, chosen by id', wholeNumber(1, 1e12))
    .option('--with-sample <n>', 'search a sample of n vectors', wholeNumber(1, 1e12))
    .option('--seed <n>', 'seed that selects the samples', wholeNumber(0, 2 ** 32 - 1))
    .option('--include-self', 'let a vector match itself')
    .option('--unordered-pairs', 'report each pair once; only with --score-threshold')
    .addOption(new Option('--metric <name>', "metric (default: the collection's)").choices(METRICS))
    .option('--metadata', 'include the metadata of each match');
  addOutputFileOptions(command, MATCH_FORMATS).addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(runJoin);
}

async function runJoin(id: string, options: JoinOptions): Promise<void> {
  const start = performance.now();
  const { topK, scoreThreshold, metric, filter, withFilter } = options;
  if (topK === undefined && scoreThreshold === undefined) {
    throw usageError('expected --top-k, --score-threshold or both, found neither');
  }
  const format = writeFormatOf(MATCH_FORMATS, options.format, options.output);
  checkOutput(options);
  const request = {
    ...(options.with !== undefined && { with: options.with }),
    ...(topK !== undefined && { topK }),
    ...(scoreThreshold !== undefined && { scoreThreshold }),
    ...(filter !== undefined && { filter: readJsonObject('--filter', filter) }),
    ...(withFilter !== undefined && { withFilter: readJsonObject('--with-filter', withFilter) }),
    ...(options.sample !== undefined && { sample: options.sample }),
    ...(options.withSample !== undefined && { withSample: options.withSample }),
    ...(options.seed !== undefined && { seed: options.seed }),
    ...(options.includeSelf && { excludeSelf: false }),
    ...(options.unorderedPairs && { unorderedPairs: true }),
    ...(metric !== undefined && { metric }),
    ...(options.metadata && { includeMetadata: true }),
  };
  const progress = progressOf(`${id}:`, options);
  const { wire } = WRITE_FORMATS[format];
  const { body, rowCount } = await connect(options)
    .collection(id)
    .joinStream(request, { format: wire });
  let isDone = false;
  const onRows = (count: number | undefined) =>
    progress?.update(count, count && rowCount ? count / rowCount : undefined);
  const watch = {
    onRows,
    onBytes: (count: number) => progress?.update(undefined, undefined, count),
  };
  const stream = await watchRows(requireWhole(wire, body), wire, watch);
  try {
    await writeFile(await toFileFormat(stream, format), options);
    onRows(rowCount);
    isDone = true;
  } finally {
    progress?.end(isDone);
    // An unread reply would keep the process alive.
    await body.cancel();
  }
  const other = options.with ?? 'itself';
  const summary = {
    collection: id,
    rows: rowCount,
    with: options.with ?? id,
    format,
    file: options.output ?? null,
  };
  printResult(`the join of ${id} with ${other}`, summary, options, start);
}

interface JoinProgress {
  /** Receives the number of rows joined so far. */
  readonly onRows: (rowsDone: number) => void;
  /** Receives the number of bytes so far, in formats whose rows cannot be counted. */
  readonly onBytes: (byteCount: number) => void;
}

/** Passes the bytes on unchanged. */
async function watchRows(
  body: AsyncIterable<Uint8Array>,
  wire: StreamFormat,
  { onRows, onBytes }: JoinProgress,
): Promise<AsyncIterable<Uint8Array>> {
  if (wire === 'ndjson') return countLines(body, onRows);
  if (wire !== 'arrow') return countBytes(body, onBytes);
  const { watchBatches } = await import('../writers/arrow-file.js');
  return watchBatches(body, (metadata) => onRows(Number(metadata.get('rows_done') ?? 0)));
}

const NEWLINE = 0x0a;

async function* countLines(
  body: AsyncIterable<Uint8Array>,
  onRows: (lineCount: number) => void,
): AsyncGenerator<Uint8Array> {
  let lineCount = 0;
  for await (const chunk of body) {
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) {
      lineCount++;
    }
    onRows(lineCount);
    yield chunk;
  }
}
