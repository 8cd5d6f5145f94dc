// The log of a collection on a stream of messages. A commit is one atomic batch: the fragments of the shards, then a
// record of the chain, which the stream accepts only while the chain ends where the writer expects. Of two writers, the
// first to append therefore stops the other: this, not a clock, fences the writers of earlier epochs, and settles a
// commit whose reply was lost. A claim is accepted in any case and moves the head: it stops a writer that would
// otherwise always be faster than the one that wants to take over.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { assert } from '../../common/errors.js';
import {
  type ChainRecord,
  commitRecord,
  decodeChainRecord,
  digestOfRecord,
  encodeChainRecord,
  joinFragment,
  linkToRecord,
  logDamaged,
} from './chain-record.js';
import {
  type AppendOutcome,
  type CollectionLog,
  type Commit,
  type CommitFragment,
  isDamage,
  LOG_START,
  type LogLink,
  type LogRecord,
  LogTrimmedError,
  type LogWriter,
  type ReadOptions,
  type SettledOutcome,
  SUMMARY_BYTES_MAX,
} from './collection-log.js';
import type { MessageStream, OutgoingMessage, StreamMessage } from './message-stream.js';

/** Pauses between attempts while the stream does not answer, or while others append to it. */
const RETRY_MS_MIN = 20;
const RETRY_MS_MAX = 1_000;
const FIRST_LINK_MS_MAX = 10_000;
const NO_BYTES = new Uint8Array();

/** A record as read, with the members that only writers need. */
interface ReadRecord {
  readonly kind: 'record';
  readonly record: ChainRecord;
  readonly link: LogLink;
  readonly fragments: readonly CommitFragment[];
}

/** A process that wants to become the writer, and the epoch that it wants to begin. */
interface Claim {
  readonly epoch: number;
  readonly owner: string;
}

type ReadItem =
  | ReadRecord
  | { readonly kind: 'claim'; readonly position: number; readonly claim: Claim }
  | { readonly kind: 'barrier'; readonly position: number };

export interface ChainedLogOptions {
  /** Fragments are cut into messages of at most this many bytes. */
  readonly messageBytesMax?: number;
  /** Called with consecutive messages that this process has appended, and the position of the last one. */
  readonly onPublished?: (messages: readonly OutgoingMessage[], position: number) => void;
}

export class ChainedLog implements CollectionLog {
  readonly #stream: MessageStream;
  readonly #messageBytesMax: number;
  readonly #onPublished: NonNullable<ChainedLogOptions['onPublished']>;

  constructor(
    stream: MessageStream,
    { messageBytesMax = 512 * 1024, onPublished = () => {} }: ChainedLogOptions = {},
  ) {
    this.#stream = stream;
    this.#messageBytesMax = messageBytesMax;
    this.#onPublished = onPublished;
  }

  async takeOver({
    owner,
    after,
    onRecord,
    signal,
  }: Parameters<CollectionLog['takeOver']>[0]): Promise<LogWriter> {
    const id = randomUUID();
    let link = after;
    let headPosition = after.position;
    let claimedEpoch = 0;
    for (let attempt = 0; ; attempt++) {
      for await (const item of this.#readChain(link, { toEnd: true, signal })) {
        if (item.kind === 'barrier') continue;
        if (item.kind === 'claim') {
          headPosition = item.position;
          continue;
        }
        link = item.link;
        headPosition = link.position;
        const record = toLogRecord(item);
        if (record !== null) onRecord(record);
        if (item.record.id === id) return new ChainedWriter(this, link, owner);
      }
      try {
        const epoch = link.epoch + 1;
        if (claimedEpoch < epoch) {
          const bytes = encodeClaim({ epoch, owner });
          const position = await this.#stream.announce('claim', bytes);
          this.#onPublished([{ channel: 'claim', bytes }], position);
          claimedEpoch = epoch;
          continue;
        }
        const record = recordOf('epoch', { epoch, id, owner, previous: link });
        link = await this.publishRecord(record, headPosition);
        onRecord({ kind: 'epoch', link, owner });
        return new ChainedWriter(this, link, owner);
      } catch {
        // The record may be in the log nevertheless, or another writer was faster: the next read tells.
        await pause(attempt, signal);
      }
    }
  }

  barrier(): Promise<number> {
    return this.#stream.announce('barrier', NO_BYTES);
  }

  read(after: LogLink, options: ReadOptions): AsyncIterable<LogRecord> {
    return this.#read(after, { ...options, toEnd: false });
  }

  readToEnd(after: LogLink, options: ReadOptions): AsyncIterable<LogRecord> {
    return this.#read(after, { ...options, toEnd: true });
  }

  trimBefore(position: number): Promise<void> {
    return this.#stream.trimBefore(position);
  }

  drop(): Promise<void> {
    return this.#stream.drop();
  }

