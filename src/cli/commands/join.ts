// `sagitta join`: the nearest neighbours in one collection of every row of another, or of itself.

import { type Command, Option } from 'commander';
import { METRICS, type Metric } from '../../common/types.js';
import { addConnectionOptions, type ConnectionOptions, connect } from '../connection.js';
import { EXIT_CODES_TEXT, usageError } from '../failure.js';
import { parseScore, readFilter } from '../filter-option.js';
import { wholeNumber } from '../options.js';
import {
  addFileOptions,
  checkOutput,
  counted,
  type FileOptions,
  printResult,
  progressOf,
  writeFile,
} from '../transfer.js';
import { encodeMatches, writeFormatOf } from '../writers/formats.js';

const FORMATS = ['ndjson', 'csv', 'arrow', 'arrow-stream'] as const;

const EXAMPLES = `
Every row of the collection searches for its nearest in the other one, or in its
own collection, where it does not find itself. A line of NDJSON is a row with
its matches; a line of CSV, as a row of Arrow, is one match.

Examples:
  $ sagitta join articles --score-threshold 0.95 -o duplicates.csv
  $ sagitta join questions --with articles --top-k 5 -o answers.arrow
  $ sagitta join new --with articles --top-k 1 --metadata \\
      --filter '{"day": "2026-11-21"}'

${EXIT_CODES_TEXT}`;

interface JoinOptions extends ConnectionOptions, FileOptions<(typeof FORMATS)[number]> {
  readonly with?: string;
  readonly topK?: number;
  readonly scoreThreshold?: number;
  readonly filter?: string;
  readonly withFilter?: string;
  readonly includeSelf?: boolean;
  readonly metric?: Metric;
  readonly metadata?: boolean;
}

export function addJoinCommand(program: Command): void {
  const command = program
    .command('join')
    .description('find the nearest neighbours of every row of a collection')
    .argument('<collection>', 'the collection whose rows search')
    .option('--with <collection>', 'the one that is searched; itself unless told otherwise')
    .option('-k, --top-k <n>', 'how many of the nearest', wholeNumber(1, 1e9))
    .option('--score-threshold <n>', 'only matches with at least this score', parseScore)
    .option('--filter <json|@file>', 'which rows search')
    .option('--with-filter <json|@file>', 'which rows are searched')
    .option('--include-self', 'a row may find itself')
    .addOption(new Option('--metric <name>', "in place of the collection's").choices(METRICS))
    .option('--metadata', 'the metadata of each match');
  addFileOptions(command, FORMATS).addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(runJoin);
}

async function runJoin(id: string, options: JoinOptions): Promise<void> {
  const start = performance.now();
  const { topK, scoreThreshold, metric, filter, withFilter } = options;
  if (topK === undefined && scoreThreshold === undefined) {
    throw usageError('expected --top-k or --score-threshold, or both, found neither');
  }
  const format = writeFormatOf(FORMATS, options.format, options.output);
  checkOutput(options);
  const request = {
    ...(options.with !== undefined && { with: options.with }),
    ...(topK !== undefined && { topK }),
    ...(scoreThreshold !== undefined && { scoreThreshold }),
    ...(filter !== undefined && { filter: readFilter('--filter', filter) }),
    ...(withFilter !== undefined && { withFilter: readFilter('--with-filter', withFilter) }),
    ...(options.includeSelf && { excludeSelf: false }),
    ...(metric !== undefined && { metric }),
    ...(options.metadata && { includeMetadata: true }),
  };
  const progress = progressOf(`${id}:`, options);
  const { body } = await connect(options)
    .collection(id)
    .joinStream(request, { format: format === 'ndjson' ? 'ndjson' : 'arrow' });
  const stream = counted(body, (byteCount) => progress?.update(undefined, undefined, byteCount));
  try {
    await writeFile(await encodeMatches(stream, format), options);
  } finally {
    progress?.end();
    // A reply that nobody has read to its end would hold the process.
    await body.cancel();
  }
  const other = options.with ?? 'itself';
  const facts = { collection: id, with: options.with ?? id, format, file: options.output ?? null };
  printResult(`${id} joined with ${other}`, facts, options, start);
}
