// `sagitta import`: the command, its options and its output. import/import-files.ts does the work.

import { type Command, Option } from 'commander';
import { METRICS } from '../../common/types.js';
import { INPUT_FORMAT_NAMES, INPUT_FORMATS } from '../../readers/formats.js';
import { isPipe, STDIN } from '../files/file-source.js';
import type { ImportChoices, ImportResult } from '../import/import-files.js';
import { ImportJournal, stateDirectory } from '../import/journal.js';
import type { ImportMode } from '../import/uploader.js';
import {
  addConnectionOptions,
  type ConnectionOptions,
  connect,
  urlOf,
} from '../service/connection.js';
import { CliError, EXIT_CODES, EXIT_CODES_TEXT, usageError } from '../terminal/failure.js';
import {
  decimalOption,
  expandColumns,
  parseDelimiter,
  splitNames,
  wholeNumber,
} from '../terminal/option-values.js';
import { createProgress } from '../terminal/progress.js';
import { formatCount, formatSeconds, pluralize } from '../terminal/units.js';

const FORMATS_TEXT = INPUT_FORMAT_NAMES.map(
  (name) =>
    `  ${name.padEnd(14)}${INPUT_FORMATS[name].title} (.${INPUT_FORMATS[name].extensions.join(', .')})`,
).join('\n');

const EXAMPLES = `
Each line of NDJSON is a vector as in the API; tables have a column per member:
  {"id": "a1", "values": [0.12, -0.5, 0.33], "metadata": {"year": 2024}}

Examples:
  $ sagitta import articles.ndjson.gz --collection articles
  $ sagitta import embeddings.parquet -c docs --values-field embedding
  $ sagitta import rows.csv -c docs --vector-columns d0..d767 --fields year
  $ sagitta import vectors.npy -c docs --ids ids.txt --metadata metadata.ndjson
  $ sagitta import sift-128-euclidean.hdf5 -c sift --metric euclidean --row-ids
  $ sagitta import articles.csv -c articles --embed body
  $ sagitta import glove.6B.300d.txt -c words
  $ sagitta import summaries.npy -c docs --ids ids.txt \\
      --mode patch --vector-name summary
  $ duckdb -c "COPY … TO STDOUT (FORMAT csv)" |
      sagitta import - --format csv -c docs

Formats, detected from the first bytes or the file extension:
${FORMATS_TEXT}
All except Arrow files, Parquet, npz and HDF5 may be gzip-compressed or read
from a pipe, which cannot be resumed. By default, metadata is the member or
column "metadata" plus all other columns (--fields selects some, --exclude
leaves some out); dates and timestamps become ISO 8601 text. Named vectors are
in the columns vectors.<name>, in NDJSON in the member "vectors".

With --mode patch, rows have an id and the parts that change: named vectors,
values or metadata, which is merged. Vectors that a row lacks are kept; members
of metadata that are null, such as empty cells of CSV, are removed.

In a cluster, uploads go to up to four nodes at once, if the key has the scope
metrics:read (see sagitta cluster status) and the nodes can be reached.

After Ctrl-C or a lost connection, run the same command again to resume.
Importing a file twice replaces the vectors with the same ids. Rows without an
id get a new id in each import.

${EXIT_CODES_TEXT}`;

/** Enough attempts to survive a restart of the server. */
const PERSISTENT = { retry: { attemptsMax: 9 } } as const;

const MODES = ['upsert', 'update', 'patch'] as const satisfies readonly ImportMode[];

interface ImportOptions extends ConnectionOptions, ImportChoices {
  readonly resume: boolean;
  readonly restart?: boolean;
  readonly json?: boolean;
}

