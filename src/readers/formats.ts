// The table of input formats: how each is detected (first bytes, file extension), whether it can be read from a pipe or
// from gzip, and its reader. Readers and their packages are loaded on demand.

import { latin1Bytes, startsWith } from '../common/bytes.js';
import { refuseForeign } from './foreign-files.js';
import type { InputSource } from './input-source.js';
import { ReadError } from './read-error.js';
import type { ReaderOptions } from './reader-options.js';
import type { RowReader } from './row-batch.js';
import { optionsForTexts, withTexts } from './texts.js';
import { textHead } from './utf8.js';
import { wordFormatOf } from './word-head.js';

interface Format {
  /** The name of the format in help texts, previews and errors. */
  readonly title: string;
  readonly extensions: readonly string[];
  readonly magic?: Uint8Array;
  /** Whether the reader reads bytes in any order and therefore needs an uncompressed file. */
  readonly needsFile?: true;
  /** Whether rows of the format can have ids and metadata. */
  readonly hasMetadata: boolean;
  open(source: InputSource, options: ReaderOptions): Promise<RowReader>;
}

const words = async () => await import('./word-vectors.js');
const records = async () => await import('./record-files.js');

export const INPUT_FORMATS = {
  ndjson: {
    title: 'newline-delimited JSON, or a JSON array',
    extensions: ['ndjson', 'jsonl', 'json'],
    hasMetadata: true,
    open: async (source, options) => (await import('./json-rows.js')).openJson(source, options),
  },
  csv: {
    title: 'CSV or TSV with a header line',
    extensions: ['csv', 'tsv', 'tab'],
    hasMetadata: true,
    open: async (source, options) => (await import('./csv-rows.js')).openCsv(source, options),
  },
  arrow: {
    title: 'Arrow IPC file (Feather)',
    extensions: ['arrow', 'feather', 'ipc'],
    magic: latin1Bytes('ARROW1'),
    needsFile: true,
    hasMetadata: true,
    open: async (source, options) =>
      (await import('./arrow-rows.js')).openArrowFile(source, options),
  },
  'arrow-stream': {
    title: 'Arrow IPC stream',
    extensions: ['arrows'],
    magic: Uint8Array.of(0xff, 0xff, 0xff, 0xff),
    hasMetadata: true,
    open: async (source, options) =>
      (await import('./arrow-rows.js')).openArrowStream(source, options),
  },
  parquet: {
    title: 'Parquet',
    extensions: ['parquet', 'pq'],
    magic: latin1Bytes('PAR1'),
    needsFile: true,
    hasMetadata: true,
    open: async (source, options) =>
      (await import('./parquet-rows.js')).openParquet(source, options),
  },
  npy: {
    title: 'NumPy array',
    extensions: ['npy'],
    magic: latin1Bytes('\x93NUMPY'),
    hasMetadata: false,
    open: async (source, options) => (await import('./npy-file.js')).openNpy(source, options),
  },
  npz: {
    title: 'NumPy archive with one or more arrays',
    extensions: ['npz'],
    magic: latin1Bytes('PK\x03\x04'),
    needsFile: true,
    hasMetadata: false,
    open: async (source, options) => (await import('./npz-file.js')).openNpz(source, options),
  },
  fvecs: {
    title: 'float32 vectors, each prefixed by its dimension',
    extensions: ['fvecs'],
    hasMetadata: false,
    open: async (source, options) => (await records()).openVecs(source, 'float32', options),
  },
  bvecs: {
    title: 'uint8 vectors, each prefixed by its dimension',
    extensions: ['bvecs'],
    hasMetadata: false,
    open: async (source, options) => (await records()).openVecs(source, 'uint8', options),
  },
  ivecs: {
    title: 'int32 vectors, each prefixed by its dimension',
    extensions: ['ivecs'],
    hasMetadata: false,
    open: async (source, options) => (await records()).openVecs(source, 'int32', options),
  },
  fbin: {
    title: 'float32 vectors after a header of count and dimension',
    extensions: ['fbin'],
    hasMetadata: false,
    open: async (source, options) => (await records()).openBin(source, 'float32', options),
  },
  u8bin: {
    title: 'uint8 vectors after a header of count and dimension',
    extensions: ['u8bin'],
    hasMetadata: false,
    open: async (source, options) => (await records()).openBin(source, 'uint8', options),
  },
  i8bin: {
    title: 'int8 vectors after a header of count and dimension',
    extensions: ['i8bin'],
    hasMetadata: false,
    open: async (source, options) => (await records()).openBin(source, 'int8', options),
  },
  hdf5: {
    title: 'HDF5 in the layout of ann-benchmarks',
    extensions: ['hdf5', 'h5'],
    magic: latin1Bytes('\x89HDF\r\n\x1a\n'),
    needsFile: true,
    hasMetadata: false,
    open: async (source, options) => (await import('./hdf5-file.js')).openHdf5(source, options),
  },
  glove: {
    title: 'words with their vectors as text (GloVe)',
    extensions: ['glove'],
    hasMetadata: false,
    open: async (source, options) => (await words()).openWords(source, options, false),
  },
  word2vec: {
    title: 'word2vec and fastText, as text or binary',
    extensions: ['vec', 'w2v'],
    hasMetadata: false,
    open: async (source, options) => (await words()).openWords(source, options, true),
  },
} as const satisfies Readonly<Record<string, Format>>;

