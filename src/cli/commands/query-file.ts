// Queries from a file, sent as one stream: answers come back and are written while later queries are
// still being read. Nothing is kept in memory but what is on its way.

import type { Client } from '../../client/client.js';
import type { JsonObject, Metric } from '../../common/types.js';
import { encodeBatch, encodeEnd, encodeSchema } from '../../formats/arrow/ipc-writer.js';
import { ANSWER_FORMATS, type AnswerFormat } from '../answer-formats.js';
import { CliError, usageError } from '../failure.js';
import { readFilter } from '../filter-option.js';
import { counted, type Progress } from '../progress.js';
import {
  checkOptions,
  type FormatName,
  formatOf,
  openRows,
  openVectors,
} from '../readers/formats.js';
import type { ReadOptions, RowBatch, RowReader } from '../readers/row-batch.js';
import { type InputSource, openSource } from '../readers/source.js';
import { checkOutput, type FileOptions, printResult, progressOf, writeFile } from '../transfer.js';
import { encodeMatches, writeFormatOf } from '../writers/formats.js';
import { ivecsOfMatches } from '../writers/ivecs.js';

/** As the command line gives them. */
export interface QueryFileOptions extends FileOptions<AnswerFormat> {
  readonly file: string;
  readonly fileFormat?: FormatName;
  readonly valuesField?: string;
  readonly vectorColumns?: readonly string[];
  readonly dataset?: string;
  readonly recall?: string;
  readonly topK?: number;
  readonly filter?: string;
  readonly metric?: Metric;
  readonly scoreThreshold?: number;
  readonly metadata: boolean;
}

/** Of ann-benchmarks: its queries. */
const DATASET_DEFAULT = 'test';
/** Small enough that answers begin soon, and large enough for the engine. */
const QUERIES_PER_BATCH = 1_000;
/** As many as a request of recall takes. */
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
      const answers = readAnswers(options.recall, k);
      const found = await recallOfFile(client, collection, options, answers, progress);
      progress?.end(true);
      printRecall(found, k, options.json === true);
      return;
    }
    const format = writeFormatOf(ANSWER_FORMATS, options.format, options.output);
    checkOutput(options);
    const { body, queryCount } = await askFile(client, collection, options, format, progress);
    const chunks =
      format === 'ivecs' ? ivecsOfMatches(body, k, queryCount) : await encodeMatches(body, format);
    await writeFile(chunks, options);
    progress?.end(true);
    const facts = { collection, queries: queryCount(), format, file: options.output ?? null };
    printResult(`answers to ${queriesOf(queryCount())}`, facts, options, start);
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
      : `recall@${k} ${recall.toFixed(4)} of ${queriesOf(queryCount)}\n`,
  );
}

function queriesOf(count: number): string {
  return counted(count, 'query', 'queries');
}

async function openQueries(
  options: QueryFileOptions,
  rows: number,
): Promise<{ source: InputSource; reader: RowReader }> {
  const source = await openSource(options.file);
  const reading: ReadOptions = {
    idField: undefined,
    valuesField: options.valuesField,
    // Whatever else the rows have is not asked for.
    fields: [],
    vectorColumns: options.vectorColumns,
    delimiter: undefined,
    dataset: options.dataset ?? DATASET_DEFAULT,
    rowsPerBatch: rows,
  };
  const format = options.fileFormat ?? formatOf(source);
  const { valuesField, vectorColumns, dataset } = options;
  checkOptions(source.name, format, { valuesField, vectorColumns, dataset });
  const reader = await openRows(source, format, reading);
  return { source, reader };
}

