// `sagitta query`: nearest neighbours of a vector or of a stored id, as a table or as JSON.

import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type { Match, QueryReply, QueryRequest } from '../client/client.js';
import { type JsonObject, METRICS, type Metric } from '../types.js';
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.js';
import { usageError } from './failure.js';
import { splitNames, wholeNumber } from './options.js';
import { renderTable } from './table.js';

const EXAMPLES = `
A vector is a JSON array or base64 of little-endian float32: in the option, in a file (@file) or
on stdin (-). A filter is JSON, in the option or in a file.

Examples:
  $ sagitta query wordnet --id n02069974 --fields lemma,gloss
  $ sagitta query wordnet --id n02069974 --filter '{"category": "noun.animal"}' --top-k 5
  $ sagitta query docs --vector @question.json --json
  $ embed "how do whales sleep" | sagitta query docs --vector - --limit 100 --all

With --all every page follows; --json then prints one match a line.`;

/** Pages of a walk through everything: as large as the service allows by default. */
const WALK_LIMIT = 1_000;
/** Where stdout is no terminal. */
const WIDTH_DEFAULT = 100;

interface QueryOptions extends ConnectionOptions {
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
  readonly json?: boolean;
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
    .option('--json', 'the reply as JSON')
    .addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(async (collection: string, options: QueryOptions) => {
    const vectors = connect(options).collection(collection);
    const request = requestOf(options);
    if (!options.all) return printPage(await vectors.query(request), options, 0);
    let shownCount = 0;
    for await (const page of vectors.queryPages(request)) {
      printPage(page, options, shownCount);
      shownCount += page.matches.length;
    }
  });
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
    ...(filter !== undefined && { filter: readFilter(filter) }),
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

function readFilter(option: string): JsonObject {
  const filter = parseJson('--filter', readText('--filter', option));
  if (typeof filter === 'object' && filter !== null && !Array.isArray(filter)) {
    return filter as JsonObject;
  }
  throw usageError(`--filter: expected a JSON object such as {"year": {"$gte": 2020}}`);
}

function readText(name: string, option: string): string {
  const path = option === '-' ? 0 : option.startsWith('@') ? option.slice(1) : undefined;
  if (path === undefined) return option;
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw usageError(`${name}: cannot read ${path || 'stdin'}: ${(cause as Error).message}`);
  }
}

function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`${name}: expected JSON: ${(error as Error).message}`);
  }
}

function parseScore(text: string): number {
  const score = Number(text);
  if (text.trim() !== '' && Number.isFinite(score)) return score;
  throw usageError(`--score-threshold: expected a number, found "${text}"`);
}

function printPage(reply: QueryReply, options: QueryOptions, rankBefore: number): void {
  if (options.json && options.all) {
    for (const match of reply.matches) process.stdout.write(`${JSON.stringify(match)}\n`);
    return;
  }
  if (options.json) {
    process.stdout.write(`${JSON.stringify(reply, null, 2)}\n`);
    return;
  }
  const lines = [matchTable(reply.matches, options.fields, rankBefore)];
  if (reply.explain !== undefined) lines.push(`\n${JSON.stringify(reply.explain)}`);
  if (reply.next_cursor !== undefined && !options.all) {
    const of = reply.total === undefined ? '' : ` of ${reply.total}`;
    lines.push(`\n${reply.matches.length}${of} shown; --all for all, or --cursor with`);
    lines.push(reply.next_cursor);
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

function matchTable(
  matches: readonly Match[],
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
    ...['id', ...fields].map((title) => ({ title })),
  ];
  const rows = matches.map(({ id, score, distance, metadata = {} }, at) => [
    String(rankBefore + at + 1),
    score.toFixed(4),
    ...(hasDistance ? [distance?.toFixed(4) ?? ''] : []),
    id,
    ...fields.map((field) => cellOf(metadata[field])),
  ]);
  return renderTable(columns, rows, process.stdout.columns ?? WIDTH_DEFAULT);
}

function cellOf(value: JsonObject[string] | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
