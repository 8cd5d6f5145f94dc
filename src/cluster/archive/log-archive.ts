// The archive of one log, for readers: the records of its chunks, which the chain verifies from a record that the reader
// knows. Chunks may overlap, since two nodes may have archived the same records; a damaged chunk does no harm where
// another one has its records.

import type { Logger } from '../../common/logger.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { readRecords } from '../logs/chain-reader.js';
import {
  isDamage,
  type LogLink,
  type LogRecord,
  type ReadOptions,
} from '../logs/collection-log.js';
import { isRead, type MessageSource, type StreamMessage } from '../logs/message-stream.js';
import { archiveFolder, type Chunk, type ChunkName, decodeChunk, parseChunkName } from './chunk.js';

export type LinkedRecord = Exclude<LogRecord, { kind: 'barrier' }>;

export class LogArchive {
  readonly name: string;
  readonly #blobs: SealedBlobs;
  readonly #logger: Logger;

  /** `name`: the name of the log. */
  constructor(
    name: string,
    { blobs, logger }: { readonly blobs: SealedBlobs; readonly logger: Logger },
  ) {
    this.name = name;
    this.#blobs = blobs;
    this.#logger = logger;
  }

  /** The chunks, in the order of their positions. */
  async list(): Promise<ChunkName[]> {
    const names: ChunkName[] = [];
    for await (const name of this.#blobs.list(`${archiveFolder(this.name)}/`)) {
      const parsed = parseChunkName(name);
      if (parsed !== undefined) names.push(parsed);
    }
    return names;
  }

  /** The position of the last record in any chunk that a node has written; 0 without chunks. Reads their seals only. */
  async endPosition(): Promise<number> {
    for (const { name, endPosition } of newestFirst(await this.list())) {
      if ((await this.#blobs.sealOf(name)) !== null) return endPosition;
    }
    return 0;
  }

  /** Throws `data_corrupt`. */
  async load(name: ChunkName): Promise<Chunk> {
    return decodeChunk(name, await this.#blobs.get(name.name));
  }

  /** The last record of the newest intact chunk; null without one. */
  async end(): Promise<LogLink | null> {
    for (const name of newestFirst(await this.list())) {
      const chunk = await this.#loadIfWhole(name);
      if (chunk !== null) return chunk.end;
    }
    return null;
  }

  /** Removes the archive of a deleted log, which must not be archived meanwhile. */
  async removeAll(): Promise<void> {
    for await (const name of this.#blobs.list(`${archiveFolder(this.name)}/`)) {
      await this.#blobs.remove(name);
    }
  }

  /** Yields the archived records after `after`. Ends without an error where the chain breaks. */
  async *read(after: LogLink, options: ReadOptions): AsyncIterable<LinkedRecord> {
    const messages = new ArchivedMessages(this, (name) => this.#loadIfWhole(name));
    try {
      for await (const record of readRecords(messages, after, options)) {
        if (record.kind !== 'barrier') yield record;
      }
    } catch (err) {
      if (!isDamage(err)) throw err;
      this.#logger.error({ log: this.name, err }, 'the archive does not match the log');
    }
  }

  /** Null for a damaged chunk. */
  async #loadIfWhole(name: ChunkName): Promise<Chunk | null> {
    try {
      return await this.load(name);
    } catch (err) {
      if (!isDamage(err)) throw err;
      this.#logger.error(
        { log: this.name, err },
        'a chunk of the archive is damaged and is not used',
      );
      return null;
    }
  }
}

/** The messages of the chunks. */
class ArchivedMessages implements MessageSource {
  readonly name: string;
  readonly #archive: LogArchive;
  readonly #load: (name: ChunkName) => Promise<Chunk | null>;

  constructor(archive: LogArchive, load: (name: ChunkName) => Promise<Chunk | null>) {
    this.name = `the archive of ${archive.name}`;
    this.#archive = archive;
    this.#load = load;
  }

  async *read(
    afterPosition: number,
    { shards, signal }: { shards: readonly number[] | undefined; signal: AbortSignal },
  ): AsyncIterable<StreamMessage> {
    const names = await this.#archive.list();
    let after = afterPosition;
    for (;;) {
      // The chunk that reaches farthest comes first.
      const found = newestFirst(
        names.filter((name) => name.afterPosition <= after && name.endPosition > after),
      );
      let chunk: Chunk | null = null;
      for (const name of found) chunk ??= await this.#load(name);
      if (chunk === null) return;
      for (const message of chunk.messages) {
        if (signal.aborted) return;
        if (message.position > after && isRead(message.channel, shards)) yield message;
      }
      after = chunk.end.position;
    }
  }

  async firstPosition(): Promise<number | null> {
    return (await this.#archive.list())[0]?.afterPosition ?? null;
  }
}

function newestFirst(names: readonly ChunkName[]): ChunkName[] {
  return [...names].sort((a, b) => b.endPosition - a.endPosition);
}
