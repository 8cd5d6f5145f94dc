// Heavy clients on a server with little memory, and one client that sends small requests one at a time. Reports the
// replies to both, the latencies of the small requests, and the memory of the server.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { createRandom } from '../../database/harness.js';
import { createCaller, startServerProcess } from '../../support/server-process.js';
import { WAIT_MS_MAX } from '../../support/waiting.js';
import type { ClientsInput, Outcomes } from './clients.js';
import type { MemoryCgroup } from './memory-cgroup.js';

const DIMENSION = 128;
const ROW_COUNT = 50_000;
const BATCH_ROWS = 2_500;
/** Pause between two small requests. */
const PAUSE_MS = 20;
/** Interval of memory measurements. */
const MEASURE_MS = 100;

export interface OverloadOptions {
  readonly cgroup: MemoryCgroup;
  readonly clientCount: number;
  /** Minimum duration; it is extended until a heavy request was answered, which takes longer on a busy machine. */
  readonly durationMs: number;
  readonly seed: number;
  readonly settings?: Readonly<Record<string, string>>;
}

export interface OverloadReport {
  readonly heavy: Outcomes;
  readonly small: Outcomes;
  /** Latencies of answered small requests in milliseconds, ascending. */
  readonly smallMs: readonly number[];
  /** Peak of the server's anonymous memory in bytes. */
  readonly bytesMax: number;
  readonly killCount: number;
  /** Null while the server is running, as it must be. */
  readonly exit: string | null;
}

export async function runOverload({
  cgroup,
  clientCount,
  durationMs,
  seed,
  settings = {},
}: OverloadOptions): Promise<OverloadReport> {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'sagitta-overload-'));
  const server = await startServerProcess({
    dataDirectory,
    prefix: cgroup.prefix,
    settings: {
      SAGITTA_LOG_LEVEL: 'error',
      SAGITTA_READ_RATE_MAX: '0',
      SAGITTA_WRITE_RATE_MAX: '0',
      ...settings,
    },
  });
  const caller = createCaller(server.url, 1);
  try {
    await load(caller.call, createRandom(seed));
    const answered = new Int32Array(new SharedArrayBuffer(4));
    const input: ClientsInput = {
      url: server.url,
      clientCount,
      dimension: DIMENSION,
      seed,
      answered,
    };
    const worker = new Worker(new URL('./clients.js', import.meta.url), { workerData: input });
    let bytesMax = 0;
    const measuring = setInterval(() => {
      bytesMax = Math.max(bytesMax, cgroup.anonymousBytes);
    }, MEASURE_MS);
    const startMs = performance.now();
    const isOver = () => {
      const passedMs = performance.now() - startMs;
      if (passedMs < durationMs) return false;
      return Atomics.load(answered, 0) > 0 || passedMs > WAIT_MS_MAX;
    };
    const { outcomes: small, tookMs } = await sendSmall(caller.call, isOver, seed);
    clearInterval(measuring);
    const heavy = await stopClients(worker);
    return {
      heavy,
      small,
      smallMs: tookMs.sort((a, b) => a - b),
      bytesMax,
      killCount: cgroup.killCount,
      exit: server.exit,
    };
  } finally {
    caller.close();
    await server.kill();
    rmSync(dataDirectory, { recursive: true, force: true });
  }
}

type Call = ReturnType<typeof createCaller>['call'];

async function load(call: Call, random: () => number): Promise<void> {
  await call('POST', '/v1/collections', { id: 'c', dimension: DIMENSION, metric: 'cosine' });
  for (let from = 0; from < ROW_COUNT; from += BATCH_ROWS) {
    const vectors = Array.from({ length: BATCH_ROWS }, (_, i) => ({
      id: `v${from + i}`,
      values: Array.from({ length: DIMENSION }, () => Math.fround(random() - 0.5)),
      metadata: { n: from + i, text: `w${i % 10} ${'of text '.repeat(12)}x` },
    }));
    const reply = await call('POST', '/v1/collections/c/vectors', { vectors });
    if (reply.status !== 200) throw new Error(`loading failed: ${reply.text}`);
  }
}

async function sendSmall(
  call: Call,
  isOver: () => boolean,
  seed: number,
): Promise<{ outcomes: Outcomes; tookMs: number[] }> {
  const random = createRandom(seed);
  const id = () => `v${Math.floor(random() * ROW_COUNT)}`;
  const vector = () => Array.from({ length: DIMENSION }, () => random() - 0.5);
  const kinds: readonly (readonly [string, () => Parameters<Call>])[] = [
    ['collection', () => ['GET', '/v1/collections/c']],
    ['vector', () => ['GET', `/v1/collections/c/vectors/${id()}`]],
    ['query', () => ['POST', '/v1/collections/c/query', { vector: vector(), top_k: 10 }]],
    [
      'upsert',
      () => ['POST', '/v1/collections/c/vectors', { vectors: [{ id: id(), values: vector() }] }],
    ],
  ];
  const outcomes: Outcomes = {};
  const tookMs: number[] = [];
  while (!isOver()) {
    const [kind, make] = kinds[Math.floor(random() * kinds.length)]!;
    const startedMs = performance.now();
    const outcome = await call(...make()).then(
      ({ status }) => `${status}`,
      (error: NodeJS.ErrnoException) => `${error.code}`,
    );
    if (outcome === '200') tookMs.push(performance.now() - startedMs);
    outcomes[kind] ??= {};
    const counts = outcomes[kind];
    counts[outcome] = (counts[outcome] ?? 0) + 1;
    await sleep(PAUSE_MS);
  }
  return { outcomes, tookMs };
}

async function stopClients(worker: Worker): Promise<Outcomes> {
  const outcomes = new Promise<Outcomes>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  worker.postMessage('stop');
  return await outcomes.finally(() => worker.terminate());
}

/** What must not happen: outcomes that no client should see, and the end of the server. */
export function findFaults({ heavy, small, exit, killCount }: OverloadReport): string[] {
  const faults: string[] = [];
  if (exit !== null) faults.push(`the server ended: ${exit}`);
  if (killCount > 0)
    faults.push(`the kernel ended a process for lack of memory ${killCount} times`);
  for (const [kind, counts] of [...Object.entries(heavy), ...Object.entries(small)]) {
    for (const [outcome, count] of Object.entries(counts)) {
      if (!EXPECTED.has(outcome)) faults.push(`${kind}: ${outcome} (${count} times)`);
    }
  }
  return faults;
}

/** 504 is for a request that waited beyond its deadline. */
const EXPECTED = new Set(['200', '429', '503', '504']);
