// Checks that a streamed reply is complete. The client reports a broken connection, but a proxy may end a reply early
// as if it were complete.

import type { StreamFormat } from '@sagitta/client';
import { CliError, EXIT_CODES } from '../terminal/failure.js';

/** The last bytes of a complete reply: the end of an Arrow stream, of a Parquet file, or of a line. */
const ENDS = {
  arrow: Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
  parquet: Buffer.from('PAR1'),
  ndjson: Buffer.from('\n'),
  csv: Buffer.from('\n'),
} as const satisfies Readonly<Record<StreamFormat, Uint8Array>>;

/** Passes the chunks on unchanged. Throws CliError at the end of a cut reply; missing lines of text go unnoticed. */
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
    `the reply was cut off after ${byteCount} bytes, probably by a proxy in front of the server; try again`,
    { exitCode: EXIT_CODES.unreachable },
  );
}
