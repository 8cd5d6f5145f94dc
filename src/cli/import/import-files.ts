// The import itself: reads files and writes their rows. Creates the collection if it does not exist, resumes where an
// earlier run stopped, and fails at the first invalid row with its location and the number of rows already written.

import {
  type Client,
  type CollectionInput,
  type CollectionRecord,
  denseVectors,
  SagittaClientError,
} from '@sagitta/client';
import type { Metric } from '../../common/types.js';
import { UNNAMED } from '../../common/vectors.js';
import { whenAborted } from '../../common/when-aborted.js';
import {
  checkOptions,
  formatOf,
  INPUT_FORMATS,
  type InputFormat,
  openRows,
} from '../../readers/formats.js';
import type { InputSource } from '../../readers/input-source.js';
import { ReadError, RowError } from '../../readers/read-error.js';
import type { ReaderChoices, TargetVectors } from '../../readers/reader-options.js';
import {
  checkBatchDimension,
  type NamedVectors,
  type RowBatch,
  type RowReader,
} from '../../readers/row-batch.js';
import { EMBED_ROWS_MAX } from '../../readers/texts.js';
import { findInput, type Input } from '../files/file-source.js';
import { withSideFiles } from '../files/side-files.js';
import { CliError, isUnreachable, usageError } from '../terminal/failure.js';
import type { Progress } from '../terminal/progress.js';
import { formatCount, pluralize } from '../terminal/units.js';
import { type ImportJournal, type ImportProgress, rowId, START } from './journal.js';
import { findOtherTargets } from './targets.js';
import { type ImportMode, Uploader, type UploadResult, type UploadTarget } from './uploader.js';

/** The options of the command that determine how files are read and where their rows go. */
export interface ImportChoices extends ReaderChoices {
  readonly collection: string;
  readonly format?: InputFormat;
  /** Absent: `upsert`. */
  readonly mode?: ImportMode;
  /** The named vector that receives the vectors of the files. Absent: the unnamed vector. */
  readonly vectorName?: string;
  readonly metric?: Metric;
  readonly ids?: string;
  readonly metadata?: string;
  readonly rowIds?: boolean;
  readonly nan?: 'null';
  /** False leaves out index columns. */
  readonly index?: boolean;
  readonly batch: number;
}

export interface ImportFilesOptions extends ImportChoices {
  /** Client for the first request, with fewer retries. Absent: the main client. */
  readonly firstContact?: Client;
  /** How to reach the other nodes of a cluster. Absent: all rows go through the main client. */
  readonly nodes?: {
    /** The address of the main client. */
    readonly url: string;
    readonly connectTo: (url: string) => Client;
  };
  /** `incarnation` distinguishes the collection from an earlier one with the same id. */
  readonly openJournal: (incarnation: string) => Promise<ImportJournal>;
  readonly createProgress: (before: { readonly rowCount: number }) => Progress | undefined;
  readonly interruption: AbortSignal;
  /** Receives the names of metadata columns that are probably an index. */
  readonly onIndex?: (names: readonly string[]) => void;
  /** Whether one of the files is a pipe, so that the import cannot be repeated from the same files. */
  readonly isPiped?: boolean;
}

export interface ImportResult {
  readonly collection: string;
  readonly created: boolean;
  /** Rows written by this run, like the next two counts. */
  readonly rows: number;
  readonly inserted: number;
  readonly updated: number;
  /** Sequence of the last write; null when no row was written. */
  readonly sequence: number | null;
  /** Rows written by an earlier run, which this run skipped. */
  readonly resumedRows: number;
  /** The ids that this run generated for rows without one; null if it generated none. */
  readonly generated: GeneratedIds | null;
  readonly isInterrupted: boolean;
}

interface GeneratedIds {
  readonly count: number;
  readonly first: string;
  readonly last: string;
}

interface Target {
  /** Dimension of the unnamed vector; 0 if the collection has none. */
  readonly dimension: number;
  readonly vectors: TargetVectors;
  readonly record: CollectionRecord;
  /** The collection as this import created it; null if it existed before. */
  readonly created: CollectionRecord | null;
  readonly journal: ImportJournal;
  /**
   * The dimension of the unnamed vectors of the rows so far, 0 for rows without them: all rows of an upload have the
   * same schema.
   */
  readonly uniform: { dimension?: number };
}

