// `sagitta query`: nearest neighbours of a vector or of a stored id, as a table or as JSON, or of
// every vector of a file, as a file.

import { type Command, Option } from 'commander';
import type { Match, QueryReply, QueryRequest } from '../../client/client.js';
import { METRICS, type Metric } from '../../common/types.js';
import { ANSWER_FORMATS, type AnswerFormat } from '../answer-formats.js';
import { addConnectionOptions, type ConnectionOptions, connect } from '../connection.js';
import { exactCell, exactText, parseExact } from '../exact-json.js';
import { EXIT_CODES_TEXT, usageError } from '../failure.js';
import { parseJson, parseScore, readFilter, readText } from '../filter-option.js';
import { splitNames, wholeNumber } from '../options.js';
import { expandColumns } from '../readers/column-names.js';
import { FORMAT_NAMES, type FormatName } from '../readers/formats.js';
import { renderTable } from '../table.js';
import { addFileOptions, type FileOptions } from '../transfer.js';

const EXAMPLES = `
A vector is a JSON array or base64 of little-endian float32: in the option, in a
file (@file) or on stdin (-). A filter is JSON, in the option or in a file.

Examples:
  $ sagitta query wordnet --id n02069974 --fields lemma,gloss
  $ sagitta query wordnet --id n02069974 --top-k 5 \\
      --filter '{"category": "noun.animal"}'
  $ sagitta query docs --vector @question.json --json
  $ embed "how do whales sleep" | sagitta query docs --vector - --all

With --all every page follows; --json then prints one match a line.

Every vector of a file is a query with --file, in any format that sagitta import
takes; answers are written as .ndjson (a line a query), .csv, .arrow (a row a
match) or .ivecs (whole numbers as ids):
  $ sagitta query docs --file queries.npy --top-k 10 -o answers.arrow
  $ sagitta query sift --file sift-128-euclidean.hdf5 -k 100 -o answers.ivecs
  $ sagitta query sift --file sift-128-euclidean.hdf5 -k 10 \\
      --recall sift-128-euclidean.hdf5
--recall tells how many of the exact nearest the answers in a file hold (ivecs,
or the dataset "neighbors" of HDF5).

${EXIT_CODES_TEXT}`;

/** Pages of a walk through everything: as large as the service allows by default. */
const WALK_LIMIT = 1_000;
/** Where stdout is no terminal. */
const WIDTH_DEFAULT = 100;

interface QueryOptions extends ConnectionOptions, FileOptions<AnswerFormat> {
  readonly file?: string;
  readonly fileFormat?: FormatName;
  readonly valuesField?: string;
  readonly vectorColumns?: readonly string[];
  readonly dataset?: string;
  readonly recall?: string;
  readonly vector?: string;
  readonly id?: string;
  readonly filter?: string;
  readonly topK?: number;
  readonly limit?: number;
  readonly cursor?: string;
  readonly all?: boolean;
  readonly metric?: Metric;
  readonly scoreThreshold?: number;
  readonly values?: boolean;
  readonly metadata: boolean;
  readonly fields?: readonly string[];
  readonly explain?: boolean;
}

export function addQueryCommand(program: Command): void {
  const command = program
    .command('query')
    .description('find the nearest vectors of a collection')
    .argument('<collection>', 'the collection to search')
    .option('--vector <json|@file|->', 'the query vector')
    .option('--id <id>', 'search with a stored vector, which is left out of the result')
    .option('--filter <json|@file>', 'only vectors whose metadata passes')
    .option('-k, --top-k <n>', 'how many of the nearest (10)', wholeNumber(1, 1e9))
    .option('--limit <n>', 'how many on a page', wholeNumber(1, 1e6))
    .option('--cursor <token>', 'the page that an earlier reply named')
    .option('--all', 'every page')
    .addOption(new Option('--metric <name>', "in place of the collection's").choices(METRICS))
    .option('--score-threshold <n>', 'only matches with at least this score', parseScore)
    .option('--values', 'the values of each match, with --json')
    .option('--fields <names>', 'the metadata that the table shows, with commas', splitNames)
    .option('--no-metadata', 'ids and scores only')
    .option('--explain', 'how the answer was found')
    .option('--file <file>', 'a file of queries; - for stdin')
    .addOption(
      new Option('--file-format <name>', 'of that file, in place of a look at it').choices(
        FORMAT_NAMES,
      ),
    )
    .option('--values-field <name>', 'of the file: the field that holds the vector')
    .option('--vector-columns <names>', 'of CSV: a column a value, d0..d767', expandColumns)
    .option('--dataset <name>', 'of HDF5 ("test")')
    .option('--recall <file>', 'judge these answers to the queries of --file');
  addFileOptions(command, ANSWER_FORMATS).addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(async (collection: string, options: QueryOptions) => {
    if (options.file !== undefined) {
      checkFileQuery(options);
      const { queryFile } = await import('./query-file.js');
      return await queryFile(connect(options), collection, { ...options, file: options.file });
    }
    const misplaced = FILE_ONLY.find((name) => options[name] !== undefined);
    if (misplaced !== undefined) {
      throw usageError(`--${misplaced} is for queries of a file, which --file names`);
    }
    let replyText = Promise.resolve('');
    const vectors = connect(options, {
      async fetch(...request) {
        const response = await fetch(...request);
        replyText = response.clone().text();
        // Whoever reads the reply itself tells of it.
        replyText.catch(() => {});
        return response;
      },
    }).collection(collection);
    const request = requestOf(options);
    if (!options.all) {
      const reply = await vectors.query(request);
      return printPage(reply, await replyText, options, 0);
    }
    let shownCount = 0;
    for await (const page of vectors.queryPages(request)) {
      printPage(page, await replyText, options, shownCount);
      shownCount += page.matches.length;
    }
  });
}