  /** Appends a commit with its fragments, like `publishRecord`. */
  async publishCommit(
    commit: Commit,
    header: { epoch: number; id: string; previous: LogLink },
    headPosition: number,
  ): Promise<LogLink> {
    const pieces = commit.fragments.map(({ bytes }) => this.#cut(bytes));
    const messages = commit.fragments.flatMap(({ shard }, i) =>
      pieces[i]!.map((piece): OutgoingMessage => ({ channel: shard, bytes: piece })),
    );
    return await this.publishRecord(commitRecord(commit, pieces, header), headPosition, messages);
  }

  /** Appends a record after the messages `before`. When it rejects, the record may or may not be in the log. */
  async publishRecord(
    record: ChainRecord,
    headPosition: number,
    before: readonly OutgoingMessage[] = [],
  ): Promise<LogLink> {
    const encoded = encodeChainRecord(record);
    const messages = [...before, { channel: 'chain', bytes: encoded } as const];
    const position = await this.#stream.publish(messages, headPosition);
    this.#onPublished(messages, position);
    return { position, digest: digestOfRecord(encoded), epoch: record.epoch };
  }

  /** Reads the chain up to now: claims, and records without fragments. */
  readHeads(after: LogLink, signal: AbortSignal): AsyncIterable<ReadItem> {
    return this.#readChain(after, { toEnd: true, shards: [], signal });
  }

  #cut(bytes: Uint8Array): Uint8Array[] {
    const pieces: Uint8Array[] = [];
    for (let at = 0; at === 0 || at < bytes.length; at += this.#messageBytesMax) {
      pieces.push(bytes.subarray(at, at + this.#messageBytesMax));
    }
    return pieces;
  }

  async *#read(
    after: LogLink,
    options: ReadOptions & { readonly toEnd: boolean },
  ): AsyncIterable<LogRecord> {
    for await (const item of this.#readChain(after, options)) {
      if (item.kind === 'barrier' && !options.toEnd) yield item;
      const record = item.kind === 'record' ? toLogRecord(item) : null;
      if (record !== null) yield record;
    }
  }

  async *#readChain(
    after: LogLink,
    { shards, signal, toEnd }: ReadOptions & { readonly toEnd: boolean },
  ): AsyncIterable<ReadItem> {
    const end = toEnd ? await this.barrier() : Number.POSITIVE_INFINITY;
    if (end <= after.position) {
      throw logDamaged(
        `The end of ${this.#stream.name}`,
        `a new message got position ${end}, but a record at ${after.position} is known; this is another log, or messages at its end are missing`,
      );
    }
    const wanted = shards === undefined ? undefined : new Set(shards);
    let head = after;
    /** The last message accounted for. Messages of fragments that are not read are counted by the record of their commit. */
    let lastPosition = after.position;
    /** Messages of fragments since the last record, by shard. */
    let pieces = new Map<number, StreamMessage[]>();
    for await (const message of this.#stream.read(after.position, { shards, signal })) {
      const { channel, position } = message;
      const where = `Position ${position} of ${this.#stream.name}`;
      if (typeof channel === 'number') {
        const ofShard = pieces.get(channel) ?? [];
        pieces.set(channel, ofShard);
        ofShard.push(message);
        continue;
      }
      const record = channel === 'chain' ? decodeChainRecord(message.bytes, where) : null;
      const ownCount = 1 + messageCountOf(record);
      if (position - ownCount !== lastPosition)
        await this.#explainGap(lastPosition, ownCount, where);
      lastPosition = position;
      if (channel === 'barrier') {
        yield { kind: 'barrier', position };
      } else if (channel === 'claim') {
        yield { kind: 'claim', position, claim: decodeClaim(message.bytes) };
      } else if (record !== null) {
        requirePrevious(record, head, where);
        const fragments = fragmentsOf(record, { pieces, position, wanted, where });
        pieces = new Map();
        head = { position, digest: digestOfRecord(message.bytes), epoch: record.epoch };
        yield { kind: 'record', record, link: head, fragments };
      }
      if (position >= end) return;
    }
    // The caller would take a read that ended early for the whole log.
    if (toEnd) signal.throwIfAborted();
  }

  async #explainGap(lastPosition: number, ownCount: number, where: string): Promise<never> {
    const first = await this.#stream.firstPosition();
    if (first !== null && first > lastPosition + 1) {
      throw new LogTrimmedError(this.#stream.name, lastPosition, first);
    }
    throw logDamaged(
      where,
      `it and the ${ownCount - 1} messages that belong to it do not follow position ${lastPosition}: messages are missing`,
    );
  }
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

class ChainedWriter implements LogWriter {
  readonly epoch: number;
  readonly #log: ChainedLog;
  readonly #owner: string;
  #head: LogLink;
  /** The position of the last record or claim known. */
  #headPosition: number;
  /** The id of the commit whose outcome is unknown. */
  #unknownId: string | null = null;
  #isAppending = false;

  constructor(log: ChainedLog, head: LogLink, owner: string) {
    this.#log = log;
    this.#head = head;
    this.#headPosition = head.position;
    this.#owner = owner;
    this.epoch = head.epoch;
  }

  get head(): LogLink {
    return this.#head;
  }