/** Throws CliError with the location of the first invalid row. */
export async function importFiles(
  client: Client,
  paths: readonly string[],
  options: ImportFilesOptions,
): Promise<ImportResult> {
  const inputs = await Promise.all(paths.map(findInput));
  const existing = await findTarget(options.firstContact ?? client, options);
  let target = existing;
  // Without a collection there is nothing to resume.
  const start = existing?.journal.progress ?? START;
  const progress = options.createProgress({ rowCount: start.total });
  const shares = new ReadShares(inputs);
  let uploader: Uploader | undefined;
  let generated: GeneratedIds | null = null;
  const onGenerated = (id: string): void => {
    generated = { count: (generated?.count ?? 0) + 1, first: generated?.first ?? id, last: id };
  };
  let isInterrupted = false;
  let isDone = false;
  try {
    if (start.total > 0) progress?.note(`resuming at row ${formatCount(start.total + 1)}`);
    for (let file = start.file; file < inputs.length && !isInterrupted; file++) {
      const source = await raceInterruption(inputs[file]!.open(), options.interruption);
      if (source === undefined) break;
      const reader = await openReader(source, options, existing?.vectors);
      let row = file === start.file ? start.row : 0;
      for await (const found of untilInterrupted(reader.batches(row), options.interruption)) {
        const batch = toNamedVector(found, options);
        target ??= await createTarget(client, options, batch);
        checkBatch(batch, target, options);
        uploader ??= await createUploader(client, options, target, {
          onGenerated,
          onCommit: (done) =>
            progress?.update(done.rowCount, shares.at(done.progress), done.byteCount),
          onNote: (text) => progress?.note(text),
        });
        row += batch.rowCount;
        shares.mark({ file, row }, source, reader.rowCount);
        await uploader.add(completeNamed(batch, target), file, row - batch.rowCount);
      }
    }
    isInterrupted = options.interruption.aborted;
    if (isInterrupted) await uploader?.settle();
    else if (uploader === undefined && start.total === 0) throw noRows(inputs);
    else await uploader?.finish();
    if (!isInterrupted) await target?.journal.remove();
    isDone = !isInterrupted;
  } catch (error) {
    await uploader?.settle();
    if (!isUnreachable(error)) await removeUnused(client, target, uploader?.result);
    throw withCommittedRows(error, uploader?.result, target, options.isPiped === true);
  } finally {
    progress?.end(isDone);
  }
  const done = uploader?.result;
  return {
    collection: options.collection,
    created: target?.created != null,
    rows: done?.rowCount ?? 0,
    inserted: done?.insertedCount ?? 0,
    updated: done?.updatedCount ?? 0,
    sequence: done?.sequence ?? null,
    resumedRows: start.total,
    generated,
    isInterrupted,
  };
}

/** Files without rows most likely come from a failed export, which a script should notice. */
function noRows(inputs: readonly Input[]): CliError {
  const names = inputs.map(({ name }) => name).join(', ');
  return new CliError(`${names}: found no rows, expected at least one; nothing was imported`);
}

/** Turns the unnamed vectors of the rows into the named vector of the options, if they name one. */
function toNamedVector(batch: RowBatch, { vectorName: name }: ImportChoices): RowBatch {
  if (name === undefined) return batch;
  const { rowCount, values, dimension, named: others = [] } = batch;
  const presence = new Uint8Array(rowCount).fill(1);
  return {
    ...batch,
    values: new Float32Array(0),
    dimension: 0,
    named: [...others, { name, dimension, values, presence }],
  };
}

/** Throws RowError for rows that the collection or the mode does not accept. */
function checkBatch(
  batch: RowBatch,
  { dimension, vectors, uniform }: Target,
  { collection, mode = 'upsert', rowIds = false, vectorName: name }: ImportChoices,
): void {
  const isBare = batch.dimension === 0 && (mode === 'patch' || batch.texts !== undefined);
  if (!isBare) checkBatchDimension(batch, dimension, collection);
  uniform.dimension ??= batch.dimension;
  if (batch.dimension !== uniform.dimension) {
    const expected = uniform.dimension === 0 ? 'none' : 'some';
    throw new RowError(
      batch.location(0),
      `found ${batch.dimension} values, expected ${expected} as in the rows before; import rows with and without values separately`,
    );
  }
  if (name !== undefined) {
    const found = batch.named!.at(-1)!.dimension;
    const expected = vectors.named.get(name);
    if (found !== expected) {
      throw new RowError(
        batch.location(0),
        `found ${found} values, but the vector ${name} of ${collection} has dimension ${expected}`,
      );
    }
  }
  if (mode === 'upsert' || rowIds) return;
  const row = batch.ids === undefined ? 0 : batch.ids.indexOf(undefined);
  if (row === -1) return;
  throw new RowError(
    batch.location(row),
    `found no id, which --mode ${mode} needs; name its field with --id-field, or a file of ids with --ids`,
  );
}

