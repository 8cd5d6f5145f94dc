// Sends valid and damaged requests made from the OpenAPI document to a real server, from several clients at once.
// Checks every reply, the latency of `/livez`, the log, and the memory afterwards.

import { Worker } from 'node:worker_threads';
import { OPERATIONS_OF_CLUSTERS } from '../../server/openapi-document.js';
import { ReplyCheck } from './check.js';
import { type ApiDocument, loadDocument, type Operation } from './document.js';
import { type Draft, DraftMaker, encodeDraft } from './drafts.js';
import { describeExchange, type Fault, Faults, shrink } from './faults.js';
import { mutateDraft } from './mutations.js';
import type { ProbeInput, ProbeMessage } from './probe.js';
import { Random } from './random.js';
import { type FuzzedServer, type Memory, startFuzzedServer } from './server.js';
import { Connection, ConnectionLost, type WireReply, type WireRequest } from './wire.js';
import { World } from './world.js';

export interface FuzzOptions {
  readonly seed: number;
  readonly clientCount: number;
  readonly durationMs: number;
  /** Minimum number of requests, within ten times the duration, since a busy machine processes few; 0 by default. */
  readonly requestsMin?: number;
  /** How often memory without collections is measured during this time. */
  readonly rounds: number;
  /** How long clients work before memory is first measured; 0 disables the measurement. */
  readonly warmUpMs: number;
  /** Waits of `/livez` beyond this are reported with the requests of that time. */
  readonly probeMs: number;
}

/** Counts of statuses by operation. */
export type Coverage = ReadonlyMap<string, ReadonlyMap<number, number>>;

export interface FuzzReport {
  readonly requestCount: number;
  readonly faults: readonly Fault[];
  readonly coverage: Coverage;
  readonly probe: { readonly count: number; readonly longestMs: number };
  /** Each with the requests in flight. */
  readonly slowProbes: readonly string[];
  /** Memory without collections, after the warm-up and after each round. */
  readonly memory: readonly Memory[];
}

/** Share of damaged requests. */
const DAMAGED_SHARE = 0.45;

export async function runFuzz(options: FuzzOptions): Promise<FuzzReport> {
  const server = await startFuzzedServer();
  try {
    const run = new Run(loadDocument(), server, options);
    await run.tour();
    const memory: Memory[] = [];
    const measure = async () => {
      if (options.warmUpMs === 0 || server.exit !== null) return;
      await run.empty();
      memory.push(await server.memory());
    };
    if (options.warmUpMs > 0) await run.work(options.warmUpMs);
    await measure();
    const probe = startProbe(
      { url: server.url, processId: server.processId, reportedMs: options.probeMs },
      run,
    );
    for (let round = 0; round < options.rounds && server.exit === null; round++) {
      await run.work(options.durationMs / options.rounds);
      await measure();
    }
    const probed = await probe.stop();
    run.checkServer();
    return {
      requestCount: run.requestCount,
      faults: run.faults.all,
      coverage: run.coverage,
      probe: probed,
      slowProbes: run.slowProbes,
      memory,
    };
  } finally {
    await server.close();
  }
}

interface InFlight {
  readonly line: string;
  readonly startedAt: number;
  endedAt: number;
}

/** Requests that others depend on. */
const FIRST_REQUESTS = [
  ['createCollection', 6],
  ['writeVectors', 25],
  ['putAlias', 6],
] as const;
/** Attempts per operation to get a success and a refusal. */
const ATTEMPTS_MAX = 60;

/** Finished requests kept to explain slow probes. */
const KEPT_MAX = 2_000;

class Run {
  readonly #document: ApiDocument;
  readonly #server: FuzzedServer;
  readonly #options: FuzzOptions;
  readonly #check: ReplyCheck;
  #world = new World();
  #round = 0;
  #recent: InFlight[] = [];
  readonly faults = new Faults();
  readonly coverage = new Map<string, Map<number, number>>();
  readonly slowProbes: string[] = [];
  requestCount = 0;