  async append(commit: Commit): Promise<AppendOutcome> {
    assert(!this.#isAppending, 'one commit at a time');
    assert(this.#unknownId === null, 'an unknown outcome is settled before the next commit');
    assert(
      commit.summary.length <= SUMMARY_BYTES_MAX,
      `a summary of ${commit.summary.length} bytes`,
    );
    this.#isAppending = true;
    const id = randomUUID();
    const header = { epoch: this.epoch, id, previous: this.#head };
    try {
      this.#advance(await this.#log.publishCommit(commit, header, this.#headPosition));
      return { kind: 'committed', link: this.#head };
    } catch (error) {
      this.#unknownId = id;
      return { kind: 'unknown', cause: error as Error };
    } finally {
      this.#isAppending = false;
    }
  }

  async settle(signal: AbortSignal): Promise<SettledOutcome> {
    const wanted = this.#unknownId;
    assert(wanted !== null, 'there is a commit to settle');
    for (let attempt = 0; ; attempt++) {
      signal.throwIfAborted();
      try {
        const outcome = await this.#readOutcome(wanted, signal);
        if (outcome !== null) {
          this.#unknownId = null;
          return outcome;
        }
        // Once the mark is in the log, the commit, which expects the same head, can no longer be appended.
        const header = { epoch: this.epoch, id: markOf(wanted), owner: this.#owner };
        const mark = recordOf('mark', { ...header, previous: this.#head });
        this.#advance(await this.#log.publishRecord(mark, this.#headPosition));
        this.#unknownId = null;
        return absent();
      } catch (error) {
        if (isLasting(error)) throw error;
        await pause(attempt, signal);
      }
    }
  }

  /** What the records after the head say about the commit; null while it may still be appended. */
  async #readOutcome(wanted: string, signal: AbortSignal): Promise<SettledOutcome | null> {
    let committed: LogLink | null = null;
    let isMarked = false;
    for await (const item of this.#log.readHeads(this.#head, signal)) {
      if (item.kind === 'barrier') continue;
      const { epoch, owner = '' } = item.kind === 'claim' ? item.claim : item.record;
      if (epoch > this.epoch) {
        return committed === null
          ? { kind: 'fenced', epoch, owner }
          : { kind: 'committed', link: committed };
      }
      this.#headPosition = item.kind === 'claim' ? item.position : item.link.position;
      if (item.kind === 'claim') continue;
      this.#head = item.link;
      if (item.record.id === wanted) committed = item.link;
      if (item.record.id === markOf(wanted)) isMarked = true;
    }
    if (committed !== null) return { kind: 'committed', link: committed };
    return isMarked ? absent() : null;
  }

  #advance(head: LogLink): void {
    this.#head = head;
    this.#headPosition = head.position;
  }
}

/** The id of the mark that settles a commit. */
function markOf(commitId: string): string {
  return `mark of ${commitId}`;
}

function absent(): SettledOutcome {
  return { kind: 'absent', cause: new Error('The log did not accept the commit.') };
}

function encodeClaim(claim: Claim): Uint8Array {
  return Buffer.from(JSON.stringify(claim));
}

/** A claim that cannot be read counts as one for a later epoch: writers stop, and some process takes over. */
function decodeClaim(bytes: Uint8Array): Claim {
  try {
    const { epoch, owner } = JSON.parse(Buffer.from(bytes).toString()) as Partial<Claim>;
    if (Number.isInteger(epoch) && typeof owner === 'string') return { epoch: epoch!, owner };
  } catch {}
  return { epoch: Number.POSITIVE_INFINITY, owner: 'a damaged claim' };
}

function recordOf(
  kind: 'epoch' | 'mark',
  header: { epoch: number; id: string; owner: string; previous: LogLink },
): ChainRecord {
  const { position, digest } = header.previous;
  return { ...header, kind, previous: { position, digest }, summary: NO_BYTES };
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
function toLogRecord({ record, link, fragments }: ReadRecord): LogRecord | null {
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

/** Whether another attempt would fail, too. */
function isLasting(error: unknown): boolean {
  return isDamage(error) || (error as { code?: unknown }).code === 'configuration_invalid';
}

async function pause(attempt: number, signal: AbortSignal): Promise<void> {
  const ms = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(attempt, 10));
  // The jitter keeps two writers from colliding again and again.
  await sleep(ms * (0.5 + Math.random()), undefined, { signal });
}

/**
 * Where the log of a stream begins: its start, or else its first record, before which everything has been trimmed.
 * Throws `data_corrupt` unless the log begins with an intact record.
 */
export async function readFirstLink(stream: MessageStream): Promise<LogLink> {
  const first = await stream.firstPosition();
  if (first === null || first === 1) return LOG_START;
  const signal = AbortSignal.timeout(FIRST_LINK_MS_MAX);
  const where = `Position ${first} of ${stream.name}`;
  for await (const message of stream.read(first - 1, { shards: undefined, signal })) {
    if (message.position !== first || message.channel !== 'chain') break;
    return linkToRecord(first, message.bytes, where);
  }
  throw logDamaged(where, 'expected the record to which the log was trimmed');
}
