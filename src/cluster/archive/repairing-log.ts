// A log whose readers get past damage. They read again, since another replica may answer; then they take the records
// from the archive, verified by the chain, and go on with the log. When neither has the next record, the reader fails as
// it would without the archive: nothing is ever skipped.

import { setTimeout as sleep } from 'node:timers/promises';
import { endsWithin } from '../../common/ends-within.js';
import type { Logger } from '../../common/logger.js';
import { logDamaged } from '../logs/chain-record.js';
import {
  type CollectionLog,
  isDamage,
  type LogLink,
  type LogRecord,
  LogTrimmedError,
  type LogWriter,
  type ReadOptions,
} from '../logs/collection-log.js';
import type { LinkedRecord, LogArchive } from './log-archive.js';

/** Failed reads, each of which another replica may answer, before the archive is read. */
const ATTEMPTS_MAX = 3;
const RETRY_MS = 100;
/** The longest that a take-over waits to learn how far the archive reaches. */
const ARCHIVE_END_MS_MAX = 2_000;

export interface RepairingLogOptions {
  readonly log: CollectionLog;
  readonly archive: LogArchive;
  readonly logger: Logger;
  /** Called with the number of records that came from the archive. */
  readonly onRepaired: (recordCount: number) => void;
}

export class RepairingLog implements CollectionLog {
  readonly #options: RepairingLogOptions;
  readonly #log: CollectionLog;
  readonly #archive: LogArchive;

  constructor(options: RepairingLogOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#archive = options.archive;
  }

  async takeOver(options: Parameters<CollectionLog['takeOver']>[0]): Promise<LogWriter> {
    await this.#requireWholeEnd();
    let { after } = options;
    const onRecord = (record: LogRecord) => {
      if (record.kind !== 'barrier') after = record.link;
      options.onRecord(record);
    };
    for (let attempt = 1; ; attempt++) {
      const before = after;
      try {
        return await this.#log.takeOver({ ...options, after, onRecord });
      } catch (error) {
        if (!isDamage(error)) throw error;
        if (after !== before) attempt = 1;
        if (attempt < ATTEMPTS_MAX && !(error instanceof LogTrimmedError)) {
          await sleep(RETRY_MS * attempt, undefined, { signal: options.signal });
          continue;
        }
        const { position } = after;
        for await (const record of this.#readArchive(after, options, error)) onRecord(record);
        if (after.position === position) throw error;
        attempt = 1;
      }
    }
  }

  barrier(): Promise<number> {
    return this.#log.barrier();
  }

  read(after: LogLink, options: ReadOptions): AsyncIterable<LogRecord> {
    return this.#read(after, options, (link) => this.#log.read(link, options));
  }

  readToEnd(after: LogLink, options: ReadOptions): AsyncIterable<LogRecord> {
    return this.#read(after, options, (link) => this.#log.readToEnd(link, options));
  }

  trimBefore(position: number): Promise<void> {
    return this.#log.trimBefore(position);
  }

  drop(): Promise<void> {
    return this.#log.drop();
  }

  async *#read(
    after: LogLink,
    options: ReadOptions,
    readLog: (link: LogLink) => AsyncIterable<LogRecord>,
  ): AsyncIterable<LogRecord> {
    let link = after;
    for (let attempt = 1; ; attempt++) {
      let failure: unknown;
      try {
        for await (const record of readLog(link)) {
          if (record.kind !== 'barrier') {
            link = record.link;
            attempt = 1;
          }
          yield record;
        }
        return;
      } catch (error) {
        if (!isDamage(error)) throw error;
        failure = error;
      }
      if (attempt < ATTEMPTS_MAX && !(failure instanceof LogTrimmedError)) {
        await sleep(RETRY_MS * attempt, undefined, { signal: options.signal });
        continue;
      }
      const { position } = link;
      for await (const record of this.#readArchive(link, options, failure)) {
        link = record.link;
        yield record;
      }
      if (options.signal.aborted) return;
      if (link.position === position) throw failure;
      attempt = 0;
    }
  }

  async *#readArchive(
    after: LogLink,
    options: ReadOptions,
    failure: unknown,
  ): AsyncIterable<LinkedRecord> {
    const { logger, onRepaired } = this.#options;
    const log = this.#archive.name;
    let recordCount = 0;
    let last = after;
    try {
      for await (const record of this.#archive.read(after, options)) {
        recordCount++;
        last = record.link;
        yield record;
      }
    } catch (err) {
      logger.error({ log, err }, 'the archive of the log cannot be read');
    } finally {
      if (recordCount > 0) {
        onRepaired(recordCount);
        logger.warn(
          {
            log,
            afterPosition: after.position,
            lastPosition: last.position,
            records: recordCount,
            err: failure,
          },
          'records that the log lacks were read from the archive',
        );
      }
    }
  }

  /**
   * Throws `data_corrupt` for a log that ends before its archive: replicas that lost the end of the log have elected a
   * leader, and a writer would put other records in the place of acknowledged ones.
   */
  async #requireWholeEnd(): Promise<void> {
    const { logger } = this.#options;
    const log = this.#archive.name;
    let archivedPosition: number;
    try {
      const reading = this.#archive.endPosition();
      if (!(await endsWithin(reading, ARCHIVE_END_MS_MAX))) {
        throw new Error(`Expected an answer within ${ARCHIVE_END_MS_MAX} ms; found none.`);
      }
      archivedPosition = await reading;
    } catch (err) {
      logger.warn(
        { log, err },
        'the end of the archive is not known; this node takes over without comparing it',
      );
      return;
    }
    if (archivedPosition === 0) return;
    const end = await this.#log.barrier();
    if (end > archivedPosition) return;
    throw logDamaged(
      `The end of ${log}`,
      `a new message got position ${end}, but the archive reaches to ${archivedPosition}; messages at its end are missing, or SAGITTA_BLOBS holds the archive of another cluster`,
    );
  }
}
