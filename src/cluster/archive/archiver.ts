// Writes the archive of logs. The owner of a log uploads the commits in chunks: those that it has published itself and
// still remembers, or else those that it reads like a follower. The chain verifies what is read, so a damaged replica is
// not archived. A chunk never changes, and only `removeThrough` removes chunks, as the record of a snapshot allows.

import { assert } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { readFirstLink, readRecords } from '../logs/chain-reader.js';
import { linkToRecord, logDamaged } from '../logs/chain-record.js';
import { isDamage, type LogLink, LogTrimmedError } from '../logs/collection-log.js';
import type {
  MessageSource,
  MessageStream,
  OutgoingMessage,
  StreamMessage,
} from '../logs/message-stream.js';
import { encodeChunk } from './chunk.js';
import { LogArchive } from './log-archive.js';
import { RecentMessages } from './recent-messages.js';

/** A chunk ends with the record that brings it to this size. */
const CHUNK_BYTES_MIN = 8 * 1024 * 1024;
/** A log that delivers nothing for this long does not have the records that were committed. */
const READ_MS_MAX = 60_000;

export interface ArchiverOptions {
  readonly blobs: SealedBlobs;
  readonly openStream: (log: string) => MessageStream;
  readonly logger: Logger;
  readonly readMsMax?: number;
}

export class Archiver {
  readonly #options: ArchiverOptions;
  /** The last archived record, by log. */
  readonly #ends = new Map<string, LogLink>();
  /** The last archived record of logs that could not be read from there on. */
  readonly #stuck = new Map<string, LogLink>();
  /** The logs that are being archived. */
  readonly #running = new Map<
    string,
    { readonly stop: AbortController; readonly ended: Promise<void> }
  >();
  /** Logs that have been removed. */
  readonly #stopped = new Set<string>();
  /** Chunks that this node has written, by log. */
  readonly #chunkCounts = new Map<string, number>();
  readonly #recent = new RecentMessages();

  constructor(options: ArchiverOptions) {
    this.#options = options;
  }

  /** Remembers consecutive messages that this node has appended to a log; `position` is that of the last one. */
  addPublished(log: string, messages: readonly OutgoingMessage[], position: number): void {
    this.#recent.add(log, messages, position);
  }

  /** The number of chunks of a log that this node has written. */
  chunkCountOf(log: string): number {
    return this.#chunkCounts.get(log) ?? 0;
  }

  /** The blobs with the chunks of a log. */
  async chunksOf(log: string): Promise<string[]> {
    const { blobs, logger } = this.#options;
    return (await new LogArchive(log, { blobs, logger }).list()).map(({ name }) => name);
  }

  /** Reads up to which position the log is archived, by this node or another one. */
  async endOf(log: string): Promise<number> {
    const { blobs, logger } = this.#options;
    return new LogArchive(log, { blobs, logger }).endPosition();
  }

  /** The position up to which this node knows the log to be archived; undefined before `archive`. */
  positionOf(log: string): number | undefined {
    return this.#ends.get(log)?.position;
  }

  /** Looks the end of the archive up again, since another node may have written to it. */
  forget(log: string): void {
    this.#ends.delete(log);
    this.#stuck.delete(log);
  }

  /**
   * Archives the records of a log up to `head`, which this node has applied. Throws `data_corrupt` when the log lacks
   * them, and errors of the blobs; earlier chunks stay.
   */
  async archive(log: string, head: LogLink, signal: AbortSignal): Promise<void> {
    if (this.#stopped.has(log)) return;
    assert(!this.#running.has(log), `${log} is not being archived`);
    const stop = new AbortController();
    const running = this.#archive(log, head, AbortSignal.any([signal, stop.signal]));
    const ended = running.catch(() => {});
    this.#running.set(log, { stop, ended });
    try {
      await running;
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      this.#running.delete(log);
    }
  }

  /**
   * Called before a log is removed. Once it resolves, the log is not being archived, and `archive` ignores it. Resolves
   * with true if it interrupted an upload.
   */
  async stop(log: string): Promise<boolean> {
    this.#stopped.add(log);
    const running = this.#running.get(log);
    running?.stop.abort();
    await running?.ended;
    this.forget(log);
    this.#recent.forget(log);
    return running !== undefined;
  }

  async #archive(log: string, head: LogLink, signal: AbortSignal): Promise<void> {
    const known = this.#ends.get(log) ?? (await this.#findEnd(log));
    this.#ends.set(log, known);
    if (known.position >= head.position) {
      this.#stuck.delete(log);
      return;
    }
    try {
      const recent = this.#recent.between(log, known.position, head.position);
      if (recent !== null) await this.#archivePublished(log, known, { messages: recent, signal });
      else await this.#archiveAfter(log, known, { head, signal });
      this.#recent.forget(log, head.position);
      this.#stuck.delete(log);
    } catch (error) {
      if (error instanceof LogTrimmedError) {
        const first = await readFirstLink(this.#options.openStream(log));
        this.#restart(log, known, first);
      } else if (isDamage(error)) {
        this.#stuck.set(log, this.#ends.get(log) ?? known);
        // The next attempt looks the end up again.
        this.#ends.delete(log);
      }
      throw error;
    }
  }

  /**
   * Called when a snapshot has been taken at `link`. If the log could not be archived up to there, the archive goes on
   * from there: nodes that load the snapshot do not need the missing records.
   */
  resumeAt(log: string, link: LogLink): void {
    const end = this.#stuck.get(log);
    if (end === undefined || end.position >= link.position) return;
    this.#stuck.delete(log);
    this.#restart(log, end, link);
  }

  /** Removes the chunks of a log that end at a position or before it. */
  async removeThrough(log: string, position: number): Promise<void> {
    const { blobs, logger } = this.#options;
    for (const { name, endPosition } of await new LogArchive(log, { blobs, logger }).list()) {
      if (endPosition <= position) await blobs.remove(name);
    }
  }

  #restart(log: string, end: LogLink, link: LogLink): void {
    this.#options.logger.error(
      { log, endPosition: end.position, restartPosition: link.position },
      'the archive of the log has a gap, since the log lacks the next records',
    );
    this.#ends.set(log, link);
  }

