// `sagitta query --file --recall`: which share of the exact nearest neighbours of the queries a file of
// results contains. The server grades the ids; a query that found fewer than k ids has missed the others.

import type { Client } from '@sagitta/client';
import { listNames } from '../../readers/names.js';
import type { RowBatch } from '../../readers/row-batch.js';
import { type ResultIds, readResultIds } from '../files/result-ids.js';
import { CliError } from '../terminal/failure.js';
import type { Progress } from '../terminal/progress.js';
import {
  type QueryFileOptions,
  type QueryRows,
  searchOf,
  shareOf,
  withoutQueries,
} from './query-rows.js';

/** Ids that are looked up when no result is right. */
const IDS_ASKED_MAX = 100;

interface RecallOptions extends QueryFileOptions {
  readonly k: number;
}

/** The mean of the queries. Throws CliError when the results are not those of these queries. */
export async function measureRecall(
  client: Client,
  collection: string,
  options: RecallOptions,
  queries: QueryRows,
  progress: Progress | undefined,
): Promise<{ recall: number; queryCount: number }> {
  const { k } = options;
  const path = options.recall!;
  const results = await readResultIds(path, k);
  const handle = client.collection(collection);
  // Once, not per batch: stdin can be read only once.
  const search = searchOf(options);
  let kFound: number | undefined;
  let rightCount = 0;
  let queryCount = 0;
  let lengthMax = 0;
  let firstIds: readonly string[] = [];
  for await (const batch of queries.reader.batches(0)) {
    kFound ??= Math.min(k, await countRows(batch));
    const lists = await take(results, batch.rowCount, queryCount, queries);
    const graded = [...lists.entries()].filter(([, list]) => list.length > 0);
    lengthMax = lists.reduce((max, list) => Math.max(max, list.length), lengthMax);
    if (graded.length > 0) {
      if (firstIds.length === 0) firstIds = graded[0]![1];
      const { recalls } = await handle.recall({
        ...search,
        vectors: graded.map(([row]) => vectorOf(batch, row)),
        ids: graded.map(([, list]) => padded(list, k)),
      });
      // The server divides by k; sums of whole numbers are exact.
      for (const recall of recalls) rightCount += Math.round(recall * k);
    }
    queryCount += batch.rowCount;
    progress?.update(queryCount, shareOf(queries, queryCount));
  }
  if (kFound === undefined) throw withoutQueries(queries.source);
  if ((await results.lists.next()).done !== true) {
    throw new CliError(
      `${path}: found results of more than the ${queryCount} queries of ${queries.source.name}`,
    );
  }
  if (kFound === 0) throw new CliError(`no vector of ${collection} can be found by these queries`);
  if (lengthMax < kFound) {
    process.stderr.write(
      `${path}: no query has more than ${lengthMax} ids; the others of ${kFound} (--top-k) count as missed\n`,
    );
  }
  if (rightCount === 0) await requireKnown(firstIds);
  return { recall: rightCount / (queryCount * kFound), queryCount };

  /** How many vectors the queries are compared with. */
  async function countRows(batch: RowBatch): Promise<number> {
    const vector = [...vectorOf(batch, 0)];
    const { total } = await handle.query({ ...search, vector, top_k: 1 });
    return total!;
  }

  /** Results without a single right id are probably of another collection. */
  async function requireKnown(ids: readonly string[]): Promise<void> {
    const asked = [...new Set(ids)].slice(0, IDS_ASKED_MAX);
    const include = { include_values: false, include_metadata: false };
    const { not_found } = await handle.fetch(asked, include);
    if (not_found.length < asked.length) return;
    throw new CliError(
      `${path}: no result is right, and collection ${collection} has none of the first ids ` +
        `(${listNames(asked)})`,
    );
  }
}

/** The lists of the next queries. */
async function take(
  { lists, mayEndEarly }: ResultIds,
  count: number,
  queryCount: number,
  { source }: QueryRows,
): Promise<(readonly string[])[]> {
  const taken: (readonly string[])[] = [];
  while (taken.length < count) {
    const next = await lists.next();
    if (next.done === true && !mayEndEarly) {
      throw new CliError(
        `found ${queryCount + taken.length} results, but ${source.name} has more queries`,
      );
    }
    taken.push(next.done === true ? [] : next.value);
  }
  return taken;
}

function vectorOf({ values, dimension }: RowBatch, row: number): Float32Array {
  return values.subarray(row * dimension, (row + 1) * dimension);
}

/** Made k ids by a repeated one, which counts once: the server compares with as many as there are ids. */
function padded(ids: readonly string[], k: number): readonly string[] {
  return [...ids, ...new Array<string>(k - ids.length).fill(ids[0]!)];
}
