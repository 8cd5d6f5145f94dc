// Formats of the records of a log, so that nodes of two versions can share it while they are updated one by one. A record
// of the first format does not say which one it has. What every version can read, whatever the format: the length,
// the header as JSON with `format` and `version`, and the digest.

import { SagittaError } from '../../common/errors.js';

/** Both included. */
export interface FormatRange {
  readonly oldest: number;
  readonly newest: number;
}

export const FIRST_FORMAT = 1;
/** What this version reads, and may write. */
export const KNOWN_FORMATS: FormatRange = { oldest: FIRST_FORMAT, newest: FIRST_FORMAT };

/** The part of a header that tells the format. Absent for the first one. */
export interface FormatHeader {
  readonly format?: number;
  /** Of the program that wrote the record. */
  readonly version?: string;
}

export interface RecordFormats {
  readonly readable: FormatRange;
  /** Of this program. */
  readonly version: string;
  /** The format of what is written now. */
  written(): number;
}

/** For a log whose processes all have this version. */
export const ONE_VERSION: RecordFormats = {
  readable: KNOWN_FORMATS,
  version: '',
  written: () => KNOWN_FORMATS.newest,
};

export function formatHeader({ written, version }: RecordFormats): FormatHeader {
  const format = written();
  return format === FIRST_FORMAT ? {} : { format, version };
}

/** Throws `configuration_invalid`. `where` names the record in messages. */
export function requireReadable(
  { format = FIRST_FORMAT, version: writer }: FormatHeader,
  { readable: { oldest, newest }, version }: RecordFormats,
  where: string,
): void {
  if (format >= oldest && format <= newest) return;
  const origin = writer === undefined ? '' : `, which version ${writer} of Sagitta wrote`;
  const range = oldest === newest ? `format ${oldest} only` : `formats ${oldest} to ${newest}`;
  const advice =
    format > newest
      ? `Update this node to version ${writer ?? 'of the node that leads'} or later.`
      : 'Start this node with an empty data directory: it then begins with the newest checkpoint.';
  throw new SagittaError(
    'configuration_invalid',
    `${where} has format ${format}${origin}; this node, version ${version}, reads ${range}. It reads no further. ${advice}`,
  );
}
