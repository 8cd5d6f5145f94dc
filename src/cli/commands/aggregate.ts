// `sagitta aggregate`: counts the values of metadata fields and summarizes their numbers, as tables or JSON.

import type { Facet, Stats } from '@sagitta/client';
import type { Command } from 'commander';
import { addReplyOptions, connect, type ReplyOptions } from '../service/connection.js';
import { EXIT_CODES_TEXT, usageError } from '../terminal/failure.js';
import { readJsonObject, splitNames, wholeNumber } from '../terminal/option-values.js';
import { print } from '../terminal/printing.js';
import { tableForStdout } from '../terminal/table.js';

const EXAMPLES = `
Counts and sums are exact. An array counts once for each of its distinct values.

Examples:
  $ sagitta aggregate articles --facets lang,tags --limit 5
  $ sagitta aggregate articles --stats price --buckets 10 \\
      --filter '{"year": {"$gte": 2020}}'

${EXIT_CODES_TEXT}`;

interface AggregateOptions extends ReplyOptions {
  readonly facets?: readonly string[];
  readonly stats?: readonly string[];
  readonly limit?: number;
  readonly buckets?: number;
  readonly filter?: string;
}

export function defineAggregate(command: Command): void {
  command
    .argument('<collection>', 'collection to aggregate')
    .option('--facets <names>', 'fields whose values are counted, comma-separated', splitNames)
    .option('--stats <names>', 'fields whose numbers are summarized, comma-separated', splitNames)
    .option('--limit <n>', 'values per facet (default: 10)', wholeNumber(1, 1e6))
    .option('--buckets <n>', 'add a histogram with n buckets', wholeNumber(1, 1e6))
    .option('--filter <json|@file>', 'only vectors whose metadata matches')
    .addHelpText('after', EXAMPLES);
  addReplyOptions(command).action(runAggregate);
}

async function runAggregate(collection: string, options: AggregateOptions): Promise<void> {
  const { facets, stats, limit, buckets, filter } = options;
  if (facets === undefined && stats === undefined) {
    throw usageError('expected --facets, --stats or both, found neither');
  }
  const reply = await connect(options)
    .collection(collection)
    .aggregate({
      ...(filter !== undefined && { filter: readJsonObject('--filter', filter) }),
      ...(facets && { facets: facets.map((path) => ({ path, ...(limit && { limit }) })) }),
      ...(stats && {
        stats: stats.map((path) => ({
          path,
          ...(buckets && { histogram: { bucket_count: buckets } }),
        })),
      }),
    });
  print(reply, options, () =>
    [
      ...(reply.facets ?? []).map(facetText),
      ...(reply.stats ?? []).map(statsText),
      `${reply.count} vectors`,
    ].join('\n\n'),
  );
}

function facetText({ path, values, distinct_count, missing_count }: Facet): string {
  const columns = [{ title: path }, { title: 'vectors', align: 'right' }] as const;
  const rows = values.map(({ value, count }) => [String(value), String(count)]);
  const shown = `${values.length} of ${distinct_count} values; ${missing_count} vectors have none`;
  return `${tableForStdout(columns, rows)}\n${shown}`;
}

function statsText({ path, histogram, ...numbers }: Stats): string {
  const columns = [{ title: path }, { title: '', align: 'right' }] as const;
  const rows = Object.entries(numbers).map(([name, value]) => [name, String(value)]);
  const summary = tableForStdout(columns, rows);
  if (histogram === undefined) return summary;
  const bucketColumns = [
    { title: 'from', align: 'right' },
    { title: 'to', align: 'right' },
    { title: 'numbers', align: 'right' },
  ] as const;
  const buckets = histogram.buckets.map(({ from, to, count }) => [from, to, count].map(String));
  return `${summary}\n\n${tableForStdout(bucketColumns, buckets)}`;
}
