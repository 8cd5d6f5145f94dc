// Reads the chain of a log from its messages and verifies it: every record follows the one before, and every position is
// accounted for, so nothing is skipped or replaced unnoticed.

import {
  type ChainRecord,
  type Claim,
  decodeChainRecord,
  decodeClaim,
  digestOfRecord,
  joinFragment,
  linkToRecord,
  logDamaged,
} from './chain-record.js';
import {
  type CommitFragment,
  LOG_START,
  type LogLink,
  type LogRecord,
  LogTrimmedError,
  type ReadOptions,
} from './collection-log.js';
import type { MessageSource, StreamMessage } from './message-stream.js';

const FIRST_LINK_MS_MAX = 10_000;

/** A record as read, with the members that only writers need. */
interface ReadRecord {
  readonly kind: 'record';
  readonly record: ChainRecord;
  readonly link: LogLink;
  readonly fragments: readonly CommitFragment[];
}

export type ChainItem =
  | ReadRecord
  | { readonly kind: 'claim'; readonly position: number; readonly claim: Claim }
  | { readonly kind: 'barrier'; readonly position: number };

export interface ReadChainOptions extends ReadOptions {
  /** The position of a barrier at which the read ends; by default it waits for new messages. */
  readonly end?: number;
}

/** Yields records and barriers after `after`, but no barriers if the read has an end. Throws like `CollectionLog.read`. */
export async function* readRecords(
  source: MessageSource,
  after: LogLink,
  options: ReadChainOptions,
): AsyncIterable<LogRecord> {
  for await (const item of readChain(source, after, options)) {
    if (item.kind === 'barrier' && options.end === undefined) yield item;
    const record = item.kind === 'record' ? toLogRecord(item) : null;
    if (record !== null) yield record;
  }
}

/** Yields everything after `after`. Throws like `CollectionLog.read`. */
export async function* readChain(
  source: MessageSource,
  after: LogLink,
  { shards, end = Number.POSITIVE_INFINITY, ...options }: ReadChainOptions,
): AsyncIterable<ChainItem> {
  if (end <= after.position) {
    throw logDamaged(
      `The end of ${source.name}`,
      `a new message got position ${end}, but a record at ${after.position} is known; this is another log, or messages at its end are missing`,
    );
  }
  const wanted = shards === undefined ? undefined : new Set(shards);
  let head = after;
  /** The last message accounted for. Messages of fragments that are not read are counted by the record of their commit. */
  let lastPosition = after.position;
  /** Messages of fragments since the last record, by shard. */
  let pieces = new Map<number, StreamMessage[]>();
  for await (const message of source.read(after.position, { shards, ...options })) {
    const { channel, position } = message;
    const where = `Position ${position} of ${source.name}`;
    if (typeof channel === 'number') {
      const ofShard = pieces.get(channel) ?? [];
      pieces.set(channel, ofShard);
      ofShard.push(message);
      continue;
    }
    const record = channel === 'chain' ? decodeChainRecord(message.bytes, where) : null;
    const ownCount = 1 + messageCountOf(record);
    if (position - ownCount !== lastPosition)
      throw await explainGap(source, lastPosition, ownCount, where);
    const before = lastPosition;
    lastPosition = position;
    if (channel === 'barrier') {
      yield { kind: 'barrier', position };
    } else if (channel === 'claim') {
      yield { kind: 'claim', position, claim: decodeClaim(message.bytes) };
    } else if (record !== null) {
      requirePrevious(record, head, where);
      let fragments: CommitFragment[];
      try {
        fragments = fragmentsOf(record, { pieces, position, wanted, where });
      } catch (error) {
        // A log that was trimmed to this record lacks its fragments.
        throw (await trimmedAfter(source, before)) ?? error;
      }
      pieces = new Map();
      head = { position, digest: digestOfRecord(message.bytes), epoch: record.epoch };
      yield { kind: 'record', record, link: head, fragments };
    }
    if (position >= end) return;
  }
  // The caller would take a read that ended early for the whole log.
  if (end < Number.POSITIVE_INFINITY) options.signal.throwIfAborted();
}