/** The answers as bytes, and how many queries were asked so far. */
async function askFile(
  client: Client,
  collection: string,
  options: QueryFileOptions,
  format: AnswerFormat,
  progress: Progress | undefined,
): Promise<{ body: AsyncIterable<Uint8Array>; queryCount: () => number }> {
  const { source, reader } = await openQueries(options, QUERIES_PER_BATCH);
  const { dimension } = await client.collections.get(collection);
  let queryCount = 0;
  let failure: unknown;
  async function* queries(): AsyncGenerator<Uint8Array> {
    try {
      yield encodeSchema([{ name: 'vector', type: { vectorOf: dimension } }]);
      for await (const batch of reader.batches(0)) {
        checkDimension(batch, dimension, collection);
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
  const { topK = TOP_K_DEFAULT, metric, scoreThreshold } = options;
  const filter = filterOf(options);
  const request = {
    format: format === 'ndjson' ? 'ndjson' : 'arrow',
    topK,
    includeMetadata: options.metadata && format !== 'ivecs',
    ...(filter !== undefined && { filter }),
    ...(metric !== undefined && { metric }),
    ...(scoreThreshold !== undefined && { scoreThreshold }),
  } as const;
  async function* answers(): AsyncGenerator<Uint8Array> {
    try {
      yield* (await client.collection(collection).queryStream(queries(), request)).body;
    } catch (error) {
      // A bad row ends the request, of which the broken connection says less.
      throw failure ?? error;
    }
  }
  return { body: answers(), queryCount: () => queryCount };
}

/** recall@k of answers that somebody else has given, as row numbers or ids, a list a query. */
async function recallOfFile(
  client: Client,
  collection: string,
  options: QueryFileOptions,
  answers: AsyncIterable<string[][]>,
  progress: Progress | undefined,
): Promise<{ recall: number; queryCount: number }> {
  const { source, reader } = await openQueries(options, RECALL_QUERIES);
  const lists = answers[Symbol.asyncIterator]();
  let held: string[][] = [];
  let sum = 0;
  let queryCount = 0;
  for await (const batch of reader.batches(0)) {
    while (held.length < batch.rowCount) {
      const next = await lists.next();
      if (next.done) {
        throw new CliError(
          `found ${queryCount + held.length} lists of answers, but ${source.name} has more queries`,
        );
      }
      held.push(...next.value);
    }
    const { dimension } = batch;
    const vectors = Array.from({ length: batch.rowCount }, (_, row) =>
      batch.values.subarray(row * dimension, (row + 1) * dimension),
    );
    const ids = held.slice(0, batch.rowCount);
    held = held.slice(batch.rowCount);
    const { metric } = options;
    const filter = filterOf(options);
    const reply = await client.collection(collection).recall(vectors, ids, {
      ...(filter !== undefined && { filter }),
      ...(metric !== undefined && { metric }),
    });
    for (const recall of reply.recalls) sum += recall;
    queryCount += batch.rowCount;
    progress?.update(queryCount, shareOf(source, reader, queryCount));
  }
  if (queryCount === 0) throw usageError(`${source.name}: found no queries`);
  return { recall: sum / queryCount, queryCount };
}

/** The first `k` of each list, as ids: the numbers of ivecs or of a dataset of neighbors. */
async function* readAnswers(path: string, k: number): AsyncGenerator<string[][]> {
  const { reader } = await openVectors(path, {
    dataset: 'neighbors',
    rowsPerBatch: RECALL_QUERIES,
  });
  for await (const { rowCount, dimension, values } of reader.batches(0)) {
    if (dimension < k) {
      throw new CliError(`${path}: found lists of ${dimension} answers, expected --top-k ${k}`);
    }
    yield Array.from({ length: rowCount }, (_, row) =>
      // Less than 0 stands for no answer.
      Array.from(values.subarray(row * dimension, row * dimension + k))
        .filter((id) => id >= 0)
        .map((id) => idOfNumber(path, id)),
    );
  }
}

/** Beyond this, numbers of a file of vectors are not exact. */
const WHOLE_MAX = 2 ** 24;

function idOfNumber(path: string, id: number): string {
  if (Number.isInteger(id) && id < WHOLE_MAX) return String(id);
  throw new CliError(`${path}: found the answer ${id}, expected whole numbers below ${WHOLE_MAX}`);
}

function filterOf({ filter }: QueryFileOptions): JsonObject | undefined {
  return filter === undefined ? undefined : readFilter('--filter', filter);
}

function checkDimension(batch: RowBatch, dimension: number, collection: string): void {
  if (batch.dimension === dimension) return;
  throw new CliError(
    `${batch.place(0)}: found ${batch.dimension} values, expected the ${dimension} ` +
      `of the collection ${collection}`,
  );
}

function shareOf(
  source: InputSource,
  { rowCount }: RowReader,
  rowsRead: number,
): number | undefined {
  if (rowCount !== undefined) return rowsRead / rowCount;
  return source.byteCount === undefined ? undefined : source.bytesRead() / source.byteCount;
}
