// `sagitta query --file`: sends the queries of a file as one stream. Results are written while later queries are still
// being read, so memory use does not depend on the size of the file.

import type { Client, CollectionRecord } from '@sagitta/client';
import { encodeEnd, encodeRecordBatch, encodeSchema } from '../../formats/arrow/ipc-writer.js';
import { textColumn } from '../../readers/encode-rows.js';
import { RowError } from '../../readers/read-error.js';
import { checkBatchDimension, type RowBatch } from '../../readers/row-batch.js';
import { usageError } from '../terminal/failure.js';
import type { Progress } from '../terminal/progress.js';
import { pluralize } from '../terminal/units.js';
import {
  RESULT_FORMATS,
  type ResultFormat,
  toFileFormat,
  WRITE_FORMATS,
  writeFormatOf,
} from '../writers/formats.js';
import { checkOutput, printResult, progressOf, writeFile } from '../writers/output-file.js';
import { ivecsOfMatches } from '../writers/vector-files.js';
import { requireWhole } from '../writers/whole-reply.js';
import { noQueries, openQueries, type QueryFileOptions, searchOf, shareOf } from './query-rows.js';

/** Small enough that results begin soon, large enough for the engine to batch. */
const QUERIES_PER_BATCH = 1_000;
/** Queries per recall request. */
const RECALL_QUERIES = 500;

const TOP_K_DEFAULT = 10;

export async function queryFile(
  client: Client,
  collection: string,
  options: QueryFileOptions,
): Promise<void> {
  const start = performance.now();
  const progress = progressOf(`${collection}:`, options);
  const k = options.topK ?? TOP_K_DEFAULT;
  try {
    if (options.recall !== undefined) {
      const { measureRecall } = await import('./query-recall.js');
      const queries = await openQueries(options, RECALL_QUERIES);
      const found = await measureRecall(client, collection, { ...options, k }, queries, progress);
      progress?.end(true);
      printRecall(found, k, options.json === true);
      return;
    }
    const format = writeFormatOf(RESULT_FORMATS, options.format, options.output);
    checkOutput(options);
    const { body, queryCount } = await streamQueries(client, collection, options, format, progress);
    const chunks =
      format === 'ivecs' ? ivecsOfMatches(body, k, queryCount) : await toFileFormat(body, format);
    await writeFile(chunks, options);
    progress?.end(true);
    const summary = { collection, queries: queryCount(), format, file: options.output ?? null };
    printResult(`the results of ${queriesOf(queryCount())}`, summary, options, start);
  } catch (error) {
    progress?.end();
    throw error;
  }
}

function printRecall(
  { recall, queryCount }: { recall: number; queryCount: number },
  k: number,
  isJson: boolean,
): void {
  process.stdout.write(
    isJson
      ? `${JSON.stringify({ recall: Number(recall.toFixed(6)), k, queries: queryCount })}\n`
      : `recall@${k}: ${recall.toFixed(4)} (${queriesOf(queryCount)})\n`,
  );
}

function queriesOf(count: number): string {
  return pluralize(count, 'query', 'queries');
}

/** The bytes of the results, and a function that counts the queries sent so far. */
async function streamQueries(
  client: Client,
  collection: string,
  options: QueryFileOptions,
  format: ResultFormat,
  progress: Progress | undefined,
): Promise<{ body: AsyncIterable<Uint8Array>; queryCount: () => number }> {
  const rows = await openQueries(options, QUERIES_PER_BATCH);
  const { source, reader } = rows;
  const dimension = dimensionOf(await client.collections.get(collection), options);
  let queryCount = 0;
  let failure: unknown;
  async function* queries(): AsyncGenerator<Uint8Array> {
    try {
      let hasIds: boolean | undefined;
      for await (const batch of reader.batches(0)) {
        checkBatchDimension(batch, dimension, collection);
        if (hasIds === undefined) {
          // ivecs holds only the integer ids of the matches.
          hasIds = format !== 'ivecs' && batch.ids?.[0] !== undefined;
          yield encodeSchema([
            ...(hasIds ? [{ name: 'query_id', type: 'utf8' } as const] : []),
            { name: 'vector', type: { vectorOf: dimension } },
          ]);
        }
        yield* encodeRecordBatch(batch.rowCount, [
          ...(hasIds ? [{ leaf: textColumn(queryIdsOf(batch)) }] : []),
          { vectors: batch.values },
        ]);
        queryCount += batch.rowCount;
        progress?.update(queryCount, shareOf(rows, queryCount));
      }
      if (hasIds === undefined) throw noQueries(source);
      yield encodeEnd();
    } catch (error) {
      failure = error;
      throw error;
    }
  }
  const { topK = TOP_K_DEFAULT, scoreThreshold } = options;
  const request = {
    format: WRITE_FORMATS[format].wire,
    topK,
    includeMetadata: options.metadata && format !== 'ivecs',
    ...searchOf(options),
    ...(scoreThreshold !== undefined && { scoreThreshold }),
  };
  async function* results(): AsyncGenerator<Uint8Array> {
    try {
      const reply = await client.collection(collection).queryStream(queries(), request);
      yield* requireWhole(request.format, reply.body);
    } catch (error) {
      // An invalid row aborts the request; its error says more than the broken connection.
      throw failure ?? error;
    }
  }
  return { body: results(), queryCount: () => queryCount };
}

/** Throws RowError for a query without an id, since the first query has one. */
function queryIdsOf({ ids = [], rowCount, location }: RowBatch): string[] {
  return Array.from({ length: rowCount }, (_, row) => {
    const id = ids[row];
    if (id !== undefined) return id;
    throw new RowError(
      location(row),
      'the query has no id, but the first query of the file has one',
    );
  });
}

/** The dimension of the vectors that are searched. Throws CliError when the collection has none. */
function dimensionOf(
  { id, dimension, vectors = {} }: CollectionRecord,
  { using }: QueryFileOptions,
): number {
  const found =
    using === undefined
      ? dimension
      : Object.hasOwn(vectors, using)
        ? vectors[using]!.dimension
        : undefined;
  if (found !== undefined) return found;
  const names = Object.keys(vectors);
  const expected =
    names.length === 0 ? 'it has no named vectors' : `expected --using ${names.join(' or ')}`;
  const what = using === undefined ? 'unnamed vectors' : `vectors named ${using}`;
  throw usageError(`collection ${id} has no ${what}; ${expected}`);
}
