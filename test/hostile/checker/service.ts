// The service under test, in lives: started on one data directory, killed or stopped, halted for a while, and
// with a clock that jumps.

import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ServerProcess, startServerProcess } from '../../support/server-process.js';
import { Connections } from './attempt.js';

const KEEP_ALIVE_MS = 1_000;
/** A client gives a request up after this time: less than a halt of the service may take. */
const WAIT_MS_MAX = 2_500;
const HALT_MS_MAX = 4_000;
/** Two hours at most apart: idempotency keys are remembered for a day. */
const CLOCK_OFFSETS_S = [-3_600, -600, -5, 0, 5, 600, 3_600];

const FAKETIME = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1',
];

/** The library that changes the clock of a process; undefined where it is not installed. */
export function findFaketime(): string | undefined {
  return FAKETIME.find((path) => existsSync(path));
}

export interface Marks {
  kills: number;
  killsWhileStarting: number;
  stops: number;
  halts: number;
  clockJumps: number;
  checkpoints: number;
  compactions: number;
  rowsCompacted: number;
  /** The most segment files at once. */
  segmentFilesMax: number;
  /** The largest difference of a time in a reply to the time here. */
  clockSkewSecondsMax: number;
}

export class Service {
  readonly marks: Marks = {
    kills: 0,
    killsWhileStarting: 0,
    stops: 0,
    halts: 0,
    clockJumps: 0,
    checkpoints: 0,
    compactions: 0,
    rowsCompacted: 0,
    segmentFilesMax: 0,
    clockSkewSecondsMax: 0,
  };
  readonly #dataDirectory: string;
  readonly #clockFile: string | null;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #random: () => number;
  #server: ServerProcess | null = null;
  #connections: Connections | null = null;

  /** @param faketime the library for clock jumps; undefined for none. */
  constructor(options: {
    readonly directory: string;
    readonly random: () => number;
    readonly faketime: string | undefined;
    readonly retentionMs: number;
  }) {
    const { directory, random, faketime, retentionMs } = options;
    this.#random = random;
    this.#dataDirectory = join(directory, 'data');
    this.#clockFile = faketime === undefined ? null : join(directory, 'clock');
    if (this.#clockFile !== null) writeFileSync(this.#clockFile, '+0');
    this.#settings = {
      SAGITTA_SEGMENT_ROWS_MAX: '64',
      SAGITTA_THREADS: '2',
      SAGITTA_LOG_LEVEL: 'error',
      SAGITTA_RETENTION_MS: String(retentionMs),
      SAGITTA_KEEP_ALIVE_MS: String(KEEP_ALIVE_MS),
      SAGITTA_READ_RATE_MAX: '0',
      SAGITTA_WRITE_RATE_MAX: '0',
      // Small files are mapped as well in half of the runs.
      SAGITTA_VALUES: random() < 0.5 ? 'mapped' : 'memory',
      ...(faketime === undefined
        ? {}
        : {
            LD_PRELOAD: faketime,
            FAKETIME_TIMESTAMP_FILE: this.#clockFile!,
            FAKETIME_NO_CACHE: '1',
            DONT_FAKE_MONOTONIC: '1',
          }),
    };
  }

  /** @param mayKill whether it may be killed while it starts; then it is started again. */
  async start(mayKill: boolean): Promise<Connections> {
    for (;;) {
      const isKilled = mayKill && this.#random() < 0.3;
      const server = await this.#tryStart(isKilled ? 1_500 * this.#random() : null);
      if (server === null) continue;
      this.#server = server;
      this.#connections = new Connections(server.url, WAIT_MS_MAX);
      return this.#connections;
    }
  }

  async #tryStart(killAfterMs: number | null): Promise<ServerProcess | null> {
    let timer: NodeJS.Timeout | undefined;
    let isKilled = false;
    let hasEnded: Promise<unknown> | undefined;
    try {
      return await startServerProcess({
        dataDirectory: this.#dataDirectory,
        settings: this.#settings,
        onSpawned: (child) => {
          hasEnded = once(child, 'close');
          if (killAfterMs === null) return;
          timer = setTimeout(() => {
            isKilled = true;
            child.kill('SIGKILL');
          }, killAfterMs);
        },
      });
    } catch (error) {
      if (!isKilled) throw error;
      await hasEnded;
      this.marks.killsWhileStarting++;
      return null;
    } finally {
      clearTimeout(timer);
    }
  }

  /** SIGKILL, at a moment when it is under load. Resolves when the process has ended. */
  async kill(): Promise<void> {
    this.marks.kills++;
    await this.#server!.kill();
    this.#forget();
  }

  /** SIGTERM. */
  async stop(): Promise<void> {
    this.marks.stops++;
    await this.#server!.stop();
    this.#forget();
  }

  #forget(): void {
    this.#connections!.close();
    this.#server = null;
  }

  /** Ends it, whatever state it is in. */
  async close(): Promise<void> {
    if (this.#server === null) return;
    await this.#server.kill();
    this.#forget();
  }

  /** SIGSTOP, and SIGCONT after connections and requests have timed out; not if it has ended meanwhile. */
  async halt(): Promise<void> {
    const { child } = this.#server!;
    this.marks.halts++;
    child.kill('SIGSTOP');
    try {
      await sleep(HALT_MS_MAX * this.#random());
    } finally {
      child.kill('SIGCONT');
    }
  }

  /** Its time of day jumps; its monotonic clock goes on. */
  jump(): void {
    const seconds = CLOCK_OFFSETS_S[Math.floor(this.#random() * CLOCK_OFFSETS_S.length)]!;
    writeFileSync(this.#clockFile!, seconds < 0 ? String(seconds) : `+${seconds}`);
    this.marks.clockJumps++;
  }

  /** Counts what maintenance has done in this life. */
  async noteMaintenance(): Promise<void> {
    const { reply } = await this.#connections!.send({ method: 'GET', path: '/metrics' });
    if (reply?.status !== 200) return;
    const sumOf = (name: string) =>
      [...reply.text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? ([0-9.e+]+)$`, 'gm'))].reduce(
        (sum, [, value]) => sum + Number(value),
        0,
      );
    this.marks.checkpoints += sumOf('sagitta_checkpoint_seconds_count');
    this.marks.compactions += sumOf('sagitta_compaction_seconds_count');
    this.marks.rowsCompacted += sumOf('sagitta_rows_compacted_total');
    const skewSeconds = Math.abs(Date.parse(String(reply.headers.date)) - Date.now()) / 1_000;
    this.marks.clockSkewSecondsMax = Math.max(this.marks.clockSkewSecondsMax, skewSeconds);
    const files = readdirSync(this.#dataDirectory, { recursive: true, encoding: 'utf8' });
    const segments = files.filter((name) => name.endsWith('.arrow')).length;
    this.marks.segmentFilesMax = Math.max(this.marks.segmentFilesMax, segments);
  }
}
