// The table of output formats: their file extensions, the format requested from the server, and the conversion to Arrow
// files, which the server does not write.

import type { StreamFormat } from '@sagitta/client';
import { usageError } from '../terminal/failure.js';
import { isStdout } from './output.js';

interface WriteFormat {
  readonly extensions: readonly string[];
  /** The format requested from the server. */
  readonly wire: StreamFormat;
  /** Whether the format is binary, and therefore never written to a terminal. */
  readonly isBinary: boolean;
  /** Whether the format can be written sequentially, and therefore to stdout. */
  readonly isStream: boolean;
}

export const WRITE_FORMATS = {
  ndjson: {
    extensions: ['ndjson', 'jsonl', 'json'],
    wire: 'ndjson',
    isBinary: false,
    isStream: true,
  },
  csv: { extensions: ['csv'], wire: 'csv', isBinary: false, isStream: true },
  arrow: { extensions: ['arrow', 'feather', 'ipc'], wire: 'arrow', isBinary: true, isStream: true },
  'arrow-stream': { extensions: ['arrows'], wire: 'arrow', isBinary: true, isStream: true },
  parquet: { extensions: ['parquet', 'pq'], wire: 'parquet', isBinary: true, isStream: true },
  npy: { extensions: ['npy'], wire: 'arrow', isBinary: true, isStream: false },
  fvecs: { extensions: ['fvecs'], wire: 'arrow', isBinary: true, isStream: false },
  fbin: { extensions: ['fbin'], wire: 'arrow', isBinary: true, isStream: false },
  ivecs: { extensions: ['ivecs'], wire: 'arrow', isBinary: true, isStream: true },
} as const satisfies Readonly<Record<string, WriteFormat>>;

export type WriteFormatName = keyof typeof WRITE_FORMATS;

/** The format of --format, otherwise of the file extension, otherwise NDJSON. Throws CliError. */
export function writeFormatOf<Name extends WriteFormatName>(
  choices: readonly Name[],
  option: Name | undefined,
  path: string | undefined,
): Name {
  const toStdout = isStdout(path);
  const format = option ?? (toStdout ? ('ndjson' as Name) : formatOfName(choices, path));
  const { isBinary, isStream }: WriteFormat = WRITE_FORMATS[format];
  if (toStdout && !isStream) {
    throw usageError(`--format ${format} cannot be written to stdout; name a file with -o`);
  }
  if (toStdout && isBinary && process.stdout.isTTY === true) {
    throw usageError(
      `--format ${format} is binary and is not written to a terminal; name a file with -o`,
    );
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
  throw usageError(
    `${path}: unknown file extension; choose a format with --format (${choices.join(', ')})`,
  );
}

/** The output formats for matches. */
export const MATCH_FORMATS = ['ndjson', 'csv', 'arrow', 'arrow-stream', 'parquet'] as const;
export type MatchFormat = (typeof MATCH_FORMATS)[number];

/** Converts a reply to the file format. The server sends every format except Arrow files, which end in a footer. */
export async function toFileFormat(
  body: AsyncIterable<Uint8Array>,
  format: MatchFormat,
): Promise<AsyncIterable<Uint8Array>> {
  return format === 'arrow' ? (await import('./arrow-file.js')).arrowFileOf(body) : body;
}

/** The output formats of `sagitta query --file`. */
export const RESULT_FORMATS = [...MATCH_FORMATS, 'ivecs'] as const;
export type ResultFormat = (typeof RESULT_FORMATS)[number];
