// `sagitta export`: a whole collection, or what passes a filter, into a file. Arrow, Parquet and
// NDJSON come from the service as they are; the other formats are made of them on the way.

import type { Command } from 'commander';
import { addConnectionOptions, type ConnectionOptions, connect } from '../connection.js';
import { EXIT_CODES_TEXT, usageError } from '../failure.js';
import { readFilter } from '../filter-option.js';
import { counted as countOf } from '../progress.js';
import {
  addFileOptions,
  checkOutput,
  counted,
  type FileOptions,
  printResult,
  progressOf,
  writeFile,
} from '../transfer.js';
import { encodeMatches, WRITE_FORMATS, writeFormatOf } from '../writers/formats.js';

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
The rows are those of one moment, in the order in which they arrived. A file
appears when it is whole, and none is overwritten without --force.

Examples:
  $ sagitta export articles -o articles.parquet
  $ sagitta export articles --filter '{"year": {"$gte": 2020}}' -o recent.arrow
  $ sagitta export articles --no-values | head -3
  $ sagitta export articles -o articles.csv
  $ sagitta export articles -o a.npy        a.ids.txt and a.metadata.ndjson, too
  $ sagitta export articles | gzip > articles.ndjson.gz

Formats, told by the name: .ndjson (also on stdout), .csv, .arrow (a file),
.arrows (a stream), .parquet; .npy, .fvecs and .fbin hold the vectors alone,
with ids and metadata in files beside them, as sagitta import takes them with
--ids and --metadata.

${EXIT_CODES_TEXT}`;

interface ExportOptions extends ConnectionOptions, FileOptions<ExportFormat> {
  readonly filter?: string;
  readonly values: boolean;
  readonly metadata: boolean;
}

export function addExportCommand(program: Command): void {
  const command = program
    .command('export')
    .description('write the vectors of a collection into a file')
    .argument('<collection>', 'the collection to read')
    .option('--filter <json|@file>', 'only vectors whose metadata passes')
    .option('--no-values', 'ids and metadata only')
    .option('--no-metadata', 'ids and values only');
  addFileOptions(command, FORMATS).addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(runExport);
}

async function runExport(id: string, options: ExportOptions): Promise<void> {
  const start = performance.now();
  const format = writeFormatOf(FORMATS, options.format, options.output);
  checkOutput(options);
  const isVectorFile = isVectorFormat(format);
  if (isVectorFile && !options.values) {
    throw usageError(`--format ${format} holds values, which --no-values leaves out`);
  }
  const client = connect(options);
  const { dimension, vector_count } = await client.collections.get(id);
  const filter = options.filter === undefined ? undefined : readFilter('--filter', options.filter);
  const progress = progressOf(`${id}:`, options);
  const { body, sequence } = await client.collection(id).exportStream({
    // CSV is made of lines, whose numbers are spelled already.
    format: format === 'csv' ? 'ndjson' : WRITE_FORMATS[format].wire,
    includeValues: options.values,
    includeMetadata: options.metadata,
    ...(filter !== undefined && { filter }),
  });
  let rowCount: number | undefined;
  let byteCount = 0;
  const stream = counted(body, (count) => {
    byteCount = count;
    const share =
      rowCount === undefined || filter !== undefined ? undefined : rowCount / vector_count;
    progress?.update(rowCount, share, byteCount);
  });
  try {
    if (isVectorFile) {
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
    } else {
      const names = columnNames(options);
      await writeFile(await encode(stream, format, names), options);
    }
    // Rows are counted behind the bytes in which they came.
    if (rowCount !== undefined) progress?.update(rowCount, 1, byteCount);
  } finally {
    progress?.end();
    // A reply that nobody has read to its end would hold the process.
    await body.cancel();
  }
  const rows = rowCount === undefined ? '' : `${countOf(rowCount, 'row')} of `;
  const facts = { collection: id, format, file: options.output ?? null, sequence };
  printResult(`${rows}${id}`, facts, options, start);
}

async function encode(
  stream: AsyncIterable<Uint8Array>,
  format: Exclude<ExportFormat, VectorFormat>,
  names: readonly string[],
): Promise<AsyncIterable<Uint8Array>> {
  if (format === 'csv') return (await import('../writers/csv.js')).csvOfVectors(stream, names);
  return format === 'parquet' ? stream : await encodeMatches(stream, format);
}

function columnNames({ values, metadata }: ExportOptions): string[] {
  return ['id', ...(values ? ['values'] : []), ...(metadata ? ['metadata'] : [])];
}

function isVectorFormat(format: ExportFormat): format is VectorFormat {
  return format === 'npy' || format === 'fvecs' || format === 'fbin';
}