export function defineImport(command: Command): void {
  command
    .argument('<files...>', 'files to read, in order; - for stdin')
    .requiredOption('-c, --collection <id>', 'target collection; created if it does not exist')
    .addOption(
      new Option('--format <name>', 'input format (default: detected)').choices(INPUT_FORMAT_NAMES),
    )
    .addOption(
      new Option('--metric <name>', 'metric of a new collection (default: cosine)').choices(
        METRICS,
      ),
    )
    .addOption(
      new Option(
        '--mode <name>',
        'update only existing ids, or patch parts of existing vectors (default: upsert)',
      ).choices(MODES),
    )
    .option('--vector-name <name>', 'named vector that receives the vectors of the file')
    .option(
      '--embed <name>',
      'field of the text that the model of the collection turns into the vector',
    )
    .option('--id-field <name>', 'field of the id; every row must have one (default: id, optional)')
    .option('--values-field <name>', 'field of the vector (default: values, vector or embedding)')
    .option('--fields <names>', 'fields to store as metadata, comma-separated', splitNames)
    .option('--exclude <names>', 'fields not to store, such as binary columns', splitNames)
    .option(
      '--vector-columns <names>',
      'columns with one value each: d0..d767 or x,y,z',
      expandColumns,
    )
    .option(
      '--delimiter <character>',
      'CSV delimiter; \\t for tab (default: comma; tab for .tsv)',
      parseDelimiter,
    )
    .addOption(decimalOption())
    .option('--dataset <name>', 'HDF5 dataset (default: train) or array of an npz file')
    .addOption(
      new Option('--nan <value>', 'NaN in metadata: null (default: an error)').choices(['null']),
    )
    .option('--no-index', 'leave out the unnamed index of pandas and of CSV files')
    .option('--ids <file>', 'ids for npy, fvecs, …: one per line')
    .option('--metadata <file>', 'metadata for npy, fvecs, …: one JSON object per line')
    .option('--row-ids', 'use the row number, from 0, as the id')
    .option('--batch <rows>', 'rows per write; each write is atomic', wholeNumber(1, 10_000), 5_000)
    .option('--restart', 'start over instead of resuming an earlier run')
    .option('--no-resume', 'do not record progress for resuming')
    .option('--json', 'print a JSON summary and no progress')
    .addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(runImport);
}

async function runImport(paths: string[], options: ImportOptions): Promise<void> {
  checkOptions(paths, options);
  // Loaded only here, since loading Arrow would slow down the other commands.
  const { importAgain, importFiles } = await import('../import/import-files.js');
  const client = connect(options, PERSISTENT);
  const firstContact = connect(options);
  const nodes = {
    url: urlOf(options),
    connectTo: (url: string) => connect({ ...options, url }, PERSISTENT),
  };
  const files = [...paths, ...sideFilesOf(options)];
  const isPiped = (await Promise.all(files.map(isPipe))).includes(true);
  const isResumable = options.resume && !isPiped;
  const indexes = new Set<string>();
  const start = performance.now();
  const interruption = new AbortController();
  const stop = (): void => {
    if (interruption.signal.aborted) process.exit(EXIT_CODES.interrupted);
    interruption.abort();
    process.stderr.write('\nsagitta: interrupted; waiting for the current writes\n');
  };
  process.on('SIGINT', stop);
  try {
    const result = await importFiles(client, paths, {
      ...options,
      firstContact,
      nodes,
      openJournal: (incarnation) =>
        isResumable
          ? ImportJournal.open({
              directory: stateDirectory(),
              target: `${urlOf(options)} ${options.collection}`,
              files,
              options: readingOptions(options),
              incarnation,
              isRestart: options.restart === true,
            })
          : Promise.resolve(ImportJournal.none()),
      createProgress: (before) =>
        options.json ? undefined : createProgress(`${options.collection}:`, before),
      interruption: interruption.signal,
      isPiped,
      onIndex: (names) => {
        for (const name of names) indexes.add(name);
      },
    });
    print(result, indexes, (performance.now() - start) / 1000, options);
    if (result.isInterrupted) {
      throw new CliError(
        `interrupted after ${pluralize(result.resumedRows + result.rows, 'row')}; ` +
          (isResumable ? 'run the same command again to resume' : importAgain(isPiped)),
        { exitCode: EXIT_CODES.interrupted },
      );
    }
  } finally {
    process.off('SIGINT', stop);
  }
}

