// The service under test and its lives: started on one data directory, killed or stopped, paused for a while, with a
// clock that jumps.

import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ServerProcess, startServerProcess } from '../../support/server-process.js';
import { halt, startOrKill } from '../harness/disturbances.js';
import { Connections, type Sender } from './attempt.js';

const KEEP_ALIVE_MS = 1_000;
/** A client gives up a request after this time, which is less than a pause of the service may take. */
const WAIT_MS_MAX = 2_500;
const HALT_MS_MAX = 4_000;
const LIFE_MS_MAX = 10_000;
/** Number of each disturbance per second of load. */
const HALTS_PER_SECOND = 0.2;
const JUMPS_PER_SECOND = 0.3;
/** At most two hours apart, because idempotency keys are remembered for a day. */
const CLOCK_OFFSETS_S = [-3_600, -600, -5, 0, 5, 600, 3_600];

const FAKETIME = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1',
];

/** The library that changes the clock of a process; undefined if it is not installed. */
export function findFaketime(): string | undefined {
  return FAKETIME.find((path) => existsSync(path));
}

export type FaultName = 'kill' | 'stop' | 'clock';

/** What happens to a service while clients use it. */
export interface Disturbance {
  readonly perSecond: number;
  happen(): Promise<void> | void;
}

/** A service of one process, or a cluster. */
export interface TestedService {
  readonly marks: Marks;
  /** Maximum time from a start to the next end. */
  readonly lifeMsMax: number;
  /** Range of the number of requests per life, so that a slow machine is killed under as much load. */
  readonly lifeActions: { readonly min: number; readonly max: number };
  readonly disturbances: readonly Disturbance[];
  /** @param mayKill whether it may be killed while it starts, and then started again. */
  start(mayKill: boolean): Promise<Sender>;
  /** Sends SIGKILL. When it resolves, nothing that was sent before can take effect anymore. */
  kill(): Promise<void>;
  /** Sends SIGTERM. */
  stop(): Promise<void>;
  /** Ends it, whatever its state. */
  close(): Promise<void>;
  /** Counts what maintenance has done in this life. */
  noteMaintenance(): Promise<void>;
}

export interface ServiceOptions {
  readonly directory: string;
  readonly random: () => number;
  readonly faults: ReadonlySet<FaultName>;
  readonly retentionMs: number;
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
  /** The largest number of segment files at any time. */
  segmentFilesMax: number;
  /** The largest difference between a time in a reply and the local time. */
  clockSkewSecondsMax: number;
}

export function createMarks(): Marks {
  return {
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
}

/** Makes all of it happen in runs of seconds. */
export function settingsOf({
  random,
  retentionMs,
}: Pick<ServiceOptions, 'random' | 'retentionMs'>): Readonly<Record<string, string>> {
  return {
    SAGITTA_SEGMENT_ROWS_MAX: '64',
    SAGITTA_THREADS: '2',
    SAGITTA_LOG_LEVEL: 'error',
    SAGITTA_RETENTION_MS: String(retentionMs),
    SAGITTA_KEEP_ALIVE_MS: String(KEEP_ALIVE_MS),
    SAGITTA_READ_RATE_MAX: '0',
    SAGITTA_WRITE_RATE_MAX: '0',
    // In half of the runs, small files are mapped as well.
    SAGITTA_VALUES: random() < 0.5 ? 'mapped' : 'memory',
  };
}

/** A single process. */
export class Service implements TestedService {
  readonly marks = createMarks();
  readonly lifeMsMax = LIFE_MS_MAX;
  readonly lifeActions = { min: 20, max: 1_200 };
  readonly disturbances: readonly Disturbance[];
  readonly #dataDirectory: string;
  readonly #clockFile: string | null;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #random: () => number;
  #server: ServerProcess | null = null;
  #connections: Connections | null = null;

  constructor(options: ServiceOptions) {
    const { directory, random, faults } = options;
    const faketime = faults.has('clock') ? findFaketime() : undefined;
    this.#random = random;
    this.disturbances = [
      ...(faults.has('stop') ? [{ perSecond: HALTS_PER_SECOND, happen: () => this.#halt() }] : []),
      ...(faketime !== undefined
        ? [{ perSecond: JUMPS_PER_SECOND, happen: () => this.#jump() }]
        : []),
    ];
    this.#dataDirectory = join(directory, 'data');
    this.#clockFile = faketime === undefined ? null : join(directory, 'clock');
    if (this.#clockFile !== null) writeFileSync(this.#clockFile, '+0');
    this.#settings = {
      ...settingsOf(options),
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

  async start(mayKill: boolean): Promise<Sender> {
    for (;;) {
      const isKilled = mayKill && this.#random() < 0.3;
      const server = await startOrKill(isKilled ? 1_500 * this.#random() : null, (onSpawned) =>
        startServerProcess({
          dataDirectory: this.#dataDirectory,
          settings: this.#settings,
          onSpawned,
        }),
      );
      if (server === null) {
        this.marks.killsWhileStarting++;
        continue;
      }
      this.#server = server;
      this.#connections = new Connections(server.url, WAIT_MS_MAX);
      return this.#connections;
    }
  }

  /** Sends SIGKILL at a moment under load. Resolves when the process has ended. */
  async kill(): Promise<void> {
    this.marks.kills++;
    await this.#server!.kill();
    this.#forget();
  }

  async stop(): Promise<void> {
    this.marks.stops++;
    await this.#server!.stop();
    this.#forget();
  }

  #forget(): void {
    this.#connections!.close();
    this.#server = null;
  }

  async close(): Promise<void> {
    if (this.#server === null) return;
    await this.#server.kill();
    this.#forget();
  }

  /**
   * Sends SIGSTOP, and SIGCONT after connections and requests have timed out, unless the process has ended meanwhile.
   */
  async #halt(): Promise<void> {
    const { child } = this.#server!;
    this.marks.halts++;
    await halt((signal) => child.kill(signal), HALT_MS_MAX * this.#random());
  }

  /** Changes its time of day; its monotonic clock continues. */
  #jump(): void {
    const seconds = CLOCK_OFFSETS_S[Math.floor(this.#random() * CLOCK_OFFSETS_S.length)]!;
    writeFileSync(this.#clockFile!, seconds < 0 ? String(seconds) : `+${seconds}`);
    this.marks.clockJumps++;
  }

  async noteMaintenance(): Promise<void> {
    const { reply } = await this.#connections!.send({ method: 'GET', path: '/metrics' });
    if (reply?.status !== 200) return;
    addMaintenance(this.marks, reply.text);
    const skewSeconds = Math.abs(Date.parse(String(reply.headers.date)) - Date.now()) / 1_000;
    this.marks.clockSkewSecondsMax = Math.max(this.marks.clockSkewSecondsMax, skewSeconds);
    const files = readdirSync(this.#dataDirectory, { recursive: true, encoding: 'utf8' });
    const segments = files.filter((name) => name.endsWith('.arrow')).length;
    this.marks.segmentFilesMax = Math.max(this.marks.segmentFilesMax, segments);
  }
}

/** Parses metrics in text format. */
export function addMaintenance(marks: Marks, metrics: string): void {
  const sumOf = (name: string) =>
    [...metrics.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? ([0-9.e+]+)$`, 'gm'))].reduce(
      (sum, [, value]) => sum + Number(value),
      0,
    );
  marks.checkpoints += sumOf('sagitta_checkpoint_seconds_count');
  marks.compactions += sumOf('sagitta_compaction_seconds_count');
  marks.rowsCompacted += sumOf('sagitta_rows_compacted_total');
}
