// Writes the archive of logs: the node that owns one uploads what was committed in chunks, from what it has published
// itself, or else as it reads it, like a follower. What it reads is verified by the chain before it is uploaded, so that
// a damaged replica is not archived. A chunk is never changed, and only `removeThrough` removes chunks: it is called with
// what the record of a snapshot says.

import { assert } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { Blobs } from '../blobs/blobs.js';
import { linkToRecord, logDamaged } from '../logs/chain-record.js';
import { ChainedLog } from '../logs/chained-log.js';
import { isDamage, type LogLink, LogTrimmedError } from '../logs/collection-log.js';
import { firstLinkOf } from '../logs/first-link.js';
import type { MessageStream, OutgoingMessage, StreamMessage } from '../logs/message-stream.js';
import { encodeChunk } from './chunk.js';
import { LogArchive } from './log-archive.js';
import { RecentMessages } from './recent-messages.js';

/** A chunk ends with the record that makes it so large. */
const CHUNK_BYTES_MIN = 8 * 1024 * 1024;
/** A log that does not deliver what was committed for so long does not have it. */
const READ_MS_MAX = 60_000;

export interface ArchiverOptions {
  readonly blobs: Blobs;
  readonly openStream: (log: string) => MessageStream;
  readonly logger: Logger;
  readonly readMsMax?: number;
}

export class Archiver {
  readonly #options: ArchiverOptions;
  /** The last record that is archived, by log. */
  readonly #ends = new Map<string, LogLink>();
  /** The same of logs that could not be read from there on. */
  readonly #stuck = new Map<string, LogLink>();
  /** The logs that are being archived. */
  readonly #running = new Map<
    string,
    { readonly stop: AbortController; readonly ended: Promise<void> }
  >();
  /** Logs that are gone. */
  readonly #stopped = new Set<string>();
  /** Chunks that this node has written, by log. */
  readonly #chunkCounts = new Map<string, number>();
  readonly #recent = new RecentMessages();

  constructor(options: ArchiverOptions) {
    this.#options = options;
  }

  /** What this node has appended to a log, without others in between; `position` is that of the last message. */
  notePublished(log: string, messages: readonly OutgoingMessage[], position: number): void {
    this.#recent.note(log, messages, position);
  }

  /** Chunks of a log that this node has written. */
  chunkCountOf(log: string): number {
    return this.#chunkCounts.get(log) ?? 0;
  }

  /** Up to where the log is archived, by this node or another one. */
  async endOf(log: string): Promise<number> {
    const { blobs, logger } = this.#options;
    return new LogArchive(log, { blobs, logger }).endPosition();
  }

  /** Up to where this node knows the log to be archived; undefined before `archive`. */
  positionOf(log: string): number | undefined {
    return this.#ends.get(log)?.position;
  }

  /** Another node may have archived since: what this one knows is read again. */
  forget(log: string): void {
    this.#ends.delete(log);
    this.#stuck.delete(log);
  }

  /**
   * Archives the records of a log up to `head`, which this node has applied. Throws `data_corrupt` when the log does
   * not have them, and errors of the blobs; what was archived before stays.
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
   * Called when a log is to be removed. When it resolves, nothing of the log is archived any more, and `archive` does
   * nothing for it; true where something was until now.
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
        const first = await firstLinkOf(this.#options.openStream(log));
        this.#restart(log, known, first);
      } else if (isDamage(error)) {
        this.#stuck.set(log, this.#ends.get(log) ?? known);
        // When it is tried again, the end is looked up again.
        this.#ends.delete(log);
      }
      throw error;
    }
  }

  /**
   * Called when a snapshot has been made at `link`. Where the log could not be archived up to there, the archive
   * goes on from there: nobody who begins with the snapshot needs what is missing.
   */
  resumeAt(log: string, link: LogLink): void {
    const end = this.#stuck.get(log);
    if (end === undefined || end.position >= link.position) return;
    this.#stuck.delete(log);
    this.#restart(log, end, link);
  }

  /** Removes the chunks of a log whose records are all at a position or before it. */
  async removeThrough(log: string, position: number): Promise<void> {
    const { blobs, logger } = this.#options;
    for (const { name, endPosition } of await new LogArchive(log, { blobs, logger }).list()) {
      if (endPosition <= position) await blobs.remove(name);
    }
  }

  #restart(log: string, end: LogLink, link: LogLink): void {
    this.#options.logger.error(
      { log, endPosition: end.position, restartPosition: link.position },
      'the archive of the log has a gap: the log did not have the records that come next',
    );
    this.#ends.set(log, link);
  }

  /** From where on the log is to be archived. */
  async #findEnd(log: string): Promise<LogLink> {
    const { blobs, logger, openStream } = this.#options;
    const end = await new LogArchive(log, { blobs, logger }).end();
    return end ?? (await firstLinkOf(openStream(log)));
  }

  /** The last message is the record up to which is archived. */
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
    const read = new CopyingStream(openStream(log));
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), readMsMax);
    try {
      const reading = new ChainedLog(read).read(after, {
        signal: AbortSignal.any([signal, late.signal]),
      });
      for await (const record of reading) {
        if (record.kind === 'barrier') continue;
        timer.refresh();
        const isLast = record.link.position >= head.position;
        if (!isLast && read.byteCount < CHUNK_BYTES_MIN) continue;
        await this.#upload(log, after, record.link, read.take());
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
      `it delivered nothing after position ${after.position} for ${readMsMax} ms, and its last record is at ${head.position}`,
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

/** Keeps the messages that are read through it until they are taken. */
class CopyingStream implements MessageStream {
  readonly name: string;
  readonly #stream: MessageStream;
  #messages: StreamMessage[] = [];
  #byteCount = 0;

  constructor(stream: MessageStream) {
    this.name = stream.name;
    this.#stream = stream;
  }

  get byteCount(): number {
    return this.#byteCount;
  }

  /** The messages up to the one that was read last. */
  take(): StreamMessage[] {
    const messages = this.#messages;
    this.#messages = [];
    this.#byteCount = 0;
    return messages;
  }

  async *read(
    after: number,
    options: Parameters<MessageStream['read']>[1],
  ): ReturnType<MessageStream['read']> {
    for await (const message of this.#stream.read(after, options)) {
      this.#messages.push(message);
      this.#byteCount += message.bytes.length;
      yield message;
    }
  }

  firstPosition(): Promise<number | null> {
    return this.#stream.firstPosition();
  }

  publish(...parameters: Parameters<MessageStream['publish']>): Promise<number> {
    return this.#stream.publish(...parameters);
  }

  announce(...parameters: Parameters<MessageStream['announce']>): Promise<number> {
    return this.#stream.announce(...parameters);
  }

  trimBefore(position: number): Promise<void> {
    return this.#stream.trimBefore(position);
  }

  drop(): Promise<void> {
    return this.#stream.drop();
  }
}
