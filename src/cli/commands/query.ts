// `sagitta query`: finds the nearest neighbours of a vector or of a stored id and prints a table or JSON. With --file,
// it searches for every vector of a file (query-file.ts).

import { randomUUID } from 'node:crypto';
import type { Match, QueryMembers, QueryReply, QueryRequest } from '@sagitta/client';
import { type Command, Option } from 'commander';
import { splitNumbers } from '../../common/number-list.js';
import { METRICS, type Metric } from '../../common/types.js';
import { INPUT_FORMAT_NAMES, type InputFormat } from '../../readers/formats.js';
import { show } from '../../readers/read-error.js';
import type { DecimalPoint } from '../../readers/reader-options.js';
import { addConnectionOptions, type ConnectionOptions, connect } from '../service/connection.js';
import { EXIT_CODES_TEXT, usageError } from '../terminal/failure.js';
import {
  anyNumber,
  decimalOption,
  expandColumns,
  parseDelimiter,
  parseJsonOption,
  readJsonObject,
  readTextOption,
  splitNames,
  wholeNumber,
} from '../terminal/option-values.js';
import { tableForStdout } from '../terminal/table.js';
import { RESULT_FORMATS, type ResultFormat } from '../writers/formats.js';
import { addOutputFileOptions, type OutputFileOptions } from '../writers/output-file.js';

const EXAMPLES = `
A vector is a list of numbers (1,2,3 or [1, 2, 3]) or base64-encoded
little-endian float32, inline, in a file (@file) or on stdin (-).
A filter is JSON, given inline or in a file.

Examples:
  $ sagitta query wordnet --id n02069974 --fields lemma,gloss
  $ sagitta query wordnet --id n02069974 --top-k 5 \\
      --filter '{"category": "noun.animal"}'
  $ sagitta query docs --vector @question.json --json
  $ sagitta query notes --text 'whale songs' --match all
  $ sagitta query docs --id a1 --group-by author --group-size 2
  $ sagitta query docs --positive a1,a2 --negative b7 --strategy best_score
  $ sagitta query docs --id a1 --mmr 0.7 --mmr-candidates 200
  $ embed "how do whales sleep" | sagitta query docs --vector - --all

--all fetches every page; with --json it prints one match per line.

--file runs one query per vector of a file, in any format that sagitta import
reads. Results are written as .ndjson (one line per query), .csv, .arrow or
.parquet (one row per match), or .ivecs (integer ids). Ids of the queries are
repeated as query_id:
  $ sagitta query docs --file queries.npy --top-k 10 -o results.arrow
  $ sagitta query sift --file sift-128-euclidean.hdf5 -k 100 -o results.ivecs
  $ sagitta query sift --file sift-128-euclidean.hdf5 -k 10 \\
      --recall sift-128-euclidean.hdf5
--recall reports the share of the exact nearest neighbours that a result file
contains: .ndjson, .csv, .arrow or .parquet as written with -o or with a list of
ids per query (column "ids" or "neighbors"), .ivecs, or the HDF5 dataset
"neighbors".

${EXIT_CODES_TEXT}`;

const TEXT_MATCHES = ['any', 'all'] as const;

/** Page size of --all: the server's default maximum. */
const ALL_PAGE_LIMIT = 1_000;

const STRATEGIES = ['average_vector', 'best_score', 'sum_scores'] as const;
type Strategy = (typeof STRATEGIES)[number];

interface QueryOptions extends ConnectionOptions, OutputFileOptions<ResultFormat> {
  readonly file?: string;
  readonly fileFormat?: InputFormat;
  readonly idField?: string;
  readonly valuesField?: string;
  readonly vectorColumns?: readonly string[];
  readonly delimiter?: string;
  readonly decimal?: DecimalPoint;
  readonly dataset?: string;
  readonly recall?: string;
  readonly vector?: string;
  readonly id?: string;
  readonly positive?: readonly string[];
  readonly negative?: readonly string[];
  readonly strategy?: Strategy;
  readonly mmr?: number;
  readonly mmrCandidates?: number;
  readonly text?: string;
  readonly sparse?: string;
  readonly embed?: string;
  readonly discover?: string;
  readonly fusion?: string;
  readonly prefetch?: string;
  readonly match?: (typeof TEXT_MATCHES)[number];
  readonly filter?: string;
  readonly topK?: number;
  readonly limit?: number;
  readonly cursor?: string;
  readonly all?: boolean;
  readonly using?: string;
  readonly metric?: Metric;
  readonly scoreThreshold?: number;
  readonly groupBy?: string;
  readonly groupSize?: number;
  readonly values?: boolean;
  readonly metadata: boolean;
  readonly fields?: readonly string[];
  readonly explain?: boolean;
}