  /** The record after which the log is to be archived. */
  async #findEnd(log: string): Promise<LogLink> {
    const { blobs, logger, openStream } = this.#options;
    const end = await new LogArchive(log, { blobs, logger }).end();
    return end ?? (await readFirstLink(openStream(log)));
  }

  /** Archives messages that this node has published; the last one is the record to end with. */
  async #archivePublished(
    log: string,
    start: LogLink,
    {
      messages,
      signal,
    }: { readonly messages: readonly StreamMessage[]; readonly signal: AbortSignal },
  ): Promise<void> {
    let after = start;
    let chunk: StreamMessage[] = [];
    let byteCount = 0;
    for (const [i, message] of messages.entries()) {
      chunk.push(message);
      byteCount += message.bytes.length;
      const isLast = i === messages.length - 1;
      if (message.channel !== 'chain' || (!isLast && byteCount < CHUNK_BYTES_MIN)) continue;
      signal.throwIfAborted();
      const { position, bytes } = message;
      const end = linkToRecord(position, bytes, `Position ${position} of ${log}`);
      await this.#upload(log, after, end, chunk);
      after = end;
      chunk = [];
      byteCount = 0;
    }
  }

  async #archiveAfter(
    log: string,
    start: LogLink,
    { head, signal }: { readonly head: LogLink; readonly signal: AbortSignal },
  ): Promise<void> {
    const { openStream, readMsMax = READ_MS_MAX } = this.#options;
    let after = start;
    const source = new CopyingSource(openStream(log));
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), readMsMax);
    try {
      const options = { signal: AbortSignal.any([signal, late.signal]) };
      for await (const record of readRecords(source, after, options)) {
        if (record.kind === 'barrier') continue;
        timer.refresh();
        const isLast = record.link.position >= head.position;
        if (!isLast && source.byteCount < CHUNK_BYTES_MIN) continue;
        await this.#upload(log, after, record.link, source.take());
        timer.refresh();
        after = record.link;
        if (isLast) return;
      }
    } finally {
      clearTimeout(timer);
    }
    signal.throwIfAborted();
    throw logDamaged(
      `The end of ${log}`,
      `expected records up to position ${head.position}; found nothing after ${after.position} in ${readMsMax} ms`,
    );
  }

  async #upload(
    log: string,
    after: LogLink,
    end: LogLink,
    messages: readonly StreamMessage[],
  ): Promise<void> {
    const { name, bytes } = encodeChunk({ log, after, end, messages });
    await this.#options.blobs.put(name, [bytes]);
    this.#chunkCounts.set(log, this.chunkCountOf(log) + 1);
    this.#ends.set(log, end);
  }
}

/** Keeps the messages that are read through it until `take`. */
class CopyingSource implements MessageSource {
  readonly name: string;
  readonly #source: MessageSource;
  #messages: StreamMessage[] = [];
  #byteCount = 0;

  constructor(source: MessageSource) {
    this.name = source.name;
    this.#source = source;
  }

  get byteCount(): number {
    return this.#byteCount;
  }

  /** Returns the messages read since the last call. */
  take(): StreamMessage[] {
    const messages = this.#messages;
    this.#messages = [];
    this.#byteCount = 0;
    return messages;
  }

  async *read(
    after: number,
    options: Parameters<MessageSource['read']>[1],
  ): AsyncIterable<StreamMessage> {
    for await (const message of this.#source.read(after, options)) {
      this.#messages.push(message);
      this.#byteCount += message.bytes.length;
      yield message;
    }
  }

  firstPosition(): Promise<number | null> {
    return this.#source.firstPosition();
  }
}