async function openReader(
  source: InputSource,
  options: ImportFilesOptions,
  vectors: TargetVectors | undefined,
): Promise<RowReader> {
  const format = options.format ?? formatOf(source);
  const { ids, metadata } = options;
  const hasSideFiles = ids !== undefined || metadata !== undefined;
  if (hasSideFiles && INPUT_FORMATS[format].hasMetadata) {
    throw usageError(
      `--ids and --metadata apply only to files of plain vectors, found ${INPUT_FORMATS[format].title}`,
    );
  }
  const isNanNull = options.nan === 'null';
  // --nan also applies to a file of metadata beside a file of vectors.
  checkOptions(
    source.name,
    format,
    metadata === undefined ? options : { ...options, nan: undefined },
  );
  const reader = await openRows(source, format, {
    ...options,
    rowsPerBatch: options.batch,
    vectors: vectorsToRead(vectors, options),
    isNanNull,
    withoutIndex: options.index === false,
  });
  return hasSideFiles
    ? await withSideFiles(reader, source.name, { ids, metadata, isNanNull })
    : reader;
}

/**
 * The vectors to read from the files. With `--vector-name`, every row must have the unnamed vector, which is renamed.
 */
function vectorsToRead(
  vectors: TargetVectors | undefined,
  { vectorName, mode }: ImportChoices,
): TargetVectors | undefined {
  if (vectorName === undefined) return vectors && { ...vectors, isPatch: mode === 'patch' };
  const others = [...(vectors?.named ?? [])].filter(([name]) => name !== vectorName);
  return { hasUnnamed: true, named: new Map(others) };
}

interface UploaderEvents {
  readonly onGenerated: (id: string) => void;
  readonly onCommit: (result: UploadResult) => void;
  readonly onNote: (text: string) => void;
}

async function createUploader(
  client: Client,
  options: ImportFilesOptions,
  { journal, record }: Target,
  { onGenerated, onCommit, onNote }: UploaderEvents,
): Promise<Uploader> {
  const { seed, progress } = journal;
  const { mode, embed, interruption } = options;
  const generate = (row: number): string => {
    const id = rowId(seed, row);
    onGenerated(id);
    return id;
  };
  return new Uploader(await targetsOf(client, options, record, onNote), {
    idOf: options.rowIds ? (_, row) => String(row) : (found, row) => found ?? generate(row),
    start: progress,
    ...(mode !== undefined && { mode }),
    uploadRowsMax: embed === undefined ? undefined : EMBED_ROWS_MAX,
    interruption,
    onCommit: async (result) => {
      await journal.save(result.progress);
      onCommit(result);
    },
  });
}

/** Several nodes only for upserts: they are repeatable, and only ids that are written twice depend on their order. */
async function targetsOf(
  client: Client,
  { collection, mode = 'upsert', embed, firstContact, nodes }: ImportFilesOptions,
  record: CollectionRecord,
  onNote: (text: string) => void,
): Promise<readonly UploadTarget[]> {
  const { writeStream } = client.collection(collection);
  const main: UploadTarget = { writeStream };
  if (nodes === undefined || mode !== 'upsert' || embed !== undefined) return [main];
  const { service } = firstContact ?? client;
  return [main, ...(await findOtherTargets({ service, ...nodes, collection, record, onNote }))];
}

async function findTarget(
  client: Client,
  options: ImportFilesOptions,
): Promise<Target | undefined> {
  const { collection: id, metric, mode = 'upsert', vectorName: name } = options;
  try {
    const record = await client.collections.get(id);
    const { vectors } = describeVectors(record);
    if (options.embed !== undefined && record.embed === undefined) throw noModel(id);
    if (name !== undefined && !vectors.named.has(name)) throw noSuchVector(id, name, vectors);
    const used = name === undefined ? record.metric : record.vectors?.[name]?.metric;
    if (metric !== undefined && metric !== used) {
      throw usageError(`--metric is ${metric}, but collection ${id} uses ${used}`);
    }
    const journal = await options.openJournal(record.created_at);
    return { ...describeVectors(record), record, created: null, journal, uniform: {} };
  } catch (error) {
    const isMissing = error instanceof SagittaClientError && error.code === 'collection_not_found';
    // Only a mode that inserts rows creates the collection.
    if (!isMissing || mode !== 'upsert') throw error;
    return undefined;
  }
}