export function defineQuery(command: Command): void {
  command
    .argument('<collection>', 'collection to search')
    .option('--vector <numbers|@file|->', 'query vector')
    .option('--id <id>', 'use a stored vector as the query; it does not match itself')
    .option('--positive <ids>', 'stored vectors to move towards, comma-separated', splitNames)
    .option('--negative <ids>', 'stored vectors to move away from, comma-separated', splitNames)
    .addOption(
      new Option('--strategy <name>', 'how examples are used (default: average_vector)').choices(
        STRATEGIES,
      ),
    )
    .option('--mmr <lambda>', 'diversify: from 0 (most) to 1 (not at all)', anyNumber('--mmr'))
    .option('--mmr-candidates <n>', 'nearest vectors to choose from', wholeNumber(1, 1e6))
    .option('--text <words>', 'words to find in the text of the collection')
    .option('--sparse <json|@file>', 'sparse vector for --using: {"indices": [7], "values": [0.5]}')
    .addOption(
      new Option('--match <words>', 'how many of the words must occur (default: any)').choices(
        TEXT_MATCHES,
      ),
    )
    .option('--embed <text>', 'text that the model of the collection turns into the query vector')
    .option('--discover <json|@file>', 'target and pairs of examples')
    .option('--fusion <json|@file>', 'combine several rankings: kind and parts')
    .option('--prefetch <json|@file>', 'search only the best matches of another ranking')
    .option('--filter <json|@file>', 'only vectors whose metadata matches')
    .option('-k, --top-k <n>', 'number of matches (default: 10)', wholeNumber(1, 1e9))
    .option('--limit <n>', 'matches per page', wholeNumber(1, 1e6))
    .option('--cursor <token>', 'fetch the next page of an earlier query')
    .option('--all', 'fetch all pages')
    .option('--using <name>', 'named or sparse vector to search, instead of the unnamed one')
    .addOption(new Option('--metric <name>', "metric (default: the collection's)").choices(METRICS))
    .option('--score-threshold <n>', 'minimum score of a match', anyNumber('--score-threshold'))
    .option('--group-by <name>', 'metadata field; show the best matches of each value')
    .option('--group-size <n>', 'matches per group (default: 1)', wholeNumber(1, 1e6))
    .option('--values', 'include the values of each match (with --json)')
    .option('--fields <names>', 'metadata fields shown in the table, comma-separated', splitNames)
    .option('--no-metadata', 'omit the metadata')
    .option('--explain', 'show how the query was executed')
    .option('--file <file>', 'file of query vectors; - for stdin')
    .addOption(
      new Option('--file-format <name>', 'format of that file (default: detected)').choices(
        INPUT_FORMAT_NAMES,
      ),
    )
    .option('--id-field <name>', 'field of the id in that file (default: id)')
    .option('--values-field <name>', 'field of the vector in that file')
    .option('--vector-columns <names>', 'columns with one value each: d0..d767', expandColumns)
    .option(
      '--delimiter <character>',
      'delimiter of a CSV file (default: comma; tab for .tsv)',
      parseDelimiter,
    )
    .addOption(decimalOption())
    .option('--dataset <name>', 'HDF5 dataset (default: test) or array of an npz file')
    .option('--recall <file>', 'measure the recall of these results for the queries of --file');
  addOutputFileOptions(command, RESULT_FORMATS).addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(async (collection: string, options: QueryOptions) => {
    if (options.file !== undefined) {
      checkFileQuery(options);
      const { queryFile } = await import('./query-file.js');
      return await queryFile(connect(options), collection, { ...options, file: options.file });
    }
    const misplaced = FILE_ONLY.find((name) => options[name] !== undefined);
    if (misplaced !== undefined) {
      throw usageError(`--${optionName(misplaced)} requires --file`);
    }
    let replyText = Promise.resolve('');
    const vectors = connect(options, {
      async fetch(...request) {
        const response = await fetch(...request);
        replyText = response.clone().text();
        // A failure to read it is reported by the client's own read.
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

const FILE_ONLY = [
  'output',
  'format',
  'recall',
  'fileFormat',
  'idField',
  'valuesField',
  'vectorColumns',
  'delimiter',
  'decimal',
  'dataset',
] as const;
/** Options that --recall rules out: it writes no results, and compares all of them. */
const NOT_WITH_RECALL = ['output', 'format', 'scoreThreshold'] as const;
const SINGLE_ONLY = [
  'vector',
  'id',
  'positive',
  'negative',
  'strategy',
  'mmr',
  'mmrCandidates',
  'text',
  'sparse',
  'embed',
  'discover',
  'fusion',
  'prefetch',
  'match',
  'cursor',
  'limit',
  'all',
  'values',
  'explain',
  'groupBy',
  'groupSize',
] as const;

function checkFileQuery(options: QueryOptions): void {
  const misplaced = SINGLE_ONLY.find((name) => options[name] !== undefined);
  if (misplaced !== undefined) {
    throw usageError(`--${optionName(misplaced)} cannot be combined with --file`);
  }
  if (options.recall === undefined) return;
  const useless = NOT_WITH_RECALL.find((name) => options[name] !== undefined);
  if (useless === undefined) return;
  throw usageError(`--${optionName(useless)} cannot be combined with --recall`);
}

/** `groupBy` → `group-by`. */
function optionName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function requestOf(options: QueryOptions): QueryRequest {
  const { vector, id, filter, topK, limit, cursor, metric, scoreThreshold } = options;
  const { groupBy, groupSize, mmr, mmrCandidates, text, match, using } = options;
  const { sparse, embed, discover, fusion, prefetch } = options;
  const recommend = recommendOf(options);
  const targets = [vector, id, text, sparse, embed, recommend, discover, fusion];
  const targetCount = targets.filter((one) => one !== undefined).length;
  if (cursor !== undefined && targetCount === 0) return { cursor };
  if (targetCount !== 1) {
    throw usageError(
      `expected exactly one of --vector, --id, --text, --sparse, --embed, --discover, --fusion and examples (--positive, --negative), found ${targetCount}`,
    );
  }
  if (mmr === undefined && mmrCandidates !== undefined) {
    throw usageError('--mmr-candidates requires --mmr');
  }
  if (match !== undefined && text === undefined) throw usageError('--match requires --text');
  const pageLimit = limit ?? (options.all && topK === undefined ? ALL_PAGE_LIMIT : undefined);
  const members: QueryMembers = {
    ...(vector !== undefined && { vector: readVector(vector) }),
    ...(id !== undefined && { id }),
    ...(recommend !== undefined && { recommend }),
    ...(embed !== undefined && { embed }),
    ...(sparse !== undefined && { sparse: readJsonObject('--sparse', sparse) }),
    ...(discover !== undefined && { discover: readJsonObject('--discover', discover) }),
    ...(fusion !== undefined && { fusion: readJsonObject('--fusion', fusion) }),
    ...(prefetch !== undefined && { prefetch: readJsonObject('--prefetch', prefetch) }),
    ...(mmr !== undefined && {
      mmr: { lambda: mmr, ...(mmrCandidates !== undefined && { candidates: mmrCandidates }) },
    }),
    ...(text !== undefined && { text: { query: text, ...(match !== undefined && { match }) } }),
    ...(filter !== undefined && { filter: readJsonObject('--filter', filter) }),
    ...(topK !== undefined && { top_k: topK }),
    ...(pageLimit !== undefined && { limit: pageLimit }),
    ...(cursor !== undefined && { cursor }),
    ...(using !== undefined && { using }),
    ...(metric !== undefined && { metric }),
    ...(scoreThreshold !== undefined && { score_threshold: scoreThreshold }),
    ...(groupBy !== undefined && { group_by: groupBy }),
    ...(groupSize !== undefined && { group_size: groupSize }),
    ...(options.explain && { explain: true }),
    ...(options.metadata && { include_metadata: true }),
    ...(options.values && { include_values: true }),
  };
  // The check above ensures exactly one target.
  return members as QueryRequest;
}

function recommendOf({
  positive,
  negative,
  strategy,
}: QueryOptions): QueryRequest['recommend'] | undefined {
  if (positive === undefined && negative === undefined) {
    if (strategy !== undefined) throw usageError('--strategy requires --positive or --negative');
    return undefined;
  }
  return {
    ...(positive !== undefined && { positive }),
    ...(negative !== undefined && { negative }),
    ...(strategy !== undefined && { strategy }),
  };
}

function readVector(option: string): readonly number[] | string {
  const text = readTextOption('--vector', option).trim();
  if (isNumberList(text)) return readNumberList(text);
  // Base64 is never JSON, except for digits alone, which are not a vector.
  if (!/^[[{"]/.test(text)) return text;
  const vector = parseJsonOption('--vector', text);
  const isVector = typeof vector === 'string' || Array.isArray(vector);
  if (!isVector)
    throw usageError('--vector: expected a JSON array of numbers or base64-encoded float32');
  return vector as number[] | string;
}

/** Whether the text is a list of numbers. Base64 has no separators, but digits alone can be base64. */
function isNumberList(text: string): boolean {
  if (/^[[{"]/.test(text)) return false;
  if (/[,;\s]/.test(text)) return true;
  const bytes = Buffer.from(text, 'base64');
  const isBase64 = bytes.length % 4 === 0 && bytes.toString('base64') === text;
  return !isBase64 && Number.isFinite(Number(text));
}

/** `1, 2.5, -3`, `1 2.5 -3` or `1;2.5;-3`. */
function readNumberList(text: string): readonly number[] {
  const { texts, separators } = splitNumbers(text);
  if (separators.length > 1) {
    const found = separators.map((each) => show(each)).join(' and ');
    throw usageError(
      `--vector: found ${found} between the values, expected one separator, and decimal points`,
    );
  }
  return texts.map((part, at) => {
    const value = Number(part);
    if (/^[-+.\d]/.test(part) && Number.isFinite(value)) return value;
    throw usageError(`--vector: value ${at + 1} is ${show(part)}, expected a number`);
  });
}

/** `text` is the reply as the server sent it, with its spelling of numbers. */
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
    lines.push(
      `\nShowing ${reply.matches.length}${of} matches. Use --all for all, or --cursor for the next page:`,
    );
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
  if (matches.length === 0) return rankBefore === 0 ? 'No matches.' : 'No more matches.';
  const fieldsFound = new Set(matches.flatMap((match) => Object.keys(match.metadata ?? {})));
  const fields = fieldsChosen ?? [...fieldsFound];
  const hasDistance = matches.some((match) => match.distance !== undefined);
  const hasGroup = matches.some((match) => match.group !== undefined);
  const columns = [
    { title: '#', align: 'right' } as const,
    { title: 'score', align: 'right' } as const,
    ...(hasDistance ? [{ title: 'distance', align: 'right' } as const] : []),
    { title: 'id', isWhole: true } as const,
    ...(hasGroup ? [{ title: 'group' }] : []),
    ...fields.map((title) => ({ title })),
  ];
  const rows = matches.map(({ id, score, distance, group }, at) => [
    String(rankBefore + at + 1),
    score.toFixed(4),
    ...(hasDistance ? [distance?.toFixed(4) ?? ''] : []),
    id,
    ...(hasGroup ? [String(group)] : []),
    ...fields.map((field) => exactCell(exact[at]?.metadata?.[field])),
  ]);
  return tableForStdout(columns, rows);
}

/**
 * Prefix of numbers that JavaScript would spell differently (integers beyond 2^53, 1.0). They are parsed
 * as marked strings, so that replies are printed with the numbers as the server sent them.
 */
const MARK = `${randomUUID()}:`;

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');

/** Parses JSON; numbers that JavaScript would spell differently become marked strings. */
function parseExact(text: string): unknown {
  return JSON.parse(
    text.replace(STRING_OR_NUMBER, (token) =>
      token.startsWith('"') || String(Number(token)) === token ? token : `"${MARK}${token}"`,
    ),
  );
}

/** The JSON text of a value from `parseExact`, with the original spelling of numbers. */
function exactText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(MARKED, '$1');
}

/** A value from `parseExact` as a table cell: strings without quotes. */
function exactCell(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' && !value.startsWith(MARK) ? value : exactText(value);
}
