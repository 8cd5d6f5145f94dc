// Mixed work on one server for a long time, at a share of its capacity, with restarts: memory, descriptors, disk usage
// and latencies must not grow, replies must be right, and acknowledged writes must exist after each restart.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyDirectory } from '../../../src/offline.js';
import { createRandom } from '../../database/harness.js';
import {
  createCaller,
  type ServerProcess,
  startServerProcess,
} from '../../support/server-process.js';
import { quantile } from '../harness/program.js';
import { readDisk, readHeapBytes, readProcess, type Sample } from './samples.js';
import { type Call, must, Workload } from './workload.js';

export interface SoakOptions {
  readonly durationMs: number;
  readonly restartMs: number;
  readonly sampleMs: number;
  readonly calibrationMs: number;
  /** Share of the measured capacity. */
  readonly load: number;
  readonly rowCount: number;
  readonly seed: number;
  readonly onSample?: (sample: Sample) => void;
}

export interface SoakReport {
  readonly seed: number;
  readonly load: number;
  /** Capacity in requests per second: after each start, and whenever requests fell behind. */
  readonly capacities: readonly number[];
  readonly samples: readonly Sample[];
  /** How often requests fell behind, because the machine or the server became slower. */
  readonly behindCount: number;
  readonly faults: readonly string[];
}

const CALIBRATION_CLIENTS = 8;
const CONNECTIONS = 32;
/**
 * If a request has waited this long for its reply, all are behind: the machine provides less than before, and the
 * capacity is measured again. A queue that only grows would say nothing about the server.
 */
const BEHIND_MS = 10_000;
const FAULTS_MAX = 100;

