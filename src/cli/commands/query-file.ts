// `sagitta query --file`: sends the queries of a file as one stream. Results are written while later
// queries are still being read, so memory use does not depend on the size of the file.

import type { Client, CollectionRecord } from '../../client/client.js';
import type { JsonObject, Metric } from '../../common/types.js';
import { encodeBatch, encodeEnd, encodeSchema } from '../../formats/arrow/ipc-writer.js';
import { CliError, usageError } from '../failure.js';
import { readFilter } from '../options.js';
import type { Progress } from '../progress.js';
import { checkOptions, type FormatName, formatOf, openRows } from '../readers/formats.js';
import { type ResultIds, readResultIds } from '../readers/result-ids.js';
import { checkBatchDimension, type ReadOptions, type RowReader } from '../readers/row-batch.js';
import { type InputSource, openSource } from '../readers/source.js';
import { pluralize } from '../units.js';
import {
  encodeMatches,
  RESULT_FORMATS,
  type ResultFormat,
  writeFormatOf,
} from '../writers/formats.js';
import {
  checkOutput,
  type OutputFileOptions,
  printResult,
  progressOf,
  writeFile,
} from '../writers/output-file.js';
import { ivecsOfMatches } from '../writers/vector-files.js';

/** The options of `sagitta query` that apply to --file. */
export interface QueryFileOptions extends OutputFileOptions<ResultFormat> {
  readonly file: string;
  readonly fileFormat?: FormatName;
  readonly valuesField?: string;
  readonly vectorColumns?: readonly string[];
  readonly dataset?: string;
  readonly recall?: string;
  readonly topK?: number;
  readonly filter?: string;
  readonly using?: string;
  readonly metric?: Metric;
  readonly scoreThreshold?: number;
  readonly metadata: boolean;
}

/** The dataset of queries in the HDF5 files of ann-benchmarks. */
const HDF5_DATASET_DEFAULT = 'test';
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
      const results = await readResultIds(options.recall, k);
      const found = await recallOfFile(client, collection, options, results, progress);
      progress?.end(true);
      printRecall(found, k, options.json === true);
      return;
    }
    const format = writeFormatOf(RESULT_FORMATS, options.format, options.output);
    checkOutput(options);
    const { body, queryCount } = await streamQueries(client, collection, options, format, progress);
    const chunks =
      format === 'ivecs' ? ivecsOfMatches(body, k, queryCount) : await encodeMatches(body, format);
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

async function openQueries(
  options: QueryFileOptions,
  rows: number,
): Promise<{ source: InputSource; reader: RowReader }> {
  const source = await openSource(options.file);
  const format = options.fileFormat ?? formatOf(source);
  const reading: ReadOptions = {
    idField: undefined,
    valuesField: options.valuesField,
    // Other columns of the file are ignored.
    fields: [],
    vectorColumns: options.vectorColumns,
    delimiter: undefined,
    dataset: options.dataset ?? (format === 'hdf5' ? HDF5_DATASET_DEFAULT : undefined),
    rowsPerBatch: rows,
  };
  const { valuesField, vectorColumns, dataset } = options;
  checkOptions(source.name, format, { valuesField, vectorColumns, dataset });
  const reader = await openRows(source, format, reading);
  return { source, reader };
}

/** The bytes of the results, and a function that counts the queries sent so far. */
async function streamQueries(
  client: Client,
  collection: string,
  options: QueryFileOptions,
  format: ResultFormat,
  progress: Progress | undefined,
): Promise<{ body: AsyncIterable<Uint8Array>; queryCount: () => number }> {
  const { source, reader } = await openQueries(options, QUERIES_PER_BATCH);
  const dimension = dimensionOf(await client.collections.get(collection), options);
  let queryCount = 0;
  let failure: unknown;
  async function* queries(): AsyncGenerator<Uint8Array> {
    try {
      yield encodeSchema([{ name: 'vector', type: { vectorOf: dimension } }]);
      for await (const batch of reader.batches(0)) {
        checkBatchDimension(batch, dimension, collection);
        yield* encodeBatch(batch.rowCount, [{ vectors: batch.values }]);
        queryCount += batch.rowCount;
        progress?.update(queryCount, shareOf(source, reader, queryCount));
      }
      yield encodeEnd();
    } catch (error) {
      failure = error;
      throw error;
    }
  }
  const { topK = TOP_K_DEFAULT, using, metric, scoreThreshold } = options;
  const filter = filterOf(options);
  const request = {
    format: format === 'ndjson' ? 'ndjson' : 'arrow',
    topK,
    includeMetadata: options.metadata && format !== 'ivecs',
    ...(filter !== undefined && { filter }),
    ...(using !== undefined && { using }),
    ...(metric !== undefined && { metric }),
    ...(scoreThreshold !== undefined && { scoreThreshold }),
  } as const;
  async function* results(): AsyncGenerator<Uint8Array> {
    try {
      yield* (await client.collection(collection).queryStream(queries(), request)).body;
    } catch (error) {
      // An invalid row aborts the request; its error says more than the broken connection.
      throw failure ?? error;
    }
  }
  return { body: results(), queryCount: () => queryCount };
}

/** Of the vectors that are searched. Throws CliError when the collection has none. */
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
    names.length === 0 ? 'it has no named ones' : `expected --using ${names.join(' or ')}`;
  const what = using === undefined ? 'unnamed vectors' : `vectors named ${using}`;
  throw usageError(`collection ${id} has no ${what}; ${expected}`);
}

/** recall@k of given results: a list of ids per query. */
async function recallOfFile(
  client: Client,
  collection: string,
  options: QueryFileOptions,
  results: ResultIds,
  progress: Progress | undefined,
): Promise<{ recall: number; queryCount: number }> {
  const { source, reader } = await openQueries(options, RECALL_QUERIES);
  const { using, metric } = options;
  // Once, not per batch: stdin can be read only once.
  const filter = filterOf(options);
  const request = {
    ...(filter !== undefined && { filter }),
    ...(using !== undefined && { using }),
    ...(metric !== undefined && { metric }),
  };
  let sum = 0;
  let queryCount = 0;
  for await (const batch of reader.batches(0)) {
    const ids: (readonly string[])[] = [];
    while (ids.length < batch.rowCount) {
      const next = await results.lists.next();
      if (next.done && !results.mayEndEarly) {
        throw new CliError(
          `found ${queryCount + ids.length} results, but ${source.name} has more queries`,
        );
      }
      ids.push(next.done ? [] : next.value);
    }
    const { dimension, values } = batch;
    // A query without results contributes 0.
    const graded = [...ids.entries()].filter(([, list]) => list.length > 0);
    if (graded.length > 0) {
      const reply = await client.collection(collection).recall({
        ...request,
        vectors: graded.map(([row]) => values.subarray(row * dimension, (row + 1) * dimension)),
        ids: graded.map(([, list]) => list),
      });
      for (const recall of reply.recalls) sum += recall;
    }
    queryCount += batch.rowCount;
    progress?.update(queryCount, shareOf(source, reader, queryCount));
  }
  if (queryCount === 0) throw usageError(`${source.name}: the file contains no vectors`);
  return { recall: sum / queryCount, queryCount };
}

function filterOf({ filter }: QueryFileOptions): JsonObject | undefined {
  return filter === undefined ? undefined : readFilter('--filter', filter);
}

function shareOf(
  source: InputSource,
  { rowCount }: RowReader,
  rowsRead: number,
): number | undefined {
  if (rowCount !== undefined) return rowsRead / rowCount;
  return source.byteCount === undefined ? undefined : source.bytesRead() / source.byteCount;
}
