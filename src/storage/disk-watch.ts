// Watches the disk with the data directory: reads its free space and writes a few bytes to it at an interval, so that
// others can ask for the space and the state of the disk without touching it. Warns before the disk is full, and when
// it does not respond.

import { constants } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../common/logger.js';
import { type ServiceProblem, toSeconds } from '../common/problems.js';
import {
  type DiskSpace,
  FILE_MODE,
  REMOVAL_SPACE_BYTES,
  readDiskSpace,
  translateDiskError,
} from './disk.js';

/** Used shares of the disk, ascending. */
const THRESHOLDS = [0.9, 0.95, 0.97] as const;
/** A threshold is armed again once usage is this far below it, because compactions constantly use and free a little. */
const HYSTERESIS = 0.02;
/** Pause between probes. Each writes and syncs one block, about 170 MB a day. */
const PAUSE_MS = 2_000;
/** A probe that takes longer means that the disk is stalled: even a busy disk writes a block within a second. */
const ANSWER_MS_MAX = 5_000;
/** Below this much free space, a write of a small record is refused. */
const SPACE_BYTES_MIN = REMOVAL_SPACE_BYTES + 4096;
const PROBE_FILE = 'disk.probe';

/** What is known of the disk. */
export interface DiskState {
  /**
   * `full`: writes of records are refused. `stalled`: the disk does not respond, so writes wait. `failed`: the probe
   * could not be written.
   */
  readonly kind: 'ok' | 'full' | 'stalled' | 'failed';
  /** One sentence for operators, without a path: what was found, since when, and what to do. */
  readonly detail: string;
  /** When the state began, in milliseconds since the epoch. */
  readonly sinceMs: number;
}

/** The operations of a probe, which touch the disk. */
export interface DiskProbe {
  readSpace(): Promise<DiskSpace>;
  /** Writes a few bytes, which are on disk afterwards. Throws errors of the system. */
  write(): Promise<void>;
  close(): Promise<void>;
}

export class DiskWatch {
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #probe: DiskProbe;
  readonly #nowMs: () => number;
  #space: DiskSpace;
  #state: DiskState;
  /** When the disk last answered a probe. */
  #answeredAtMs: number;
  /** Number of thresholds that were reported and are still exceeded. */
  #reportedCount = 0;
  #timer: NodeJS.Timeout | undefined;
  /** The probe in progress. There is never a second one, which would occupy another thread of the pool. */
  #probing: Promise<void> | undefined;
  #isClosed = false;

  private constructor(
    directory: string,
    options: DiskWatchOptions & { probe: DiskProbe },
    space: DiskSpace,
  ) {
    this.#directory = directory;
    this.#logger = options.logger;
    this.#probe = options.probe;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#space = space;
    this.#answeredAtMs = this.#nowMs();
    this.#state = { kind: 'ok', detail: 'The disk responds.', sinceMs: this.#nowMs() };
    this.#setSpace(space);
  }

  /** Reads the free space and then probes the disk regularly until it is closed. Throws errors of the system. */
  static async open(directory: string, options: DiskWatchOptions): Promise<DiskWatch> {
    const probe = options.probe ?? (await FileProbe.open(directory));
    const watch = new DiskWatch(directory, { ...options, probe }, await probe.readSpace());
    watch.#schedule();
    return watch;
  }

  /** As of the last probe. */
  get space(): DiskSpace {
    return this.#space;
  }

  get state(): DiskState {
    return this.#state;
  }

  /** The state as a problem of the service; empty if the disk responds. */
  get problems(): readonly ServiceProblem[] {
    const { kind, detail, sinceMs } = this.#state;
    if (kind === 'ok') return [];
    const seconds = toSeconds(Math.max(0, this.#nowMs() - sinceMs));
    return [{ code: `disk_${kind}`, detail, seconds, blocksWrites: true }];
  }

  /** How long ago the disk last answered; between probes, up to the pause between them. */
  get silentMs(): number {
    return Math.max(0, this.#nowMs() - this.#answeredAtMs);
  }

  /** Probes the disk once, unless a probe is in progress; resolves when it is done. Never throws. */
  check(): Promise<void> {
    this.#probing ??= this.#check().finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }

  async #check(): Promise<void> {
    const startedAtMs = this.#nowMs();
    const late = setTimeout(() => this.#reportStall(startedAtMs), ANSWER_MS_MAX).unref();
    try {
      const space = await this.#probe.readSpace();
      await this.#probe.write();
      this.#setSpace(space);
    } catch (error) {
      if (!this.#isClosed) this.#reportError(error);
    }
    clearTimeout(late);
    this.#answeredAtMs = this.#nowMs();
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      void this.check().then(() => {
        if (!this.#isClosed) this.#schedule();
      });
    }, PAUSE_MS).unref();
  }

  #reportStall(startedAtMs: number): void {
    const since = new Date(startedAtMs).toISOString();
    this.#enter(
      'stalled',
      `The disk has not answered a write of a few bytes since ${since}, so writes wait for it; check the disk and its connection, and restart the service only if other programs can use the disk.`,
      startedAtMs,
    );
  }

  #reportError(error: unknown): void {
    if (translateDiskError(error) !== error) {
      this.#reportFull();
      return;
    }
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    this.#enter(
      'failed',
      `A write of a few bytes to the disk failed (${code}); check the disk and whether its file system is still mounted for writing.`,
    );
  }

