// A thread that continuously requests `/livez` over one connection and reports each wait longer than a bound, with its
// start time. The separate thread keeps the fuzzer's own work from delaying it. On a busy machine both sides also wait
// for a processor; this time is subtracted where the system reports it.

import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

export interface ProbeInput {
  readonly url: string;
  readonly processId: number;
  readonly reportedMs: number;
}

export type ProbeMessage =
  | { readonly kind: 'slow'; readonly startedAt: number; readonly waitMs: number }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'end'; readonly count: number; readonly longestMs: number };

const PAUSE_MS = 5;

function ask(agent: Agent, url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(`${url}/livez`, { agent }, (incoming) => {
      incoming.resume();
      incoming.on('end', () => resolve(incoming.statusCode!));
      incoming.on('error', reject);
    }).on('error', reject);
  });
}

/** Milliseconds that this thread and the server's main thread were ready to run but waited; 0 if unknown. */
function waitedForProcessor(processId: number): number {
  let nanoseconds = 0;
  for (const place of ['thread-self', `${processId}/task/${processId}`]) {
    try {
      nanoseconds += Number(readFileSync(`/proc/${place}/schedstat`, 'utf8').split(' ')[1]);
    } catch {
      return 0;
    }
  }
  return nanoseconds / 1e6;
}

async function run({ url, processId, reportedMs }: ProbeInput): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const report = (message: ProbeMessage) => parentPort!.postMessage(message);
  let isStopped = false;
  let count = 0;
  let longestMs = 0;
  parentPort!.once('message', () => {
    isStopped = true;
  });
  while (!isStopped) {
    const startedAt = Date.now();
    const startedMs = performance.now();
    const queuedMs = waitedForProcessor(processId);
    try {
      const status = await ask(agent, url);
      if (status !== 200) report({ kind: 'failed', message: `/livez answered ${status}` });
    } catch (error) {
      report({ kind: 'failed', message: `/livez: ${(error as Error).message}` });
    }
    const wholeMs = performance.now() - startedMs;
    const waitMs = Math.max(0, wholeMs - (waitedForProcessor(processId) - queuedMs));
    count++;
    longestMs = Math.max(longestMs, waitMs);
    if (waitMs > reportedMs) report({ kind: 'slow', startedAt, waitMs });
    await sleep(PAUSE_MS);
  }
  agent.destroy();
  report({ kind: 'end', count, longestMs });
}

await run(workerData as ProbeInput);
