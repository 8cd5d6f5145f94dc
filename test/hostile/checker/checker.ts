// Many clients use few ids while the service is killed and paused and its clock jumps; then everything that they were
// told is checked against a model. A run is divided into rounds with separate collections, to bound its memory.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../../database/harness.js';
import type { Call, Sender } from './attempt.js';
import { checkHistory } from './check.js';
import { Client, DIMENSION, rowsOfLines } from './client.js';
import type { Walk } from './cursor-walks.js';
import type { Dump, Fault } from './history.js';
import type { Metric } from './model.js';
import type { ReadRow } from './reads.js';
import { type Counters, createCounters, isInFlight, parse, Recorder } from './recorder.js';
import {
  type FaultName,
  type Marks,
  Service,
  type ServiceOptions,
  type TestedService,
} from './service.js';
import { sendStream } from './streams.js';

export interface CheckerOptions {
  readonly clientCount: number;
  readonly durationMs: number;
  readonly seed: number;
  readonly faults: ReadonlySet<FaultName>;
  /**
   * Retention of snapshots and cursors: if it is short, compactions remove rows during the run; if it is long, walks
   * continue after restarts.
   */
  readonly retentionMs: number;
  /** By default, a single process. */
  readonly createService?: (options: ServiceOptions) => TestedService;
  /** The run continues until this returns true, for at most ten times the requested duration on a busy machine. */
  readonly isEnough?: (report: Pick<CheckerReport, 'counters' | 'marks'>) => boolean;
  /** Called after each round and for each fault. */
  readonly log?: (line: string) => void;
}

export interface CheckerReport {
  readonly faults: readonly (Fault & { readonly round: number; readonly collection: string })[];
  readonly counters: Counters;
  readonly marks: Marks;
  readonly rounds: number;
}

const COLLECTIONS: readonly (readonly [metric: Metric, hasStreams: boolean])[] = [
  ['cosine', true],
  ['euclidean', false],
  ['dot', true],
];
/** After this time, the history is checked and discarded. */
const ROUND_MS_MAX = 60_000;
const POLL_MS = 10;
/** Share of lives with a fault: cursors do not outlive clock jumps. */
const FAULT_SHARE = 0.5;
const RETRY_MS = 20;
/** Attempts at requests that must be answered, for over a minute. */
const RETRIES_MAX = 3_000;

export async function runChecker(options: CheckerOptions): Promise<CheckerReport> {
  const { seed, durationMs, faults, retentionMs, isEnough = () => true } = options;
  const { createService = (given: ServiceOptions) => new Service(given) } = options;
  const directory = mkdtempSync(join(tmpdir(), 'sagitta-checker-'));
  const random = createRandom(seed);
  const service = createService({ directory, random, faults, retentionMs });
  const counters = createCounters();
  const found: CheckerReport['faults'][number][] = [];
  const startedAt = performance.now();
  const isOver = () => {
    const tookMs = performance.now() - startedAt;
    if (tookMs < durationMs) return false;
    return isEnough({ counters, marks: service.marks }) || tookMs > 10 * durationMs;
  };
  let rounds = 0;
  try {
    while (!isOver()) {
      const round = new Round({ ...options, service, counters, random, number: ++rounds });
      const endAt = performance.now() + ROUND_MS_MAX;
      await round.run(() => isOver() || performance.now() > endAt);
      for (const { history } of round.recorders) {
        for (const fault of checkHistory(history)) {
          found.push({ ...fault, round: rounds, collection: history.collection });
          options.log?.(
            `fault in round ${rounds}, ${history.collection}: ${fault.kind}: ${fault.detail}`,
          );
        }
      }
      options.log?.(
        `round ${rounds}: ${counters.writes} writes, ${counters.unknownWrites} of them unknown, ${counters.reads} reads, ${service.marks.kills} kills, ${found.length} faults`,
      );
    }
  } finally {
    await service.close();
    rmSync(directory, { recursive: true, force: true });
  }
  return { faults: found, counters, marks: service.marks, rounds };
}

class Round {
  readonly recorders: readonly Recorder[];
  readonly #service: TestedService;
  readonly #random: () => number;
  readonly #faults: ReadonlySet<FaultName>;
  readonly #clients: readonly Client[];
  #sender!: Sender;
  #isUnderLoad = false;

