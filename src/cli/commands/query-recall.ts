// `sagitta query --file --recall`: measures the share of the exact nearest neighbours of the queries that a file of
// results contains. The server grades the ids; for a query with fewer than k ids, the missing ones count as missed.

import type { Client } from '@sagitta/client';
import { listNames } from '../../readers/names.js';
import type { RowBatch } from '../../readers/row-batch.js';
import { type ResultIds, readResultIds } from '../files/result-ids.js';
import { CliError } from '../terminal/failure.js';
import type { Progress } from '../terminal/progress.js';
import {
  noQueries,
  type QueryFileOptions,
  type QueryRows,
  searchOf,
  shareOf,
} from './query-rows.js';

/** Number of ids that are looked up when no result is correct. */
const IDS_CHECKED_MAX = 100;

interface RecallOptions extends QueryFileOptions {
  readonly k: number;
}

/** The mean recall of the queries. Throws CliError when the results do not belong to these queries. */
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
  // Read before the loop, since stdin can be read only once.
  const search = searchOf(options);
  let kFound: number | undefined;
  let correctCount = 0;
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
      // The server divides by k; sums of integers are exact.
      for (const recall of recalls) correctCount += Math.round(recall * k);
    }
    queryCount += batch.rowCount;
    progress?.update(queryCount, shareOf(queries, queryCount));
  }
  if (kFound === undefined) throw noQueries(queries.source);
  if ((await results.lists.next()).done !== true) {
    throw new CliError(
      `${path}: found more results than the ${queryCount} queries of ${queries.source.name}`,
    );
  }
  if (kFound === 0) throw new CliError(`no vector of ${collection} can be found by these queries`);
  if (lengthMax < kFound) {
    process.stderr.write(
      `${path}: no query has more than ${lengthMax} ids; the others of ${kFound} (--top-k) count as missed\n`,
    );
  }
  if (correctCount === 0) await requireKnown(firstIds);
  return { recall: correctCount / (queryCount * kFound), queryCount };

  /** Number of vectors that the queries are compared with. */
  async function countRows(batch: RowBatch): Promise<number> {
    const vector = [...vectorOf(batch, 0)];
    const { total } = await handle.query({ ...search, vector, top_k: 1 });
    return total!;
  }

  /** Throws CliError when results without a correct id come from a different collection. */
  async function requireKnown(ids: readonly string[]): Promise<void> {
    const checked = [...new Set(ids)].slice(0, IDS_CHECKED_MAX);
    const include = { include_values: false, include_metadata: false };
    const { not_found } = await handle.fetch(checked, include);
    if (not_found.length < checked.length) return;
    throw new CliError(
      `${path}: no result is correct, and collection ${collection} has none of the first ids ` +
        `(${listNames(checked)})`,
    );
  }
}

/** The ids of the next `count` queries. */
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

/** Pads the list to k ids with its first id, which counts once: the server compares as many neighbours as ids. */
function padded(ids: readonly string[], k: number): readonly string[] {
  return [...ids, ...new Array<string>(k - ids.length).fill(ids[0]!)];
}
