// `sagitta export`: writes a collection, or the vectors that match a filter, to a file. Most formats come from the
// server as they are; Arrow files and files of plain vectors are made from its Arrow stream.

import { type Command, Option } from 'commander';
import { addConnectionOptions, type ConnectionOptions, connect } from '../service/connection.js';
import { EXIT_CODES_TEXT, usageError } from '../terminal/failure.js';
import { readJsonObject, wholeNumber } from '../terminal/option-values.js';
import { pluralize } from '../terminal/units.js';
import { toFileFormat, WRITE_FORMATS, writeFormatOf } from '../writers/formats.js';
import {
  addOutputFileOptions,
  checkOutput,
  countBytes,
  type OutputFileOptions,
  printResult,
  progressOf,
  writeFile,
} from '../writers/output-file.js';
import { requireWhole } from '../writers/whole-reply.js';

const FORMATS = [
  'ndjson',
  'csv',
  'arrow',
  'arrow-stream',
  'parquet',
  'npy',
  'fvecs',
  'fbin',
] as const;
type ExportFormat = (typeof FORMATS)[number];
type VectorFormat = Extract<ExportFormat, 'npy' | 'fvecs' | 'fbin'>;

const EXAMPLES = `
Exports one snapshot of the collection, in insertion order. A file appears under
its name when it is complete; existing files are overwritten only with --force.

Examples:
  $ sagitta export articles -o articles.parquet
  $ sagitta export articles --filter '{"year": {"$gte": 2020}}' -o recent.arrow
  $ sagitta export articles --no-values | head -3
  $ sagitta export articles --sample 10000 -o sample.parquet
  $ sagitta export articles -o articles.csv
  $ sagitta export articles --columns typed -o articles.parquet
  $ sagitta export articles -o a.npy   (also a.ids.txt and a.metadata.ndjson)
  $ sagitta export articles | gzip > articles.ndjson.gz

The file extension selects the format: .ndjson (default on stdout), .csv, .arrow
(file), .arrows (stream), .parquet. The formats .npy, .fvecs and .fbin hold only
the vectors; ids and metadata go to separate files, which sagitta import reads
with --ids and --metadata.

--columns typed gives each metadata path a column in CSV, Arrow and Parquet:
integers, other numbers, text, booleans, lists, and JSON text for mixed types.

${EXIT_CODES_TEXT}`;

const COLUMNS = ['json', 'typed'] as const;

interface ExportOptions extends ConnectionOptions, OutputFileOptions<ExportFormat> {
  readonly filter?: string;
  readonly sample?: number;
  readonly seed?: number;
  readonly values: boolean;
  readonly metadata: boolean;
  readonly columns?: (typeof COLUMNS)[number];
}

export function defineExport(command: Command): void {
  command
    .argument('<collection>', 'collection to export')
    .option('--filter <json|@file>', 'only vectors whose metadata matches')
    .option('--sample <n>', 'export a sample of n vectors, chosen by id', wholeNumber(1, 1e12))
    .option('--seed <n>', 'seed that selects the sample', wholeNumber(0, 2 ** 32 - 1))
    .option('--no-values', 'omit the vectors')
    .option('--no-metadata', 'omit the metadata')
    .addOption(
      new Option('--columns <kind>', 'metadata as JSON text (default) or typed').choices(COLUMNS),
    );
  addOutputFileOptions(command, FORMATS).addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(runExport);
}

async function runExport(id: string, options: ExportOptions): Promise<void> {
  const start = performance.now();
  const format = writeFormatOf(FORMATS, options.format, options.output);
  checkOutput(options);
  const { wire } = WRITE_FORMATS[format];
  const isVectorFile = isVectorFormat(format);
  if (isVectorFile && !options.values) {
    throw usageError(`--format ${format} cannot be combined with --no-values`);
  }
  const isTyped = options.columns === 'typed';
  if (isTyped) checkTyped(format, options);
  const client = connect(options);
  const { dimension, vector_count } = await client.collections.get(id);
  if (isVectorFile && dimension === undefined) {
    throw usageError(
      `--format ${format} holds unnamed vectors, which collection ${id} does not have`,
    );
  }
  const filter =
    options.filter === undefined ? undefined : readJsonObject('--filter', options.filter);
  const progress = progressOf(`${id}:`, options);
  const { body, sequence } = await client.collection(id).exportStream({
    format: wire,
    ...(isTyped && { metadata: 'columns' as const }),
    includeValues: options.values,
    includeMetadata: options.metadata,
    ...(filter !== undefined && { filter }),
    ...(options.sample !== undefined && { sample: options.sample }),
    ...(options.seed !== undefined && { seed: options.seed }),
  });
  let rowCount: number | undefined;
  let byteCount = 0;
  const whole = requireWhole(wire, body);
  const stream = countBytes(whole, (count) => {
    byteCount = count;
    const share =
      rowCount === undefined || filter !== undefined
        ? undefined
        : rowCount / Math.min(vector_count, options.sample ?? vector_count);
    progress?.update(rowCount, share, byteCount);
  });
  try {
    if (isVectorFile && dimension !== undefined) {
      const { sidePaths, writeVectorFiles } = await import('../writers/vector-files.js');
      rowCount = 0;
      await writeVectorFiles(stream, format, options.output!, {
        dimension,
        isForced: options.force === true,
        side: sidePaths(options.output!, options.metadata),
        onRows: (count) => {
          rowCount = count;
        },
      });
    } else if (!isVectorFile) {
      await writeFile(await toFileFormat(stream, format), options);
    }
    // Rows are counted only after the bytes that contain them.
    if (rowCount !== undefined) progress?.update(rowCount, 1, byteCount);
  } finally {
    progress?.end();
    // An unread reply would keep the process alive.
    await body.cancel();
  }
  const rows = rowCount === undefined ? '' : `${pluralize(rowCount, 'row')} of `;
  const summary = { collection: id, format, file: options.output ?? null, sequence };
  printResult(`${rows}${id}`, summary, options, start);
}

const TYPED_FORMATS = ['csv', 'arrow', 'arrow-stream', 'parquet'] as const;

function isTypedFormat(format: ExportFormat): format is (typeof TYPED_FORMATS)[number] {
  return (TYPED_FORMATS as readonly string[]).includes(format);
}

function checkTyped(format: ExportFormat, { metadata }: ExportOptions): void {
  if (!isTypedFormat(format)) {
    throw usageError(
      `--columns typed does not apply to ${format}; expected ${TYPED_FORMATS.join(', ')}`,
    );
  }
  if (!metadata) throw usageError('--columns typed cannot be combined with --no-metadata');
}

function isVectorFormat(format: ExportFormat): format is VectorFormat {
  return format === 'npy' || format === 'fvecs' || format === 'fbin';
}
