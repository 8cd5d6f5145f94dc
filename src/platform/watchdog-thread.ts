// The thread of the watchdog. It sees whether the main thread runs, logs when it does not, answers GET /livez on a port
// of its own, and reports to systemd. It needs neither the main thread nor the pool that reads and writes files.

import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../common/errors.js';
import { formatLogLine } from './log-text.js';

export interface WatchdogData {
  /** The main thread advances the first element. */
  readonly turns: Int32Array;
  /** How often it does so. */
  readonly turnMs: number;
  /** After this long without a turn, the main thread counts as blocked. */
  readonly stillMsMax: number;
  /** The address of the liveness; null for none. */
  readonly liveness: { readonly host: string; readonly port: number } | null;
  /** Whether a service manager is to be notified, through the variable NOTIFY_SOCKET. */
  readonly isNotifying: boolean;
  /** Interval between reports to it that the main thread runs; null for none. */
  readonly notifyMs: number | null;
  /** The format of warnings; null if they are not logged. */
  readonly logFormat: 'text' | 'json' | null;
}

export type WatchdogReply =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'failed'; readonly code: string };
export type WatchdogRequest = 'ready' | 'stopping' | 'close';

const STDERR = 2;

const port = parentPort;
assert(port !== null, 'the watchdog runs in a worker thread');
const { turns, turnMs, stillMsMax, liveness, isNotifying, notifyMs, logFormat } =
  workerData as WatchdogData;

let turnsSeen = Atomics.load(turns, 0);
let turnedAtMs = performance.now();
let hasReported = false;
let hasNotifyFailed = false;

/** How long the main thread has not run; 0 if it has since the last look. */
function look(): number {
  const found = Atomics.load(turns, 0);
  const nowMs = performance.now();
  const stillMs = nowMs - turnedAtMs;
  if (found === turnsSeen) return stillMs;
  turnsSeen = found;
  turnedAtMs = nowMs;
  if (hasReported) {
    hasReported = false;
    const milliseconds = Math.round(stillMs);
    log({ milliseconds }, `the main thread runs again after ${secondsOf(stillMs)}`);
  }
  return 0;
}

function secondsOf(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function isStill(): boolean {
  return look() > stillMsMax;
}

function check(): void {
  if (!isStill() || hasReported) return;
  hasReported = true;
  const since = new Date(Date.now() - look()).toISOString();
  log(
    { since },
    `the main thread has not run since ${since} and answers no requests; it waits for a disk or computes: if sagitta_disk_silent_seconds grew before, check the disk`,
  );
}

/** Writes a warning. The log of the service is written by the main thread, which does not run. */
function log(details: object, message: string): void {
  if (logFormat === null) return;
  const line = `${JSON.stringify({ level: 40, time: Date.now(), ...details, msg: message })}\n`;
  try {
    writeSync(STDERR, logFormat === 'text' ? formatLogLine(line) : line);
  } catch {
    // The pipe is full or closed, and there is no other place to report it.
  }
}

/** Node cannot send datagrams to unix sockets, so the command of systemd does. */
function notify(state: string): void {
  if (!isNotifying) return;
  const failed = (reason: string) => {
    if (hasNotifyFailed) return;
    hasNotifyFailed = true;
    log(
      { state },
      `systemd could not be notified: ${reason}; expected the command systemd-notify in PATH and NotifyAccess=all in the unit`,
    );
  };
  const sender = spawn('systemd-notify', [state], { stdio: 'ignore' });
  sender.on('error', (error) => failed(error.message));
  sender.on('exit', (code) => {
    if (code !== 0) failed(`systemd-notify ended with ${code}`);
  });
}

function serveLiveness({ host, port: number }: NonNullable<WatchdogData['liveness']>): void {
  const server = createServer((request, response) => {
    const stillMs = look();
    const isLive = stillMs <= stillMsMax;
    const isFound = request.url === '/livez';
    const reason = `The main thread has not run for ${secondsOf(stillMs)} and answers no requests.`;
    const body = !isFound
      ? { reason: `Expected GET /livez; found ${request.method} ${request.url}.` }
      : isLive
        ? { status: 'live' }
        : { status: 'blocked', reason };
    response.writeHead(!isFound ? 404 : isLive ? 200 : 503, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  // Probes open a connection each time, and no other client has a reason to stay.
  server.maxConnections = 100;
  server.keepAliveTimeout = 1_000;
  server.headersTimeout = 5_000;
  server.on('error', (error: NodeJS.ErrnoException) => {
    send({ kind: 'failed', code: error.code ?? error.message });
  });
  server.listen({ host, port: number }, () => {
    send({ kind: 'listening', port: (server.address() as AddressInfo).port });
  });
}

function send(reply: WatchdogReply): void {
  port!.postMessage(reply);
}

setInterval(check, turnMs);
if (liveness !== null) serveLiveness(liveness);
port.on('message', (request: WatchdogRequest) => {
  if (request === 'ready') notify('READY=1');
  else if (request === 'stopping') notify('STOPPING=1');
  // Ends the thread only.
  else process.exit();
});
if (notifyMs !== null) {
  setInterval(() => {
    if (!isStill()) notify('WATCHDOG=1');
  }, notifyMs);
}
