// `sagitta import`: the command and its options; import-files.ts does the work.

import { type Command, Option } from 'commander';
import { METRICS } from '../../common/types.js';
import { addConnectionOptions, type ConnectionOptions, connect, urlOf } from '../connection.js';
import { CliError, EXIT_CODES, EXIT_CODES_TEXT, usageError } from '../failure.js';
import type { ImportChoices, ImportResult } from '../import-files.js';
import { ImportJournal, stateFolder } from '../import-state.js';
import { splitNames, wholeNumber } from '../options.js';
import { counted, createProgress, formatCount, formatSeconds } from '../progress.js';
import { expandColumns } from '../readers/column-names.js';
import { FORMAT_NAMES, FORMATS } from '../readers/formats.js';
import { STDIN } from '../readers/source.js';

const FORMATS_TEXT = FORMAT_NAMES.map(
  (name) => `  ${name.padEnd(14)}${FORMATS[name].title} (.${FORMATS[name].extensions.join(', .')})`,
).join('\n');

const EXAMPLES = `
A line of NDJSON is a vector as the API takes it, a column of a table one of its
parts:
  {"id": "a1", "values": [0.12, -0.5, 0.33], "metadata": {"year": 2024}}

Examples:
  $ sagitta import articles.ndjson.gz --collection articles
  $ sagitta import embeddings.parquet -c docs --values-field embedding
  $ sagitta import rows.csv -c docs --vector-columns d0..d767 --fields year
  $ sagitta import vectors.npy -c docs --ids ids.txt --metadata metadata.ndjson
  $ sagitta import sift-128-euclidean.hdf5 -c sift --metric euclidean --row-ids
  $ duckdb -c "COPY … TO STDOUT (FORMAT csv)" |
      sagitta import - --format csv -c docs

Formats, found by the first bytes or the name:
${FORMATS_TEXT}
All of them but Arrow files, Parquet and HDF5 may be packed with gzip or come
through a pipe. Without --fields, metadata is the member or column "metadata"
and every further column, where dates and timestamps become ISO 8601 text.

Ctrl-C or a lost server ends an import at a known row; the same command goes on
from there. Writing the same file twice leaves one vector an id. Rows without id
get one each time.

${EXIT_CODES_TEXT}`;

interface ImportOptions extends ConnectionOptions, ImportChoices {
  readonly resume: boolean;
  readonly restart?: boolean;
  readonly json?: boolean;
}

export function addImportCommand(program: Command): void {
  const command = program
    .command('import')
    .description('read vectors from files into a collection')
    .argument('<files...>', 'files to read, in this order; - for stdin')
    .requiredOption('-c, --collection <id>', 'where to; made when it is not there')
    .addOption(
      new Option('--format <name>', 'of all the files, in place of a look at them').choices(
        FORMAT_NAMES,
      ),
    )
    .addOption(
      new Option('--metric <name>', 'of a collection that is made (cosine)').choices(METRICS),
    )
    .option('--id-field <name>', 'the field that holds the id, which every row must have ("id")')
    .option('--values-field <name>', 'the field that holds the vector ("values", "vector", …)')
    .option('--fields <names>', 'the fields that become metadata, with commas', splitNames)
    .option(
      '--vector-columns <names>',
      'of CSV, a column a value: d0..d767 or x,y,z',
      expandColumns,
    )
    .option('--delimiter <character>', 'of CSV (a comma, or a tab in .tsv)')
    .option('--dataset <name>', 'of HDF5 ("train")')
    .option('--ids <file>', 'the ids of npy, fvecs, …, one a line')
    .option('--metadata <file>', 'the metadata of npy, fvecs, …, a JSON object a line')
    .option('--row-ids', 'the number of the row, from 0, is the id')
    .option('--batch <rows>', 'rows in one write, which is atomic', wholeNumber(1, 10_000), 5_000)
    .option('--restart', 'from the first row, whatever an earlier run has done')
    .option('--no-resume', 'keep no note of how far the import came')
    .option('--json', 'print the result as JSON, and no progress')
    .addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(runImport);
}

async function runImport(paths: string[], options: ImportOptions): Promise<void> {
  checkOptions(paths, options);
  // Here, since Arrow takes a moment that other commands need not wait.
  const { importFiles } = await import('../import-files.js');
  // A server that restarts meanwhile costs a pause, not the import.
  const client = connect(options, { retry: { attemptsMax: 9 } });
  const firstContact = connect(options);
  const start = performance.now();
  const interruption = new AbortController();
  const stop = (): void => {
    if (interruption.signal.aborted) process.exit(EXIT_CODES.interrupted);
    interruption.abort();
    process.stderr.write('\nsagitta: interrupted; finishing what is on its way\n');
  };
  process.on('SIGINT', stop);
  try {
    const result = await importFiles(client, paths, {
      ...options,
      firstContact,
      openJournal: (incarnation) =>
        options.resume && !paths.includes(STDIN)
          ? ImportJournal.open({
              folder: stateFolder(),
              target: `${urlOf(options)} ${options.collection}`,
              files: [
                ...paths,
                ...[options.ids, options.metadata].filter((path) => path !== undefined),
              ],
              options: readingOptions(options),
              incarnation,
              isRestart: options.restart === true,
            })
          : Promise.resolve(ImportJournal.none()),
      createProgress: (before) =>
        options.json ? undefined : createProgress(`${options.collection}:`, before),
      interruption: interruption.signal,
    });
    print(result, (performance.now() - start) / 1000, options.json === true);
    if (result.isInterrupted) {
      throw new CliError(
        `interrupted after ${counted(result.resumedRows + result.rows, 'row')}; ` +
          (options.resume && !paths.includes(STDIN)
            ? 'the same command goes on from there'
            : 'importing again replaces them'),
        { exitCode: EXIT_CODES.interrupted },
      );
    }
  } finally {
    process.off('SIGINT', stop);
  }
}

function checkOptions(paths: readonly string[], options: ImportOptions): void {
  const hasSideFiles = options.ids !== undefined || options.metadata !== undefined;
  if (hasSideFiles && paths.length > 1) {
    throw usageError(`--ids and --metadata belong to one file, found ${paths.length}`);
  }
  const idSources = [options.ids, options.rowIds, options.idField].filter(
    (each) => each !== undefined,
  );
  if (idSources.length > 1) {
    throw usageError('expected at most one of --ids, --row-ids and --id-field, found more');
  }
}

/** What decides about the rows: with other options the import is another one. */
function readingOptions(options: ImportOptions): string {
  const { format, idField, valuesField, vectorColumns, delimiter, fields, dataset } = options;
  const { ids, metadata, rowIds } = options;
  return JSON.stringify([
    ...[format, idField, valuesField, vectorColumns, delimiter, fields, dataset],
    ...[ids, metadata, rowIds],
  ]);
}

function print(result: ImportResult, seconds: number, isJson: boolean): void {
  const { collection, created, rows, inserted, updated, sequence, resumedRows } = result;
  if (isJson) {
    const reply = { collection, created, rows, inserted, updated, sequence };
    const rest = { resumed_rows: resumedRows, seconds: Number(seconds.toFixed(3)) };
    process.stdout.write(`${JSON.stringify({ ...reply, ...rest })}\n`);
    return;
  }
  const before = resumedRows === 0 ? '' : `, after ${formatCount(resumedRows)} of an earlier run`;
  process.stdout.write(
    `${counted(rows, 'row')} in ${formatSeconds(seconds)} into ${collection} ` +
      `(${formatCount(inserted)} new, ${formatCount(updated)} replaced)${before}\n`,
  );
}
