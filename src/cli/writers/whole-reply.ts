// Whether the reply of a stream is whole. A connection that breaks is an error of the client, but a proxy
// may end a reply early as if it were complete.

import type { StreamFormat } from '@sagitta/client';
import { CliError, EXIT_CODES } from '../terminal/failure.js';

/** What the last bytes are: the end of an Arrow stream, of a Parquet file, and of a line. */
const ENDS = {
  arrow: Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
  parquet: Buffer.from('PAR1'),
  ndjson: Buffer.from('\n'),
  csv: Buffer.from('\n'),
} as const satisfies Readonly<Record<StreamFormat, Uint8Array>>;

/** The same chunks. Throws CliError at their end if they are cut; lines may be missing from text. */
export async function* requireWhole(
  format: StreamFormat,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const end = ENDS[format];
  let last = Buffer.alloc(0);
  let byteCount = 0;
  for await (const chunk of chunks) {
    byteCount += chunk.length;
    last = Buffer.concat([last, chunk.subarray(-end.length)]).subarray(-end.length);
    yield chunk;
  }
  const isEmpty = byteCount === 0 && format === 'ndjson';
  if (isEmpty || last.equals(end)) return;
  throw new CliError(
    `the reply was cut off after ${byteCount} bytes, probably by a proxy between here and the server; try again`,
    { exitCode: EXIT_CODES.unreachable },
  );
}
