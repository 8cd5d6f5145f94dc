// The formats that can be written, in one table: what the service is asked for, and what is made of
// it. Packages are loaded when needed.

import { usageError } from '../failure.js';
import { STDOUT } from './output.js';

export type WireFormat = 'arrow' | 'ndjson' | 'parquet';

interface WriteFormat {
  readonly extensions: readonly string[];
  /** What is asked of the service. */
  readonly wire: WireFormat;
  /** Not for a terminal. */
  readonly isBinary: boolean;
  /** Whether it can be written without going back. */
  readonly isStream: boolean;
}

export const WRITE_FORMATS = {
  ndjson: {
    extensions: ['ndjson', 'jsonl', 'json'],
    wire: 'ndjson',
    isBinary: false,
    isStream: true,
  },
  csv: { extensions: ['csv'], wire: 'arrow', isBinary: false, isStream: true },
  arrow: { extensions: ['arrow', 'feather', 'ipc'], wire: 'arrow', isBinary: true, isStream: true },
  'arrow-stream': { extensions: ['arrows'], wire: 'arrow', isBinary: true, isStream: true },
  parquet: { extensions: ['parquet', 'pq'], wire: 'parquet', isBinary: true, isStream: true },
  npy: { extensions: ['npy'], wire: 'arrow', isBinary: true, isStream: false },
  fvecs: { extensions: ['fvecs'], wire: 'arrow', isBinary: true, isStream: false },
  fbin: { extensions: ['fbin'], wire: 'arrow', isBinary: true, isStream: false },
  ivecs: { extensions: ['ivecs'], wire: 'arrow', isBinary: true, isStream: true },
} as const satisfies Readonly<Record<string, WriteFormat>>;

export type WriteFormatName = keyof typeof WRITE_FORMATS;

/** The option, else the name of the file, else NDJSON. Throws CliError. */
export function writeFormatOf<Name extends WriteFormatName>(
  choices: readonly Name[],
  option: Name | undefined,
  path: string | undefined,
): Name {
  const isStdout = path === undefined || path === STDOUT;
  const format = option ?? (isStdout ? ('ndjson' as Name) : formatOfName(choices, path));
  const { isBinary, isStream }: WriteFormat = WRITE_FORMATS[format];
  if (isStdout && !isStream) {
    throw usageError(`--format ${format} writes files; -o names the first of them`);
  }
  if (isStdout && isBinary && process.stdout.isTTY === true) {
    throw usageError(`--format ${format} is nothing for a terminal; -o names a file`);
  }
  return format;
}

function formatOfName<Name extends WriteFormatName>(choices: readonly Name[], path: string): Name {
  const extension = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? '';
  const found = choices.find((name) => {
    const { extensions }: WriteFormat = WRITE_FORMATS[name];
    return extensions.includes(extension);
  });
  if (found !== undefined) return found;
  throw usageError(`${path}: the name tells no format; --format names one (${choices.join(', ')})`);
}

/** What is written of an answer in Arrow or NDJSON, whose rows are matches. */
export async function encodeMatches(
  body: AsyncIterable<Uint8Array>,
  format: 'ndjson' | 'csv' | 'arrow' | 'arrow-stream',
): Promise<AsyncIterable<Uint8Array>> {
  switch (format) {
    case 'csv':
      return (await import('./csv.js')).csvOfArrow(body);
    case 'arrow':
      return (await import('./arrow-file.js')).arrowFileOf(body);
    case 'ndjson':
    case 'arrow-stream':
      return body;
  }
}
