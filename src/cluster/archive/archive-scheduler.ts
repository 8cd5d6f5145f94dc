// Decides when a node archives the logs that it owns: every few seconds, and earlier when much has been written.

import { forEachAtOnce } from '../../common/for-each-at-once.js';
import type { Logger } from '../../common/logger.js';
import { isDamage, type LogLink } from '../logs/collection-log.js';
import type { Archiver } from './archiver.js';

const INTERVAL_MS = 2_000;
/** Bytes written after which the interval is cut short. */
const BYTES_MAX = 8 * 1024 * 1024;
/** The pause after a failed attempt. */
const RETRY_MS = 10_000;
/** Logs that are archived at the same time. Each may hold a chunk and the messages read ahead in memory. */
const LOGS_AT_ONCE_MAX = 4;

interface AppliedLog {
  readonly name: string;
  /** The last record that this node has applied. */
  readonly link: LogLink;
}

export interface ArchiveSchedulerOptions {
  readonly archiver: Archiver;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

export class ArchiveScheduler {
  readonly #options: ArchiveSchedulerOptions;
  #running: Promise<void> | null = null;
  #nextMs = 0;
  /** Bytes written since the last pass began. */
  #byteCount = 0;
  /** Everything applied before this moment is archived. */
  #archivedAtMs = performance.now();
  #failure: string | null = null;

  constructor(options: ArchiveSchedulerOptions) {
    this.#options = options;
  }

  /** How long commits of this node have waited to be archived; 0 when all are. */
  lagSecondsOf(owned: readonly AppliedLog[]): number {
    const { archiver } = this.#options;
    const isBehind = owned.some(
      ({ name, link }) => link.position > (archiver.positionOf(name) ?? 0),
    );
    return isBehind ? (performance.now() - this.#archivedAtMs) / 1_000 : 0;
  }

  countBytes(byteCount: number): void {
    this.#byteCount += byteCount;
  }

  /** Called periodically with the logs that this node owns. */
  run(owned: readonly AppliedLog[]): void {
    const { signal, logger } = this.#options;
    const isDue = performance.now() >= this.#nextMs || this.#byteCount >= BYTES_MAX;
    if (!isDue || this.#running !== null || signal.aborted) return;
    this.#start(owned)
      .then(() => {
        if (this.#failure !== null) logger.info({}, 'the logs are archived again');
        this.#failure = null;
      })
      .catch((err: unknown) => {
        this.#nextMs = performance.now() + RETRY_MS;
        const { message } = err as Error;
        if (signal.aborted || message === this.#failure) return;
        this.#failure = message;
        const text = 'a log could not be archived; it is kept, and archiving will be retried';
        if (isDamage(err)) logger.error({ err }, text);
        else logger.warn({ err }, text);
      });
  }

  /** Archives everything committed before the call. */
  async now(owned: readonly AppliedLog[]): Promise<void> {
    await this.settled();
    await this.#start(owned);
  }

  /** Called when this node takes over a log, which another node may have archived meanwhile. */
  begin(log: string): void {
    this.#options.archiver.forget(log);
  }

  /** Resolves when nothing is being archived. */
  async settled(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  #start(owned: readonly AppliedLog[]): Promise<void> {
    const pass = this.#archive(owned);
    this.#running = pass
      .catch(() => {})
      .finally(() => {
        this.#running = null;
      });
    return pass;
  }

  async #archive(owned: readonly AppliedLog[]): Promise<void> {
    const { archiver, signal } = this.#options;
    const startedAtMs = performance.now();
    this.#nextMs = startedAtMs + INTERVAL_MS;
    this.#byteCount = 0;
    const errors: unknown[] = [];
    await forEachAtOnce([...owned], LOGS_AT_ONCE_MAX, ({ name, link }) =>
      archiver.archive(name, link, signal).catch((error: unknown) => {
        errors.push(error);
      }),
    );
    // A log that cannot be archived does not keep the others from being archived.
    if (errors.length > 0) throw errors[0];
    this.#archivedAtMs = startedAtMs;
  }
}
