// Where a log begins, for whoever has no place of its own in it.

import { linkToRecord, logDamaged } from './chain-record.js';
import { LOG_START, type LogLink } from './collection-log.js';
import type { MessageStream } from './message-stream.js';

const READ_MS_MAX = 10_000;

/**
 * The start of a log that has all of its records; else its first record, whose digest is checked, and before which
 * everything has been removed. Throws `data_corrupt` when the log does not begin with a record.
 */
export async function firstLinkOf(stream: MessageStream): Promise<LogLink> {
  const first = await stream.firstPosition();
  if (first === null || first === 1) return LOG_START;
  const signal = AbortSignal.timeout(READ_MS_MAX);
  const where = `Position ${first} of ${stream.name}`;
  for await (const { channel, position, bytes } of stream.read(first - 1, {
    shards: undefined,
    signal,
  })) {
    if (position !== first || channel !== 'chain') break;
    return linkToRecord(position, bytes, where);
  }
  throw logDamaged(where, 'the log was cut at a record, and there is none');
}