function noModel(id: string): CliError {
  return usageError(
    `--embed needs a model, and collection ${id} has none; if its vectors are of the built-in model, name that with: sagitta collections update ${id} --embed builtin`,
  );
}

function noSuchVector(id: string, name: string, { named }: TargetVectors): CliError {
  const names = [...named.keys()].join(', ');
  return usageError(
    `--vector-name is ${name}, but collection ${id} has ${names === '' ? 'no named vectors' : `the named vectors ${names}`}; ` +
      `add it with: sagitta collections update ${id} --add-vector ${name}:DIMENSION`,
  );
}

async function createTarget(
  client: Client,
  options: ImportFilesOptions,
  batch: RowBatch,
): Promise<Target> {
  const input = { id: options.collection, ...shapeOf(batch, options) };
  const { record, isNew } = await createCollection(client, input);
  const journal = await options.openJournal(record.created_at);
  const created = isNew ? record : null;
  return { ...describeVectors(record), record, created, journal, uniform: {} };
}

/** The vectors of a new collection for the rows. */
function shapeOf(
  { dimension, named }: RowBatch,
  { metric, vectorName, embed }: ImportChoices,
): Omit<CollectionInput, 'id'> {
  const chosen = metric !== undefined && { metric };
  if (embed !== undefined) {
    // Words find what the model does not know, such as names.
    return { embed: 'builtin', text: { fields: [embed], language: 'english' }, ...chosen };
  }
  if (vectorName === undefined) return { dimension, ...chosen };
  return { vectors: { [vectorName]: { dimension: named!.at(-1)!.dimension, ...chosen } } };
}

/** Creates the collection unless another program has done so in the meantime. */
async function createCollection(
  { collections }: Client,
  input: CollectionInput,
): Promise<{ record: CollectionRecord; isNew: boolean }> {
  try {
    return { record: await collections.create(input), isNew: true };
  } catch (error) {
    const exists = error instanceof SagittaClientError && error.code === 'collection_exists';
    if (!exists) throw error;
    return { record: await collections.create(input, { ifNotExists: true }), isNew: false };
  }
}

/**
 * Deletes the collection that a failed import has created, unless it was written to: a mistake in the file may have
 * given it the wrong dimension. Errors are ignored, since the failure of the import says more.
 */
async function removeUnused(
  { collections }: Client,
  target: Target | undefined,
  result: UploadResult | undefined,
): Promise<void> {
  const created = target?.created;
  if (created == null || (result?.rowCount ?? 0) > 0) return;
  try {
    const { created_at, sequence, vector_count } = await collections.get(created.id);
    const isUnused =
      created_at === created.created_at && sequence === created.sequence && vector_count === 0;
    if (isUnused) await collections.delete(created.id);
  } catch {}
}

/** Adds a column for each missing named vector, since all batches of an upload have the same columns. */
function completeNamed(batch: RowBatch, { vectors: { named } }: Target): RowBatch {
  const { rowCount, named: found = [] } = batch;
  const all = [...named].map(([name, dimension]): NamedVectors => {
    const presence = new Uint8Array(rowCount);
    const absent = { name, dimension, values: new Float32Array(rowCount * dimension), presence };
    return found.find((vectors) => vectors.name === name) ?? absent;
  });
  return { ...batch, named: all };
}

function describeVectors(collection: CollectionRecord): Pick<Target, 'dimension' | 'vectors'> {
  const named = new Map(denseVectors(collection).map(({ name, dimension }) => [name, dimension]));
  const { dimension = 0 } = collection;
  named.delete(UNNAMED);
  return { dimension, vectors: { hasUnnamed: dimension > 0, named } };
}

/** Ends when the signal aborts, even while the source (a pipe) is waiting for data. */
async function* untilInterrupted<Item>(
  items: AsyncIterable<Item>,
  signal: AbortSignal,
): AsyncGenerator<Item> {
  const iterator = items[Symbol.asyncIterator]();
  while (!signal.aborted) {
    const next = await raceInterruption(iterator.next(), signal);
    if (next === undefined || next.done) break;
    yield next.value;
  }
  // Not awaited: a pipe without data would not return either.
  void iterator.return?.();
}