export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-soak-'));
  const soak = new Soak(folder, options);
  try {
    return await soak.run();
  } finally {
    await soak.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Soak {
  readonly #options: SoakOptions;
  readonly #dataDirectory: string;
  readonly #backupDirectory: string;
  readonly #workload: Workload;
  readonly #random: () => number;
  readonly #samples: Sample[] = [];
  readonly #faults: string[] = [];
  /** Durations in milliseconds of the requests that ended since the last sample, by kind. */
  #tookMs = new Map<string, number[]>();
  #server: ServerProcess | undefined;
  #caller: ReturnType<typeof createCaller> | undefined;
  #processCount = 0;
  #readyAtMs = 0;
  #startedAtMs = 0;
  #requestCount = 0;
  #behindCount = 0;
  /** The last acknowledged number. */
  #acknowledged = 0;

  constructor(folder: string, options: SoakOptions) {
    this.#options = options;
    this.#dataDirectory = join(folder, 'data');
    this.#backupDirectory = join(folder, 'backups');
    mkdirSync(this.#backupDirectory);
    this.#random = createRandom(options.seed);
    this.#workload = new Workload({
      backupDirectory: this.#backupDirectory,
      random: this.#random,
      rowCount: options.rowCount,
    });
  }

  async run(): Promise<SoakReport> {
    const { durationMs, restartMs, load, seed } = this.#options;
    await this.#start();
    await this.#workload.load(this.#call);
    this.#startedAtMs = performance.now();
    const capacities: number[] = [];
    let isKilled = false;
    // Restarts, and waiting for the last replies before them, do not count.
    for (let workedMs = 0; workedMs < durationMs; workedMs += restartMs) {
      if (workedMs > 0) {
        await this.#restart(isKilled);
        isKilled = !isKilled;
      }
      const endMs = performance.now() + Math.min(restartMs, durationMs - workedMs);
      while (performance.now() < endMs) {
        const capacity = await this.#calibrate();
        capacities.push(capacity);
        await this.#work(capacity * load, endMs);
      }
    }
    await this.#server!.stop();
    await this.#verify();
    return {
      seed,
      load,
      capacities,
      samples: this.#samples,
      behindCount: this.#behindCount,
      faults: this.#faults,
    };
  }

  async close(): Promise<void> {
    this.#caller?.close();
    await this.#server?.kill();
  }

  get #call(): Call {
    return this.#caller!.call;
  }

  async #start(): Promise<void> {
    this.#server = await startServerProcess({
      dataDirectory: this.#dataDirectory,
      settings: {
        SAGITTA_BACKUP_DIR: this.#backupDirectory,
        // Small and short, so that segments, log and retained data settle within minutes.
        SAGITTA_SEGMENT_ROWS_MAX: '4096',
        SAGITTA_RETENTION_MS: '60000',
        SAGITTA_IDEMPOTENCY_MS: '60000',
        SAGITTA_READ_RATE_MAX: '0',
        SAGITTA_WRITE_RATE_MAX: '0',
        SAGITTA_LOG_LEVEL: 'error',
      },
    });
    this.#caller = createCaller(this.#server.url, CONNECTIONS);
    this.#readyAtMs = performance.now();
  }

  /** Requests per second of clients that send one request after another. */
  async #calibrate(): Promise<number> {
    const startMs = performance.now();
    const endMs = startMs + this.#options.calibrationMs;
    let count = 0;
    const client = async () => {
      while (performance.now() < endMs) {
        await this.#send();
        count++;
      }
    };
    await Promise.all(Array.from({ length: CALIBRATION_CLIENTS }, client));
    this.#tookMs.clear();
    return count / ((performance.now() - startMs) / 1000);
  }

  /** Sends at this rate, whether or not replies arrive, until the time is over or requests are behind. */
  async #work(rate: number, endMs: number): Promise<void> {
    const sampleCount = this.#samples.length;
    let isEnding = false;
    const sampling = (async () => {
      while (!isEnding) {
        await sleep(this.#options.sampleMs);
        if (!isEnding) await this.#sample();
      }
    })();
    const acknowledging = (async () => {
      while (!isEnding) await this.#acknowledge();
    })();
    /** Running requests with the times when they were due, ascending. */
    const under = new Map<Promise<void>, number>();
    let dueMs = performance.now();
    while (dueMs < endMs) {
      dueMs -= Math.log(1 - this.#random()) * (1000 / rate);
      const waitMs = dueMs - performance.now();
      if (waitMs > 1) await sleep(waitMs);
      const [oldestMs = dueMs] = under.values();
      if (performance.now() - oldestMs > BEHIND_MS) {
        this.#behindCount++;
        break;
      }
      const sending: Promise<void> = this.#send(dueMs).finally(() => under.delete(sending));
      under.set(sending, dueMs);
    }
    await Promise.all(under.keys());
    isEnding = true;
    await Promise.all([sampling, acknowledging]);
    if (this.#samples.length === sampleCount) await this.#sample();
  }

  /** The latency is counted from the time when the request was due. */
  async #send(dueMs = performance.now()): Promise<void> {
    const { kind, run } = this.#workload.next();
    this.#requestCount++;
    try {
      await run(this.#call);
      const tookMs = this.#tookMs.get(kind) ?? [];
      this.#tookMs.set(kind, tookMs);
      tookMs.push(performance.now() - dueMs);
    } catch (error) {
      this.#fault(`${kind}: ${(error as Error).message}`);
    }
  }

  /** Makes one more write, whose number must be found after a restart. */
  async #acknowledge(): Promise<void> {
    const number = this.#acknowledged + 1;
    const values = Array.from({ length: 64 }, () => 1);
    try {
      await must(this.#call, 'PUT', '/v1/collections/c/vectors/acknowledged', {
        values,
        metadata: { number },
      });
      this.#acknowledged = number;
    } catch (error) {
      this.#fault(`acknowledged write: ${(error as Error).message}`);
    }
    await sleep(50);
  }

  async #restart(isKilled: boolean): Promise<void> {
    this.#caller!.close();
    if (isKilled) await this.#server!.kill();
    else await this.#server!.stop();
    const { exitCode } = this.#server!.child;
    if (!isKilled && exitCode !== 0) this.#fault(`the server stopped with ${exitCode}`);
    await this.#start();
    this.#processCount++;
    const reply = await must(this.#call, 'GET', '/v1/collections/c/vectors/acknowledged');
    const { number } = reply.json<{ metadata: { number: number } }>().metadata;
    if (number !== this.#acknowledged) {
      this.#fault(
        `after a restart, write ${number} is the last; ${this.#acknowledged} was acknowledged`,
      );
    }
  }

  async #verify(): Promise<void> {
    const { findings } = await verifyDirectory(this.#dataDirectory);
    for (const { severity, where, what } of findings) {
      if (severity === 'error') this.#fault(`verify: ${where}: ${what}`);
    }
  }

  async #sample(): Promise<void> {
    const heapBytes = await readHeapBytes(this.#call).catch(() => Number.NaN);
    const { exitCode, signalCode, pid } = this.#server!.child;
    if (exitCode !== null || signalCode !== null) {
      this.#fault(`the server ended: ${signalCode ?? exitCode}`);
      return;
    }
    const took = this.#tookMs;
    this.#tookMs = new Map();
    const nowMs = performance.now();
    const all = quantilesOf([...took.values()].flat());
    const sample: Sample = {
      seconds: (nowMs - this.#startedAtMs) / 1000,
      process: this.#processCount,
      processSeconds: (nowMs - this.#readyAtMs) / 1000,
      ...readProcess(pid!),
      heapBytes,
      ...readDisk(this.#dataDirectory),
      requestCount: this.#requestCount,
      latencies: Object.fromEntries([...took].map(([kind, ms]) => [kind, quantilesOf(ms)])),
      ...all,
    };
    this.#samples.push(sample);
    this.#options.onSample?.(sample);
  }

  #fault(what: string): void {
    if (this.#faults.length < FAULTS_MAX) this.#faults.push(what);
  }
}

function quantilesOf(tookMs: readonly number[]): { p50: number; p99: number } {
  const ascending = [...tookMs].sort((a, b) => a - b);
  return { p50: quantile(ascending, 0.5), p99: quantile(ascending, 0.99) };
}