/**
 * Where a log begins: its start, or else its first record, before which everything has been trimmed.
 * Throws `data_corrupt` unless the log begins with an intact record.
 */
export async function readFirstLink(source: MessageSource): Promise<LogLink> {
  const first = await source.firstPosition();
  if (first === null || first === 1) return LOG_START;
  const signal = AbortSignal.timeout(FIRST_LINK_MS_MAX);
  const where = `Position ${first} of ${source.name}`;
  for await (const message of source.read(first - 1, { shards: undefined, signal })) {
    if (message.position !== first || message.channel !== 'chain') break;
    return linkToRecord(first, message.bytes, where);
  }
  throw logDamaged(where, 'expected the record to which the log was trimmed');
}

/** The error for a message that does not follow the last position. */
async function explainGap(
  source: MessageSource,
  lastPosition: number,
  ownCount: number,
  where: string,
): Promise<Error> {
  const trimmed = await trimmedAfter(source, lastPosition);
  if (trimmed !== null) return trimmed;
  return logDamaged(
    where,
    `it and the ${ownCount - 1} messages that belong to it do not follow position ${lastPosition}: messages are missing`,
  );
}

/** Null if the messages after a position have not been removed. */
async function trimmedAfter(
  source: MessageSource,
  position: number,
): Promise<LogTrimmedError | null> {
  const first = await source.firstPosition();
  const isTrimmed = first !== null && first > position + 1;
  return isTrimmed ? new LogTrimmedError(source.name, position, first) : null;
}

function messageCountOf(record: ChainRecord | null): number {
  return (record?.fragments ?? []).reduce((sum, fragment) => sum + fragment.messageCount, 0);
}

/** Throws `data_corrupt`. */
function requirePrevious({ previous }: ChainRecord, head: LogLink, where: string): void {
  if (previous.position === head.position && previous.digest === head.digest) return;
  throw logDamaged(
    where,
    `expected the record before it at ${previous.position} with the digest ${previous.digest}; found one at ${head.position} with ${head.digest}`,
  );
}

/** The fragments of a commit for the wanted shards. Throws `data_corrupt` when one of their messages is missing or damaged. */
function fragmentsOf(
  record: ChainRecord,
  {
    pieces,
    position,
    wanted,
    where,
  }: {
    pieces: ReadonlyMap<number, readonly StreamMessage[]>;
    position: number;
    wanted: ReadonlySet<number> | undefined;
    where: string;
  },
): CommitFragment[] {
  let first = position - messageCountOf(record);
  const found: CommitFragment[] = [];
  for (const fragment of record.fragments ?? []) {
    const at = first;
    first += fragment.messageCount;
    if (wanted !== undefined && !wanted.has(fragment.shard)) continue;
    const messages = pieces.get(fragment.shard) ?? [];
    const isWhole =
      messages.length === fragment.messageCount &&
      messages.every((message, i) => message.position === at + i);
    if (!isWhole) {
      throw logDamaged(
        where,
        `expected ${fragment.messageCount} messages of shard ${fragment.shard} from ${at} on; found ${messages.map((message) => message.position).join(', ') || 'none'}`,
      );
    }
    found.push(
      joinFragment(
        fragment,
        messages.map(({ bytes }) => bytes),
        where,
      ),
    );
  }
  return found;
}

/** Null for records that only writers need. */
export function toLogRecord({ record, link, fragments }: ReadRecord): LogRecord | null {
  switch (record.kind) {
    case 'commit': {
      const { firstSequence = 0, lastSequence = 0, summary } = record;
      return { kind: 'commit', link, commit: { firstSequence, lastSequence, fragments, summary } };
    }
    case 'epoch':
      return { kind: 'epoch', link, owner: record.owner ?? '' };
    case 'mark':
      return null;
  }
}