/** The result of the work, or undefined when the signal aborts first. */
async function raceInterruption<Value>(
  work: Promise<Value>,
  signal: AbortSignal,
): Promise<Value | undefined> {
  let ignoreAbort = () => {};
  const interrupted = new Promise<undefined>((resolve) => {
    ignoreAbort = whenAborted(signal, () => resolve(undefined));
  });
  try {
    return await Promise.race([work, interrupted]);
  } finally {
    ignoreAbort();
  }
}

type FileProgress = Pick<ImportProgress, 'file' | 'row'>;

/** Computes which share of the bytes of all files belongs to durable rows; more bytes than that have been read. */
class ReadShares {
  readonly #inputs: readonly Input[];
  readonly #byteCount: number | undefined;
  /** The bytes read up to a row, in the order of the files. */
  #marks: (FileProgress & { readonly bytesRead: number })[] = [];
  #bytesDurable = 0;

  constructor(inputs: readonly Input[]) {
    this.#inputs = inputs;
    const byteCounts = inputs.map(({ byteCount }) => byteCount);
    this.#byteCount = byteCounts.includes(undefined)
      ? undefined
      : byteCounts.reduce<number>((sum, count) => sum + count!, 0);
  }

  /** Records that the rows before `row` were read. `rowCount` is the number of rows in the file, if known. */
  mark({ file, row }: FileProgress, source: InputSource, rowCount: number | undefined): void {
    const before = this.#inputs.slice(0, file).reduce((sum, each) => sum + each.byteCount!, 0);
    // Rows are more accurate than bytes: a reader may read ahead, or read a file in any order.
    const inFile =
      rowCount === undefined ? source.bytesRead() : (row / rowCount) * source.byteCount!;
    this.#marks.push({ file, row, bytesRead: before + inFile });
  }

  /** Undefined when the size of a file is unknown. */
  at({ file, row }: FileProgress): number | undefined {
    const isDurable = (mark: FileProgress): boolean =>
      mark.file < file || (mark.file === file && mark.row <= row);
    while (this.#marks[0] !== undefined && isDurable(this.#marks[0])) {
      this.#bytesDurable = this.#marks.shift()!.bytesRead;
    }
    return this.#byteCount ? Math.min(1, this.#bytesDurable / this.#byteCount) : undefined;
  }
}

/** Adds to an error how many rows were written before it, and how to continue. */
function withCommittedRows(
  error: unknown,
  result: UploadResult | undefined,
  target: Target | undefined,
  isPiped: boolean,
): unknown {
  const isKnown =
    error instanceof CliError || error instanceof ReadError || error instanceof SagittaClientError;
  const rowCount = result?.rowCount ?? 0;
  if (!isKnown || rowCount === 0) return error;
  const rows = `${pluralize(rowCount, 'row')} ${rowCount === 1 ? 'was' : 'were'} written before the error`;
  const start = target?.journal.progress.total ?? 0;
  const advice = adviceAfter(error, {
    isResumable: target?.journal.isKept === true,
    isPiped,
    isContiguous: result?.progress.total === start + rowCount,
  });
  const message = error instanceof SagittaClientError ? error.detail : error.message;
  return new CliError(`${message}\n  ${rows}; ${advice}.`, { cause: error });
}

function adviceAfter(
  error: CliError | ReadError | SagittaClientError,
  {
    isResumable,
    isPiped,
    isContiguous,
  }: {
    readonly isResumable: boolean;
    readonly isPiped: boolean;
    /** Whether no row is missing before the last one that was written. */
    readonly isContiguous: boolean;
  },
): string {
  const isFull = error instanceof SagittaClientError && error.code === 'storage_full';
  if (!isFull && !isUnreachable(error)) return 'importing the corrected file replaces them';
  const resume = isContiguous
    ? 'run the same command again to resume after them'
    : 'run the same command again to resume at the first row that is missing';
  const again = isResumable ? resume : importAgain(isPiped);
  return isFull ? `make room and ${again}` : again;
}

/** What to do after an import that cannot be resumed. */
export function importAgain(isPiped: boolean): string {
  const again = 'import the same rows again, which replaces them';
  return isPiped ? `a pipe cannot be resumed: ${again}` : again;
}