export type InputFormat = keyof typeof INPUT_FORMATS;
export const INPUT_FORMAT_NAMES = Object.keys(INPUT_FORMATS) as InputFormat[];

/** Options that apply only to some formats: the spelling of each and the test for a format. */
const FORMAT_OPTIONS = {
  idField: ['--id-field', ({ hasMetadata }: Format) => hasMetadata],
  embed: ['--embed', ({ hasMetadata }: Format) => hasMetadata],
  valuesField: ['--values-field', ({ hasMetadata }: Format) => hasMetadata],
  fields: ['--fields', ({ hasMetadata }: Format) => hasMetadata],
  exclude: ['--exclude', ({ hasMetadata }: Format) => hasMetadata],
  vectorColumns: ['--vector-columns', ({ hasMetadata }: Format) => hasMetadata],
  delimiter: ['--delimiter', (format: Format) => format === INPUT_FORMATS.csv],
  decimal: ['--decimal', (format: Format) => format === INPUT_FORMATS.csv],
  nan: ['--nan', ({ hasMetadata }: Format) => hasMetadata],
  dataset: [
    '--dataset',
    (format: Format) => format === INPUT_FORMATS.hdf5 || format === INPUT_FORMATS.npz,
  ],
} as const;

/** Throws ReadError for an option that does not apply to the format. */
export function checkOptions(
  source: string,
  name: InputFormat,
  given: { readonly [Name in keyof typeof FORMAT_OPTIONS]?: unknown },
): void {
  for (const option of Object.keys(FORMAT_OPTIONS) as (keyof typeof FORMAT_OPTIONS)[]) {
    const [spelling, isApplicable] = FORMAT_OPTIONS[option];
    if (given[option] === undefined || isApplicable(INPUT_FORMATS[name])) continue;
    throw new ReadError(`${source}: ${spelling} does not apply to ${INPUT_FORMATS[name].title}`, {
      isUsage: true,
    });
  }
}

const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/**
 * Detects the format from the first bytes, then from the file extension. Undefined for text of no recognizable format.
 * Throws ReadError for files that no reader supports.
 */
export function detectFormat(source: InputSource): InputFormat | undefined {
  const byMagic = INPUT_FORMAT_NAMES.find((name) => {
    const { magic }: Format = INPUT_FORMATS[name];
    return magic !== undefined && startsWith(source.head, magic);
  });
  if (byMagic !== undefined) return byMagic;
  refuseForeign(source);
  const extension = /\.([^./]+?)(?:\.gz)?$/i.exec(source.name)?.[1]?.toLowerCase() ?? '';
  const byName = INPUT_FORMAT_NAMES.find((name) => {
    const { extensions }: Format = INPUT_FORMATS[name];
    return extensions.includes(extension);
  });
  if (byName !== undefined) {
    const { magic, title }: Format = INPUT_FORMATS[byName];
    if (magic === undefined) return byName;
    throw new ReadError(`${source.name}: not ${title}, judging by its first bytes`, {
      advice: '; choose the format with --format',
    });
  }
  const text = textHead(source);
  const first = text.find((byte) => byte > 0x20);
  if (first === OPEN_BRACE || first === OPEN_BRACKET || text.length === 0) return 'ndjson';
  return wordFormatOf(source.head);
}

/** Throws ReadError when the format cannot be detected. */
export function formatOf(source: InputSource): InputFormat {
  const format = detectFormat(source);
  if (format !== undefined) return format;
  throw new ReadError(`${source.name}: cannot detect the format`, {
    advice: `; choose it with --format (${INPUT_FORMAT_NAMES.join(', ')})`,
    isUsage: true,
  });
}

/** Throws ReadError when the file has a different format, or is a pipe or gzip where random access is needed. */
export async function openRows(
  source: InputSource,
  name: InputFormat,
  options: ReaderOptions,
): Promise<RowReader> {
  const format: Format = INPUT_FORMATS[name];
  refuseForeign(source);
  if (format.magic !== undefined && !startsWith(source.head, format.magic)) {
    throw new ReadError(`${source.name}: not ${format.title}, judging by its first bytes`);
  }
  if (format.needsFile && source.file === undefined) {
    const found = source.isCompressed ? 'gzip' : 'a pipe';
    throw new ReadError(
      `${source.name}: ${format.title} cannot be read from ${found}, because it needs random ` +
        'access; pass an uncompressed file',
    );
  }
  const { embed } = options;
  if (embed === undefined) return await format.open(source, options);
  const reader = await format.open(source, optionsForTexts(options));
  return {
    rowCount: reader.rowCount,
    batches: (startRow) => withTexts(reader.batches(startRow), embed, options),
    sample: (rowCount) => reader.sample(rowCount),
  };
}

/** Opens a file for its vectors only, with the default options of its format. */
export function openVectors(
  source: InputSource,
  { dataset, rowsPerBatch }: Pick<ReaderOptions, 'dataset' | 'rowsPerBatch'>,
): Promise<RowReader> {
  return openRows(source, formatOf(source), { fields: [], dataset, rowsPerBatch });
}