  constructor(document: ApiDocument, server: FuzzedServer, options: FuzzOptions) {
    this.#document = document;
    this.#server = server;
    this.#options = options;
    this.#check = new ReplyCheck(document);
    for (const { id } of document.operations) this.coverage.set(id, new Map());
  }

  /**
   * One client: requests to each operation until one succeeded and one was refused, for a limited number of attempts.
   */
  async tour(): Promise<void> {
    const random = new Random(this.#options.seed);
    const maker = new DraftMaker(this.#document, this.#world, random);
    const connection = new Connection(this.#server.url);
    const has = (id: string, isWanted: (status: number) => boolean) =>
      [...this.coverage.get(id)!.keys()].some(isWanted);
    for (const [wanted, count] of FIRST_REQUESTS) {
      const operation = this.#document.operations.find(({ id }) => id === wanted)!;
      for (let i = 0; i < count; i++) {
        await this.#sendDraft(connection, maker.makeFor(operation), false, random);
      }
    }
    // Deletions come last, so that they find what the others created.
    const isDeletion = ({ method }: Operation) => Number(method === 'DELETE');
    const operations = [...this.#document.operations].sort((a, b) => isDeletion(a) - isDeletion(b));
    for (const operation of operations) {
      for (const isDamaged of [false, true]) {
        if (!isDamaged && OPERATIONS_OF_CLUSTERS.has(operation.id)) continue;
        const isWanted = isDamaged ? (status: number) => status >= 400 : isSuccess;
        for (let attempt = 0; attempt < ATTEMPTS_MAX && !has(operation.id, isWanted); attempt++) {
          await this.#sendDraft(connection, maker.makeFor(operation), isDamaged, random);
        }
      }
    }
    connection.close();
  }

  /** Runs all clients for this time, or until the server has ended. */
  async work(durationMs: number): Promise<void> {
    const { seed, clientCount, requestsMin = 0 } = this.#options;
    const startMs = performance.now();
    const isOver = () => {
      const tookMs = performance.now() - startMs;
      const isEnough = this.requestCount >= requestsMin || tookMs > 10 * durationMs;
      return (tookMs > durationMs && isEnough) || this.#server.exit !== null;
    };
    this.#round++;
    const clients = Array.from({ length: clientCount }, async (_, index) => {
      const random = new Random(seed + this.#round * 1_000 + index);
      const maker = new DraftMaker(this.#document, this.#world, random);
      const connection = new Connection(this.#server.url);
      while (!isOver()) await this.#sendOne(connection, maker, random);
      connection.close();
    });
    await Promise.all(clients);
  }

  async empty(): Promise<void> {
    this.#world = new World();
    if (this.#server.exit === null) await this.#server.empty();
  }

  checkServer(): void {
    const { exit } = this.#server;
    if (exit !== null) this.faults.add('server', `it ended: ${exit}`, () => '');
    for (const line of this.#server.alarms()) this.faults.add('log', line, () => line);
  }

  addSlowProbe(startedAt: number, waitMs: number): void {
    const meanwhile = this.#recent
      .filter((request) => request.startedAt < startedAt + waitMs && request.endedAt > startedAt)
      .map(({ line }) => line);
    this.slowProbes.push(`${waitMs.toFixed(0)} ms beside ${meanwhile.join(', ')}`);
  }

  async #sendOne(connection: Connection, maker: DraftMaker, random: Random): Promise<void> {
    await this.#sendDraft(connection, maker.make(), random.chance(DAMAGED_SHARE), random);
  }

  async #sendDraft(connection: Connection, draft: Draft, isDamaged: boolean, random: Random) {
    if (isDamaged) mutateDraft(draft, random, this.#world);
    const request = encodeDraft(draft, this.#server.authorization);
    const operationId = draft.operation.id;
    const inFlight: InFlight = {
      line: `${request.method} ${request.target.slice(0, 80)} (${request.body?.length ?? 0} bytes)`,
      startedAt: Date.now(),
      endedAt: Number.POSITIVE_INFINITY,
    };
    this.#recent.push(inFlight);
    if (this.#recent.length > KEPT_MAX) this.#recent = this.#recent.slice(-KEPT_MAX / 2);
    this.requestCount++;
    try {
      const reply = await connection.send(request);
      if (reply !== null) await this.#take(connection, draft, request, reply);
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      connection.close();
      const example = () => describeExchange(this.#server.url, request, null);
      this.#report(operationId, error.message, example);
    } finally {
      inFlight.endedAt = Date.now();
    }
  }

  async #take(connection: Connection, draft: Draft, request: WireRequest, reply: WireReply) {
    const operationId = draft.operation.id;
    const { complaints, json, isUnread } = this.#check.check(request, reply);
    if (!isUnread && draft.method === draft.operation.method && draft.rawPath === null) {
      const counts = this.coverage.get(operationId)!;
      counts.set(reply.status, (counts.get(reply.status) ?? 0) + 1);
      const { pathValues, json: body } = draft;
      const { etag } = reply.headers;
      this.#world.learn({ operationId, pathValues, body }, { status: reply.status, json, etag });
    }
    // A wrong reply breaks several rules; the first one names the fault.
    const [complaint, ...others] = complaints;
    if (complaint === undefined) return;
    const example = () =>
      [describeExchange(this.#server.url, request, reply), ...others].join('\n  ');
    if (this.#report(operationId, complaint, example)) {
      await this.#shrink(connection, operationId, request, complaint);
    }
  }

  async #shrink(connection: Connection, id: string, request: WireRequest, complaint: string) {
    const isSame = (candidate: WireRequest, reply: WireReply) =>
      this.#check.check(candidate, reply).complaints.includes(complaint);
    const smaller = await shrink(connection, request, isSame);
    if (smaller === null) console.log(`  ${id}: it does not happen again with the same request`);
    else console.log(`  shrunk: ${describeExchange(this.#server.url, smaller, null)}`);
  }

  #report(operationId: string, complaint: string, example: () => string): boolean {
    const isNew = this.faults.add(operationId, complaint, example);
    if (isNew) {
      console.log(
        `fault, seed ${this.#options.seed}: ${operationId}: ${complaint}\n  ${example()}`,
      );
    }
    return isNew;
  }
}

function startProbe(input: ProbeInput, run: Run) {
  const worker = new Worker(new URL('./probe.js', import.meta.url), { workerData: input });
  const ended = new Promise<{ count: number; longestMs: number }>((resolve, reject) => {
    worker.once('error', reject);
    worker.on('message', (message: ProbeMessage) => {
      if (message.kind === 'slow') run.addSlowProbe(message.startedAt, message.waitMs);
      else if (message.kind === 'failed') run.faults.add('probe', message.message, () => '');
      else resolve(message);
    });
  });
  return {
    async stop() {
      worker.postMessage('stop');
      return await ended.finally(() => worker.terminate());
    },
  };
}

function isSuccess(status: number): boolean {
  return status === 200 || status === 304;
}

/** Operations without a success in the run, although one was possible, or without a refusal. */
export function findGaps(coverage: Coverage): string[] {
  return [...coverage].flatMap(([id, counts]) => {
    const statuses = [...counts.keys()];
    const gaps: string[] = [];
    if (!OPERATIONS_OF_CLUSTERS.has(id) && !statuses.some(isSuccess))
      gaps.push(`${id}: no success`);
    if (!statuses.some((status) => status >= 400)) gaps.push(`${id}: no refusal`);
    return gaps;
  });
}

export function describeFault({ operationId, complaint, count }: Fault): string {
  return `${operationId}: ${complaint} (${count} times)`;
}

/** For `console.table`: operations by status. */
export function tableOf(coverage: Coverage): Record<string, Record<number, number>> {
  return Object.fromEntries(
    [...coverage].map(([id, counts]) => [id, Object.fromEntries([...counts].sort())]),
  );
}
