// Starts the thread of the watchdog and shows it that the main thread runs. The thread stays responsive when the main
// thread is blocked, for example by a page of a mapped file that a stalled disk does not deliver.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { endsWithin } from '../common/ends-within.js';
import { programFile } from '../common/package-files.js';
import type { Config } from './settings.js';
import type { WatchdogData, WatchdogReply, WatchdogRequest } from './watchdog-thread.js';

/** Often enough for a limit of 5 seconds, and too rare to cost anything. */
const TURN_MS = 500;
/** Requests keep the main thread busy for far less. */
const STILL_MS_MAX = 5_000;
/** The thread may be waiting for the reader of the log. */
const CLOSE_MS_MAX = 1_000;
/** The thread holds little more than its code. */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 };

interface WatchdogOptions {
  readonly config: Pick<Config, 'host' | 'livenessPort' | 'serviceManager'>;
  /** The format of the log; null if warnings are not logged. */
  readonly logFormat: WatchdogData['logFormat'];
  /** After this long without a turn, the main thread counts as blocked; by default 5 seconds. */
  readonly stillMsMax?: number;
  /** Called if the thread fails; the service then runs without it. */
  readonly onFailure: (error: Error) => void;
}

export class Watchdog {
  /** The port of the liveness; null for none. */
  readonly port: number | null;
  readonly #thread: Worker;
  readonly #timer: NodeJS.Timeout;

  private constructor(thread: Worker, timer: NodeJS.Timeout, port: number | null) {
    this.#thread = thread;
    this.#timer = timer;
    this.port = port;
  }

  /** Throws errors of the system if the port cannot be listened on. Waits for the thread only if there is a port. */
  static async start(options: WatchdogOptions): Promise<Watchdog> {
    const { config, logFormat, onFailure } = options;
    const { host, livenessPort, serviceManager } = config;
    const turns = new Int32Array(new SharedArrayBuffer(4));
    const watchdogMs = serviceManager?.watchdogMs ?? null;
    const workerData: WatchdogData = {
      turns,
      turnMs: TURN_MS,
      stillMsMax: options.stillMsMax ?? STILL_MS_MAX,
      liveness: livenessPort === null ? null : { host, port: livenessPort },
      isNotifying: serviceManager !== null,
      // Half of the limit, as systemd recommends.
      notifyMs: watchdogMs === null ? null : watchdogMs / 2,
      logFormat,
    };
    const thread = new Worker(programFile('platform/watchdog-thread.js'), {
      workerData,
      resourceLimits: RESOURCE_LIMITS,
    });
    thread.on('error', onFailure);
    const timer = setInterval(() => Atomics.add(turns, 0, 1), TURN_MS).unref();
    let port: number | null = null;
    if (livenessPort !== null) {
      const [reply] = (await once(thread, 'message')) as [WatchdogReply];
      if (reply.kind === 'failed') {
        clearInterval(timer);
        await thread.terminate();
        throw Object.assign(new Error(reply.code), { code: reply.code });
      }
      port = reply.port;
    }
    thread.unref();
    return new Watchdog(thread, timer, port);
  }

  /** Reports to the service manager that the service is ready. */
  ready(): void {
    this.#thread.postMessage('ready' satisfies WatchdogRequest);
  }

  /** Reports to the service manager that the service is stopping. */
  stopping(): void {
    this.#thread.postMessage('stopping' satisfies WatchdogRequest);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#thread.ref();
    const ended = once(this.#thread, 'exit');
    // The thread first handles earlier messages, so that no report is lost.
    this.#thread.postMessage('close' satisfies WatchdogRequest);
    await endsWithin(ended, CLOSE_MS_MAX);
    await this.#thread.terminate();
  }
}
