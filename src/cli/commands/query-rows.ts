// The queries of `sagitta query --file`: the options that apply to them, the rows of the file, and the request members
// that all queries share.

import type { JsonObject, Metric } from '../../common/types.js';
import { checkOptions, formatOf, type InputFormat, openRows } from '../../readers/formats.js';
import type { InputSource } from '../../readers/input-source.js';
import type { ReaderChoices } from '../../readers/reader-options.js';
import type { RowReader } from '../../readers/row-batch.js';
import { openInput } from '../files/file-source.js';
import { type CliError, usageError } from '../terminal/failure.js';
import { readJsonObject } from '../terminal/option-values.js';
import type { ResultFormat } from '../writers/formats.js';
import type { OutputFileOptions } from '../writers/output-file.js';

/** The options of `sagitta query` that apply to --file. */
export interface QueryFileOptions
  extends OutputFileOptions<ResultFormat>,
    Omit<ReaderChoices, 'fields' | 'exclude'> {
  readonly file: string;
  readonly fileFormat?: InputFormat;
  readonly recall?: string;
  readonly topK?: number;
  readonly filter?: string;
  readonly using?: string;
  readonly metric?: Metric;
  readonly scoreThreshold?: number;
  readonly metadata: boolean;
}

/** The dataset with the queries in the HDF5 files of ann-benchmarks. */
const HDF5_DATASET_DEFAULT = 'test';
/** The queries of --file. */
export interface QueryRows {
  readonly source: InputSource;
  readonly reader: RowReader;
}

export async function openQueries(options: QueryFileOptions, rows: number): Promise<QueryRows> {
  const source = await openInput(options.file);
  const format = options.fileFormat ?? formatOf(source);
  const { idField, valuesField, vectorColumns, delimiter, decimal, dataset } = options;
  const given = { idField, valuesField, vectorColumns, delimiter, decimal, dataset };
  checkOptions(source.name, format, given);
  const reader = await openRows(source, format, {
    ...given,
    // Other columns of the file are ignored.
    fields: [],
    dataset: dataset ?? (format === 'hdf5' ? HDF5_DATASET_DEFAULT : undefined),
    rowsPerBatch: rows,
  });
  return { source, reader };
}

export function noQueries({ name }: InputSource): CliError {
  return usageError(`${name}: the file contains no vectors`);
}

/** The request members that select the vectors to search and the metric. */
export function searchOf(options: QueryFileOptions) {
  const { using, metric } = options;
  const filter = filterOf(options);
  return {
    ...(filter !== undefined && { filter }),
    ...(using !== undefined && { using }),
    ...(metric !== undefined && { metric }),
  };
}

function filterOf({ filter }: QueryFileOptions): JsonObject | undefined {
  return filter === undefined ? undefined : readJsonObject('--filter', filter);
}

export function shareOf(
  { source, reader: { rowCount } }: QueryRows,
  rowsRead: number,
): number | undefined {
  if (rowCount !== undefined) return rowsRead / rowCount;
  return source.byteCount === undefined ? undefined : source.bytesRead() / source.byteCount;
}
