// `sagitta import`: rows of files into a collection, which is made when it is not there. Nothing is
// skipped in silence: the first bad row ends the import, with its place and what is committed.

import { type Command, Option } from 'commander';
import { type Client, SagittaClientError } from '../client/client.js';
import { METRICS, type Metric } from '../types.js';
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.js';
import { CliError, usageError } from './failure.js';
import type { ImportRow, RowFields } from './import-row.js';
import { type InputFile, openInput } from './input-file.js';
import { splitNames, wholeNumber } from './options.js';
import { createProgress, formatCount, formatSeconds, type Progress } from './progress.js';
import { Uploader } from './upload.js';

const EXAMPLES = `
A line of NDJSON is a vector as the API takes it, a column of Arrow one of its parts:
  {"id": "a1", "values": [0.12, -0.5, 0.33], "metadata": {"year": 2024}}

Examples:
  $ sagitta import articles.ndjson.gz --collection articles
  $ sagitta import embeddings.arrow --collection docs --values-field embedding --metric dot
  $ sagitta import rows.ndjson --collection docs --fields title,year

The format is found by the first bytes: NDJSON, an Arrow IPC file or stream; gzip is unpacked.
Without --fields, metadata is the member "metadata" of NDJSON and every further column of Arrow,
where dates and timestamps become ISO 8601 text.
Writing the same file twice leaves one vector an id. Rows without id get one each time.`;

interface ImportOptions extends ConnectionOptions {
  readonly collection: string;
  readonly metric?: Metric;
  readonly idField?: string;
  readonly valuesField: string;
  readonly fields?: readonly string[];
  readonly batch: number;
  readonly inFlight: number;
  readonly json?: boolean;
}

export function addImportCommand(program: Command): void {
  const command = program
    .command('import')
    .description('read vectors from NDJSON or Arrow files into a collection')
    .argument('<files...>', 'files to read, in this order')
    .requiredOption('-c, --collection <id>', 'where to; made when it is not there')
    .addOption(
      new Option('--metric <name>', 'of a collection that is made (cosine)').choices(METRICS),
    )
    .option('--id-field <name>', 'the field that holds the id, which every row must have ("id")')
    .option('--values-field <name>', 'the field that holds the vector', 'values')
    .option('--fields <names>', 'the fields that become metadata, with commas', splitNames)
    .option('--batch <rows>', 'rows in one write, which is atomic', wholeNumber(1, 10_000), 500)
    .option('--in-flight <writes>', 'writes under way at once', wholeNumber(1, 16), 3)
    .option('--json', 'print the result as JSON, and no progress')
    .addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(async (paths: string[], options: ImportOptions) => {
    // A server that restarts meanwhile costs a pause, not the import.
    const client = connect(options, { retry: { attemptsMax: 9 } });
    const start = performance.now();
    const progress = options.json ? undefined : createProgress(`${options.collection}:`);
    const result = await importFiles(client, paths, options, progress);
    const seconds = (performance.now() - start) / 1000;
    process.stdout.write(
      options.json
        ? `${JSON.stringify({ ...result, seconds: Number(seconds.toFixed(3)) })}\n`
        : `${formatCount(result.rows)} rows in ${formatSeconds(seconds)} into ` +
            `${result.collection} (${formatCount(result.inserted)} new, ` +
            `${formatCount(result.updated)} replaced)\n`,
    );
  });
}

export interface ImportResult {
  readonly collection: string;
  readonly created: boolean;
  readonly rows: number;
  readonly inserted: number;
  readonly updated: number;
  /** Of the last write; null when there was no row. */
  readonly sequence: number | null;
}

/** Throws CliError with the place of the first bad row. */
export async function importFiles(
  client: Client,
  paths: readonly string[],
  options: Omit<ImportOptions, 'json' | 'url' | 'apiKey'>,
  progress: Progress | undefined,
): Promise<ImportResult> {
  const files = await Promise.all(paths.map(openInput));
  const fields: RowFields = {
    idField: options.idField ?? 'id',
    isIdRequired: options.idField !== undefined,
    valuesField: options.valuesField,
    metadataFields: options.fields,
  };
  let target: Target | undefined;
  const uploader = new Uploader(client.collection(options.collection), {
    rowsPerBatch: options.batch,
    batchesInFlightMax: options.inFlight,
    onCommit: (rowCount) => progress?.update(rowCount, shareRead(files)),
  });
  try {
    for (const file of files) {
      for await (const row of file.rows(fields)) {
        target ??= await openTarget(client, options, row);
        if (row.dimension !== target.dimension) {
          throw new CliError(
            `${row.place}: found ${row.dimension} values, expected the ${target.dimension} ` +
              `of the collection ${options.collection}`,
          );
        }
        await uploader.add(row);
      }
    }
    const { rowCount, insertedCount, updatedCount, sequence } = await uploader.finish();
    return {
      collection: options.collection,
      created: target?.isNew ?? false,
      rows: rowCount,
      inserted: insertedCount,
      updated: updatedCount,
      sequence: sequence ?? null,
    };
  } catch (error) {
    await uploader.settle();
    throw withCommitted(error, uploader.result.rowCount);
  } finally {
    progress?.end();
  }
}

interface Target {
  readonly dimension: number;
  readonly isNew: boolean;
}

async function openTarget(
  client: Client,
  options: Pick<ImportOptions, 'collection' | 'metric'>,
  firstRow: ImportRow,
): Promise<Target> {
  const { collection: id, metric } = options;
  try {
    const record = await client.collections.get(id);
    if (metric !== undefined && metric !== record.metric) {
      throw usageError(`--metric is ${metric}, but the collection ${id} has ${record.metric}`);
    }
    return { dimension: record.dimension, isNew: false };
  } catch (error) {
    const isMissing = error instanceof SagittaClientError && error.code === 'collection_not_found';
    if (!isMissing) throw error;
  }
  const input = { id, dimension: firstRow.dimension, ...(metric !== undefined && { metric }) };
  const { dimension } = await client.collections.create(input, { ifNotExists: true });
  return { dimension, isNew: true };
}

function shareRead(files: readonly InputFile[]): number | undefined {
  const byteCount = files.reduce((sum, file) => sum + file.byteCount, 0);
  const bytesRead = files.reduce((sum, file) => sum + file.bytesRead(), 0);
  return byteCount === 0 ? undefined : Math.min(1, bytesRead / byteCount);
}

/** After a failure the user has to know where the collection stands. */
function withCommitted(error: unknown, rowCount: number): unknown {
  const isOurs = error instanceof CliError || error instanceof SagittaClientError;
  if (!isOurs || rowCount === 0) return error;
  return new CliError(
    `${error.message}\n  ${formatCount(rowCount)} rows were written before; importing the ` +
      'corrected file again replaces them.',
    { cause: error },
  );
}