const FILE_ONLY = ['output', 'format', 'recall', 'dataset'] as const;
const SINGLE_ONLY = ['vector', 'id', 'cursor', 'limit', 'all', 'values', 'explain'] as const;

function checkFileQuery(options: QueryOptions): void {
  const misplaced = SINGLE_ONLY.find((name) => options[name] !== undefined);
  if (misplaced === undefined) return;
  throw usageError(`--${misplaced} is for a single query, and does not go with --file`);
}

function requestOf(options: QueryOptions): QueryRequest {
  const { vector, id, filter, topK, limit, cursor, metric, scoreThreshold } = options;
  if (cursor !== undefined) {
    if (vector === undefined && id === undefined) return { cursor };
  } else if ((vector === undefined) === (id === undefined)) {
    throw usageError(
      `expected exactly one of --vector and --id, found ${id === undefined ? 'neither' : 'both'}`,
    );
  }
  const pageLimit = limit ?? (options.all && topK === undefined ? WALK_LIMIT : undefined);
  return {
    ...(vector !== undefined && { vector: readVector(vector) }),
    ...(id !== undefined && { id }),
    ...(filter !== undefined && { filter: readFilter('--filter', filter) }),
    ...(topK !== undefined && { top_k: topK }),
    ...(pageLimit !== undefined && { limit: pageLimit }),
    ...(cursor !== undefined && { cursor }),
    ...(metric !== undefined && { metric }),
    ...(scoreThreshold !== undefined && { score_threshold: scoreThreshold }),
    ...(options.explain && { explain: true }),
    ...(options.metadata && { include_metadata: true }),
    ...(options.values && { include_values: true }),
  };
}

function readVector(option: string): readonly number[] | string {
  const text = readText('--vector', option).trim();
  // Base64 is no JSON, but for texts of digits alone, and those are no vectors.
  if (!/^[[{"]/.test(text)) return text;
  const vector = parseJson('--vector', text);
  const isVector = typeof vector === 'string' || Array.isArray(vector);
  if (!isVector) throw usageError('--vector: expected a JSON array of numbers or base64');
  return vector as number[] | string;
}

/** `text` is the reply as the service spelled it. */
function printPage(
  reply: QueryReply,
  text: string,
  options: QueryOptions,
  rankBefore: number,
): void {
  const exact = parseExact(text) as { readonly matches: readonly ExactMatch[] };
  if (options.json && options.all) {
    for (const match of exact.matches) process.stdout.write(`${exactText(match)}\n`);
    return;
  }
  if (options.json) {
    process.stdout.write(`${exactText(exact, 2)}\n`);
    return;
  }
  const lines = [matchTable(reply.matches, exact.matches, options.fields, rankBefore)];
  if (reply.explain !== undefined) lines.push(`\n${JSON.stringify(reply.explain)}`);
  if (reply.next_cursor !== undefined && !options.all) {
    const of = reply.total === undefined ? '' : ` of ${reply.total}`;
    lines.push(`\n${reply.matches.length}${of} shown; --all for all, or --cursor with`);
    lines.push(reply.next_cursor);
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

interface ExactMatch {
  readonly metadata?: Readonly<Record<string, unknown>>;
}

function matchTable(
  matches: readonly Match[],
  exact: readonly ExactMatch[],
  fieldsChosen: readonly string[] | undefined,
  rankBefore: number,
): string {
  if (matches.length === 0) return rankBefore === 0 ? 'No match.' : 'No further match.';
  const fieldsFound = new Set(matches.flatMap((match) => Object.keys(match.metadata ?? {})));
  const fields = fieldsChosen ?? [...fieldsFound];
  const hasDistance = matches.some((match) => match.distance !== undefined);
  const columns = [
    { title: '#', align: 'right' } as const,
    { title: 'score', align: 'right' } as const,
    ...(hasDistance ? [{ title: 'distance', align: 'right' } as const] : []),
    { title: 'id', isWhole: true } as const,
    ...fields.map((title) => ({ title })),
  ];
  const rows = matches.map(({ id, score, distance }, at) => [
    String(rankBefore + at + 1),
    score.toFixed(4),
    ...(hasDistance ? [distance?.toFixed(4) ?? ''] : []),
    id,
    ...fields.map((field) => exactCell(exact[at]?.metadata?.[field])),
  ]);
  return renderTable(columns, rows, process.stdout.columns ?? WIDTH_DEFAULT);
}