function sideFilesOf({ ids, metadata }: ImportOptions): string[] {
  return [ids, metadata].filter((path) => path !== undefined);
}

function checkOptions(paths: readonly string[], options: ImportOptions): void {
  const sideFiles = sideFilesOf(options);
  if ([...paths, ...sideFiles].filter((path) => path === STDIN).length > 1) {
    throw usageError('- stands for stdin, which can be read only once');
  }
  if (sideFiles.length > 0 && paths.length > 1) {
    throw usageError(`--ids and --metadata require a single input file, found ${paths.length}`);
  }
  const idSources = [options.ids, options.rowIds, options.idField].filter(
    (each) => each !== undefined,
  );
  if (idSources.length > 1) {
    throw usageError('--ids, --row-ids and --id-field are mutually exclusive');
  }
  const vectorSources = (['valuesField', 'vectorColumns', 'vectorName'] as const).filter(
    (name) => options[name] !== undefined,
  );
  if (options.embed !== undefined && vectorSources.length > 0) {
    throw usageError(
      '--embed makes the vectors, so it excludes --values-field, --vector-columns and --vector-name',
    );
  }
  if (options.fields !== undefined && options.exclude !== undefined) {
    throw usageError('--fields and --exclude are mutually exclusive');
  }
}

/** The options that determine how rows are read; an import cannot be resumed with different ones. */
function readingOptions(options: ImportOptions): string {
  const { format, idField, valuesField, vectorColumns, delimiter, fields, dataset } = options;
  const { ids, metadata, rowIds, exclude, decimal, nan, index, mode, vectorName, embed } = options;
  return JSON.stringify([
    ...[format, idField, valuesField, vectorColumns, delimiter, fields, dataset],
    ...[ids, metadata, rowIds, exclude, decimal, nan, index, mode, vectorName, embed],
  ]);
}

function print(
  result: ImportResult,
  indexes: ReadonlySet<string>,
  seconds: number,
  { json: isJson = false, mode }: ImportOptions,
): void {
  const { collection, created, rows, inserted, updated, sequence, resumedRows, generated } = result;
  if (isJson) {
    const reply = { collection, created, rows, inserted, updated, sequence };
    const ids = generated === null ? {} : { generated_ids: generated };
    const index = indexes.size === 0 ? {} : { index_columns: [...indexes] };
    const rest = {
      ...ids,
      ...index,
      resumed_rows: resumedRows,
      seconds: Number(seconds.toFixed(3)),
    };
    process.stdout.write(`${JSON.stringify({ ...reply, ...rest })}\n`);
    return;
  }
  const verb = mode === 'patch' ? 'changed' : 'replaced';
  const before =
    resumedRows === 0 ? '' : `, after ${pluralize(resumedRows, 'row')} of an earlier run`;
  process.stdout.write(
    `Imported ${pluralize(rows, 'row')} into ${collection} in ${formatSeconds(seconds)} ` +
      `(${formatCount(inserted)} new, ${formatCount(updated)} ${verb})${before}.\n`,
  );
  for (const name of indexes) {
    process.stdout.write(
      `The column ${JSON.stringify(name)} is probably an index added by the program that wrote the file. It was stored as metadata; --no-index leaves it out.\n`,
    );
  }
  if (generated === null) return;
  const { count, first, last } = generated;
  process.stdout.write(
    count === 1
      ? `1 row without an id got the new id ${first}; if the file has ids, name their field with --id-field.\n`
      : `${formatCount(count)} rows without an id got new ids, from ${first} to ${last}; if the file has ids, name their field with --id-field.\n`,
  );
}