  #reportFull(): void {
    this.#enter(
      'full',
      'There is no space left on the disk, so writes are refused; delete unneeded collections or free space on the disk.',
    );
  }

  /** Warns once when the disk stalls or fails, and reports when it answers again. */
  #enter(kind: DiskState['kind'], detail: string, sinceMs = this.#nowMs()): void {
    const before = this.#state;
    if (before.kind === kind) return;
    this.#state = { kind, detail, sinceMs };
    const details = { directory: this.#directory };
    if (kind === 'stalled' || kind === 'failed') this.#logger.warn(details, detail);
    else if (before.kind === 'stalled' || before.kind === 'failed') {
      const milliseconds = Math.max(0, this.#nowMs() - before.sinceMs);
      this.#logger.warn({ ...details, milliseconds }, 'the disk answers again');
    }
  }

  #setSpace(space: DiskSpace): void {
    this.#space = space;
    if (space.freeBytes < SPACE_BYTES_MIN) this.#reportFull();
    else this.#enter('ok', 'The disk responds.');
    const { freeBytes, totalBytes } = space;
    if (totalBytes === 0) return;
    const used = 1 - freeBytes / totalBytes;
    const details = {
      directory: this.#directory,
      used_percent: Math.floor(used * 1000) / 10,
      free_bytes: freeBytes,
      total_bytes: totalBytes,
    };
    const crossedCount = THRESHOLDS.filter((threshold) => used >= threshold).length;
    if (crossedCount > this.#reportedCount) {
      this.#reportedCount = crossedCount;
      const percent = Math.round(THRESHOLDS[crossedCount - 1]! * 100);
      this.#logger.warn(
        details,
        `the disk is more than ${percent} % full; once it is full, writes are refused: delete unneeded collections or free space`,
      );
      return;
    }
    const before = this.#reportedCount;
    while (this.#reportedCount > 0 && used < THRESHOLDS[this.#reportedCount - 1]! - HYSTERESIS) {
      this.#reportedCount--;
    }
    if (before > 0 && this.#reportedCount === 0) {
      this.#logger.info(details, 'the disk has enough free space again');
    }
  }

  /** Does not wait for a probe that the disk has not answered. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    void (this.#probing ?? Promise.resolve())
      .then(() => this.#probe.close())
      .catch(() => {
        // The process ends, which closes the file.
      });
  }
}

interface DiskWatchOptions {
  readonly logger: Logger;
  /** By default one that uses the directory. */
  readonly probe?: DiskProbe;
  /** Milliseconds since the epoch; by default the time of the system. */
  readonly nowMs?: () => number;
}

/** Writes to a file of its own, whose name is removed at once, so that nothing of it remains after a crash. */
class FileProbe implements DiskProbe {
  readonly #directory: string;
  readonly #file: Awaited<ReturnType<typeof open>>;
  #number = 0;

  private constructor(directory: string, file: Awaited<ReturnType<typeof open>>) {
    this.#directory = directory;
    this.#file = file;
  }

  static async open(directory: string): Promise<FileProbe> {
    const path = join(directory, PROBE_FILE);
    const { O_WRONLY, O_CREAT, O_TRUNC, O_DSYNC } = constants;
    const file = await open(path, O_WRONLY | O_CREAT | O_TRUNC | O_DSYNC, FILE_MODE);
    await rm(path);
    return new FileProbe(directory, file);
  }

  readSpace(): Promise<DiskSpace> {
    return readDiskSpace(this.#directory);
  }

  async write(): Promise<void> {
    // Bytes that change, and one position: the file keeps its length, so that a sync writes no metadata.
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(++this.#number);
    await this.#file.write(bytes, 0, bytes.byteLength, 0);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
