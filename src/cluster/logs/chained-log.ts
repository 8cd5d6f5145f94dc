// The log of a collection on a stream of messages. A commit is one atomic batch: the fragments of the shards, then a
// record of the chain, which the stream accepts only while the chain ends where the writer expects. Of two writers, the
// first to append therefore stops the other: this, not a clock, fences the writers of earlier epochs, and settles a
// commit whose reply was lost. A claim is accepted in any case and moves the head: it stops a writer that would
// otherwise always be faster than the one that wants to take over.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { assert } from '../../common/errors.js';
import { type ChainItem, readChain, readRecords, toLogRecord } from './chain-reader.js';
import {
  type ChainRecord,
  commitRecord,
  decodeChainRecord,
  digestOfRecord,
  encodeChainRecord,
  encodeClaim,
} from './chain-record.js';
import {
  type AppendOutcome,
  type CollectionLog,
  type Commit,
  isDamage,
  type LogLink,
  type LogRecord,
  type LogWriter,
  type ReadOptions,
  type SettledOutcome,
  SUMMARY_BYTES_MAX,
} from './collection-log.js';
import type { MessageStream, OutgoingMessage } from './message-stream.js';

/** Pauses between attempts while the stream does not answer, or while others append to it. */
const RETRY_MS_MIN = 20;
const RETRY_MS_MAX = 1_000;
const NO_BYTES = new Uint8Array();

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
      for await (const item of this.readChain(link, { signal })) {
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

  /**
   * Throws `configuration_invalid` if the first record has another format than this version, which a node may not notice
   * otherwise: it reads on after the last record that it has applied.
   */
  async requireFormat(signal: AbortSignal): Promise<void> {
    const first = await this.#stream.firstPosition();
    if (first === null) return;
    const end = await this.barrier();
    try {
      for await (const message of this.#stream.read(first - 1, { shards: [], signal })) {
        const { channel, position, bytes } = message;
        if (channel === 'chain') {
          decodeChainRecord(bytes, `Position ${position} of ${this.#stream.name}`);
          return;
        }
        if (position >= end) return;
      }
    } catch (error) {
      // Damage is dealt with by whoever needs the record.
      if (!isDamage(error)) throw error;
    }
  }

  barrier(): Promise<number> {
    return this.#stream.announce('barrier', NO_BYTES);
  }

  read(after: LogLink, options: ReadOptions): AsyncIterable<LogRecord> {
    return readRecords(this.#stream, after, options);
  }

  async *readToEnd(after: LogLink, options: ReadOptions): AsyncIterable<LogRecord> {
    const end = await this.barrier();
    yield* readRecords(this.#stream, after, { ...options, end });
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

  /** Reads the chain up to now, with the fragments of the given shards, by default of all. */
  async *readChain(after: LogLink, options: ReadOptions): AsyncIterable<ChainItem> {
    const end = await this.barrier();
    yield* readChain(this.#stream, after, { ...options, end });
  }

  #cut(bytes: Uint8Array): Uint8Array[] {
    const pieces: Uint8Array[] = [];
    for (let at = 0; at === 0 || at < bytes.length; at += this.#messageBytesMax) {
      pieces.push(bytes.subarray(at, at + this.#messageBytesMax));
    }
    return pieces;
  }
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
    for await (const item of this.#log.readChain(this.#head, { shards: [], signal })) {
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

function recordOf(
  kind: 'epoch' | 'mark',
  header: { epoch: number; id: string; owner: string; previous: LogLink },
): ChainRecord {
  const { position, digest } = header.previous;
  return { ...header, kind, previous: { position, digest }, summary: NO_BYTES };
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