  constructor(
    options: CheckerOptions & {
      readonly service: TestedService;
      readonly counters: Counters;
      readonly random: () => number;
      readonly number: number;
    },
  ) {
    const { service, counters, random, number, faults, clientCount, seed, retentionMs } = options;
    this.#service = service;
    this.#random = random;
    this.#faults = faults;
    this.recorders = COLLECTIONS.map(
      ([metric], i) => new Recorder(`r${number}${'abc'[i]}`, metric, counters),
    );
    const walks: Walk[][] = this.recorders.map(() => []);
    // A clock jump may expire any snapshot.
    const mayExpire = (ageMs: number) => faults.has('clock') || ageMs > 0.9 * retentionMs;
    this.#clients = Array.from({ length: clientCount }, (_, i) => {
      const at = i % this.recorders.length;
      return new Client({
        recorder: this.recorders[at]!,
        random: createRandom(seed + 1_000 * number + i),
        walks: walks[at]!,
        mayExpire,
        hasStreams: COLLECTIONS[at]![1],
      });
    });
  }

  async run(isOver: () => boolean): Promise<void> {
    await this.#start();
    for (const recorder of this.recorders) await this.#create(recorder);
    do {
      await this.#load(isOver);
      await this.#start();
      await this.#dumpAll();
      await this.#answerAll();
    } while (!isOver());
    // Repeated requests have taken effect since.
    await this.#dumpAll();
    for (const { path } of this.recorders) await this.#require({ method: 'DELETE', path });
    await this.#service.stop();
  }

  async #start(): Promise<void> {
    this.#sender = await this.#service.start(this.#faults.has('kill'));
    for (const recorder of this.recorders) recorder.connect(this.#sender);
  }

  async #create({ collection, path, history }: Recorder): Promise<void> {
    await this.#require({
      method: 'POST',
      path: '/v1/collections',
      headers: { 'content-type': 'application/json', 'idempotency-key': collection },
      body: JSON.stringify({ id: collection, dimension: DIMENSION, metric: history.metric }),
    });
    for (const node of this.#sender.nodes) {
      await this.#require({ method: 'GET', path, node, isStrong: true });
    }
  }

  /** Runs all clients until the service ends. */
  async #load(isRoundOver: () => boolean): Promise<void> {
    const endAt = performance.now() + this.#service.lifeMsMax;
    const { min, max } = this.#service.lifeActions;
    let actionsLeft = min + (max - min) * this.#random();
    this.#isUnderLoad = true;
    const clients = this.#clients.map(async (client) => {
      while (this.#isUnderLoad) {
        await client.act();
        actionsLeft--;
      }
    });
    const disturbing = this.#disturb(
      () => actionsLeft <= 0 || performance.now() > endAt || isRoundOver(),
    );
    await Promise.race([disturbing, Promise.all(clients)]);
    await disturbing;
    await this.#service.noteMaintenance();
    if (this.#faults.has('kill')) {
      const killing = this.#service.kill();
      this.#isUnderLoad = false;
      await killing;
    } else {
      this.#isUnderLoad = false;
      await this.#service.stop();
    }
    await Promise.all(clients);
    for (const recorder of this.recorders) recorder.settle(performance.now());
  }

  async #disturb(isOver: () => boolean): Promise<void> {
    const disturbances = this.#service.disturbances.filter(() => this.#random() < FAULT_SHARE);
    let at = performance.now();
    while (!isOver()) {
      await sleep(POLL_MS);
      const seconds = (performance.now() - at) / 1_000;
      at = performance.now();
      for (const { perSecond, happen } of disturbances) {
        if (this.#random() < perSecond * seconds) await happen();
      }
    }
  }

  async #dumpAll(): Promise<void> {
    for (const recorder of this.recorders) {
      const { nodes } = this.#sender;
      const [first, ...others] = nodes.length === 0 ? [undefined] : nodes;
      const dump = await this.#dump(recorder, first);
      for (const node of others) {
        const other = await this.#dump(recorder, node);
        const [a, b] = [dump, other].map(({ sequence, rows }) =>
          JSON.stringify({ sequence, rows }),
        );
        if (a === b) continue;
        const detail = `${dump.title}: ${first} has ${a}, but ${node} has ${b}`;
        recorder.fault('different node', detail);
      }
      recorder.history.dumps.push({ ...dump, at: performance.now() });
    }
  }

  async #dump({ path, history, life }: Recorder, node: string | undefined): Promise<Dump> {
    const title = `the dump of life ${life}`;
    const asked = { isStrong: true, ...(node === undefined ? {} : { node }) };
    const exported = await this.#require({
      ...asked,
      method: 'GET',
      path: `${path}/export?format=ndjson`,
    });
    const rows = rowsOfLines(exported.text);
    const fetched =
      rows.length === 0
        ? []
        : ((
            parse(
              (
                await this.#require({
                  ...asked,
                  method: 'POST',
                  path: `${path}/vectors/fetch`,
                  headers: { 'content-type': 'application/json' },
                  body: JSON.stringify({ ids: rows.map(({ id }) => id), include_sequence: true }),
                })
              ).text,
            ) as { vectors: ReadRow[] }
          ).vectors as readonly ReadRow[]);
    const record = parse((await this.#require({ ...asked, method: 'GET', path })).text);
    const sequence = Number(exported.headers['sagitta-sequence']);
    if (record.sequence !== sequence || record.vector_count !== rows.length) {
      const detail = `${title}: ${rows.length} rows at sequence ${sequence}, but the collection says ${record.vector_count} at ${record.sequence}`;
      history.faults.push({ kind: 'unexplained read', detail });
    }
    return {
      title,
      at: performance.now(),
      sequence,
      rows: rows.map(({ id, values, metadata }, i) => {
        const same = fetched[i];
        if (same?.id !== id || JSON.stringify(same.metadata) !== JSON.stringify(metadata)) {
          const detail = `${title}: "${id}" is ${JSON.stringify(metadata)} in the export and ${JSON.stringify(same)} when fetched`;
          history.faults.push({ kind: 'unexplained read', detail });
        }
        return { id, values: values!, metadata: metadata!, sequence: same?.sequence ?? 0 };
      }),
    };
  }

  /** Repeats all requests without a reply; the service may be killed meanwhile. */
  async #answerAll(): Promise<void> {
    const mayKill = this.#faults.has('kill') && this.#random() < 0.4;
    const answering = this.recorders.map((recorder) =>
      answerAll(recorder, mayKill ? 1 : RETRIES_MAX),
    );
    if (mayKill) {
      await sleep(30 * this.#random());
      await this.#service.kill();
      await Promise.all(answering);
      await this.#start();
      await Promise.all(this.recorders.map((recorder) => answerAll(recorder, RETRIES_MAX)));
    } else {
      await Promise.all(answering);
    }
  }

  async #require(call: Call) {
    for (let attempt = 0; attempt < RETRIES_MAX; attempt++) {
      const { reply } = await this.#sender.send(call);
      // An earlier attempt to delete may have taken effect without a reply.
      const isGone = call.method === 'DELETE' && reply?.status === 404 && attempt > 0;
      if (reply?.status === 200 || isGone) return reply!;
      if (reply !== null && reply.status < 500 && !isInFlight(reply))
        throw new Error(`${call.method} ${call.path}: ${reply.status} ${reply.text}`);
      await sleep(RETRY_MS);
    }
    throw new Error(`${call.method} ${call.path}: no reply`);
  }
}

/** Throws if a request is not answered after this many attempts, unless a single attempt is allowed. */
async function answerAll(recorder: Recorder, attemptsMax: number): Promise<void> {
  const { unanswered, openStreams, collection } = recorder;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    await Promise.all([
      ...[...unanswered].map((keyed) => recorder.resend(keyed)),
      ...[...openStreams].map((stream) => sendStream(recorder, stream, 'whole', 1)),
    ]);
    if (unanswered.size === 0 && openStreams.size === 0) return;
    if (attemptsMax > 1) await sleep(RETRY_MS);
  }
  if (attemptsMax === 1) return;
  throw new Error(
    `${collection}: ${unanswered.size} writes and ${openStreams.size} streams remain without a reply; the last exchange was ${recorder.lastExchange}`,
  );
}
