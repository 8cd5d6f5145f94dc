// One fault after another on a cluster of three processes and three NATS servers, while clients write to all nodes and
// read from them. Afterwards all nodes must have every acknowledged write once, with its acknowledged sequence, and after
// each fault writes must resume.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../../database/harness.js';
import { quantile, roundsOf } from '../../hostile/harness/program.js';
import { FAULT_KINDS, type Fault, type FaultKind, type FaultName } from './fault-kinds.js';
import { FaultyCluster, NODES } from './faulty-cluster.js';
import { ReadinessWatch, type WrongReadiness } from './readiness-watch.js';
import { Writers } from './writers.js';

export interface NodeFaultsOptions {
  readonly faultCount: number;
  /** No fault begins later than this after the start. */
  readonly durationMs?: number;
  readonly seed: number;
  readonly kinds: readonly FaultName[];
  /** The share of faults during which a second one happens. */
  readonly pairShare: number;
  /** Concurrent writers on each node. */
  readonly writersPerNode: number;
  /** Writes acknowledged between two faults, at least. */
  readonly acknowledgedMin: number;
  /** The replication factor; null for all nodes. */
  readonly replicationFactor: number | null;
  readonly log: (line: string) => void;
}

export interface FaultOutcome extends WrongReadiness {
  /** The names of two faults that happened at the same time are joined by +. */
  readonly kind: string;
  /** The longest times without writes, or reads, from the beginning of the fault to the next one. */
  readonly withoutWritesMs: number;
  readonly withoutReadsMs: number;
}

export interface NodeFaultsReport {
  readonly faults: readonly FaultOutcome[];
  readonly acknowledged: number;
  readonly lost: number;
  readonly doubled: number;
  /** Writes repeated after a refusal or without a reply. */
  readonly repeated: number;
  readonly reads: number;
  /** Failed starts of nodes, and states that nodes replaced because the log did not reach back far enough. */
  readonly failedStarts: number;
  readonly replaced: number;
  readonly seconds: number;
  /** Other failures, and writes that were lost or doubled. */
  readonly details: readonly string[];
}

/** Writes after which everything is compared and a new collection is begun, to bound memory. */
const ROUND_FAULTS_MAX = 25;
const POLL_MS = 20;
/** The longest pause of writes after the end of a fault. */
const RESUME_MS_MAX = 300_000;

export async function runNodeFaults(options: NodeFaultsOptions): Promise<NodeFaultsReport> {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-faults-'));
  const cluster = await FaultyCluster.start(folder);
  let isRight = false;
  try {
    const report = await new Run(cluster, options).go();
    isRight = report.details.length === 0;
    return report;
  } finally {
    if (!isRight) for (const line of await cluster.describe()) options.log(line);
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Run {
  readonly #cluster: FaultyCluster;
  readonly #options: NodeFaultsOptions;
  readonly #random: () => number;
  readonly #faults: FaultOutcome[] = [];
  readonly #details: string[] = [];
  #under = 'the start';
  #acknowledged = 0;
  #lost = 0;
  #doubled = 0;
  #repeated = 0;
  #reads = 0;

  constructor(cluster: FaultyCluster, options: NodeFaultsOptions) {
    this.#cluster = cluster;
    this.#options = options;
    this.#random = createRandom(options.seed);
  }

  async go(): Promise<NodeFaultsReport> {
    const startedAtMs = performance.now();
    const { faultCount, durationMs = Infinity } = this.#options;
    const roundCount = Math.ceil(faultCount / ROUND_FAULTS_MAX);
    for (const round of roundsOf({ first: 1, count: roundCount, durationMs })) {
      const leftMs = durationMs - (performance.now() - startedAtMs);
      const count = Math.min(ROUND_FAULTS_MAX, faultCount - this.#faults.length);
      await this.#round(round, { count, durationMs: leftMs });
    }
    const { failedStartCount, replacedCount } = this.#cluster;
    return {
      faults: this.#faults,
      acknowledged: this.#acknowledged,
      lost: this.#lost,
      doubled: this.#doubled,
      repeated: this.#repeated,
      reads: this.#reads,
      failedStarts: failedStartCount,
      replaced: replacedCount,
      seconds: Math.round((performance.now() - startedAtMs) / 1_000),
      details: this.#details,
    };
  }

  async #round(
    round: number,
    faults: { readonly count: number; readonly durationMs: number },
  ): Promise<void> {
    const { log, writersPerNode, acknowledgedMin, replicationFactor } = this.#options;
    const { nodes } = this.#cluster;
    const collection = `faults-${round}`;
    const watch = new ReadinessWatch(nodes);
    const onAcknowledged = watch.acknowledged.bind(watch);
    const writing = { nodes, collection, writersPerNode, replicationFactor, onAcknowledged };
    const writers = new Writers(writing);
    try {
      await writers.createCollection();
      writers.start();
      await this.#whenAcknowledged(writers, acknowledgedMin);
      for (const _ of roundsOf(faults)) await this.#disturb(writers, watch);
      await watch.close();
      await writers.stop();
      const { acknowledged, lost, doubled, details } = await writers.compare();
      log(
        `round ${round}: ${acknowledged} writes acknowledged, ${lost} lost, ${doubled} doubled on ${NODES.length} nodes`,
      );
      this.#acknowledged += acknowledged;
      this.#lost += lost;
      this.#doubled += doubled;
      this.#repeated += writers.repeatedCount;
      this.#reads += writers.readCount;
      const wrong = [...details, ...writers.faults];
      for (const detail of wrong) log(detail);
      this.#details.push(...wrong.map((detail) => `round ${round}: ${detail}`));
      await writers.deleteCollection();
    } finally {
      await watch.close();
      writers.close();
    }
  }

  async #disturb(writers: Writers, watch: ReadinessWatch): Promise<void> {
    const { log, acknowledgedMin } = this.#options;
    const names = this.#chooseKinds();
    const name = names.join('+');
    writers.writeGap.begin();
    writers.readGap.begin();
    watch.begin();
    const faults: Fault[] = [];
    for (const each of names) {
      const fault = await FAULT_KINDS[each].begin(this.#cluster, this.#random);
      this.#cluster.disturbed.add(nameIn(fault.target));
      faults.push(fault);
      this.#under = `${name}, ${faults.map(({ target }) => target).join(' and ')}`;
    }
    // One of them may end only after the other one.
    await Promise.all(
      faults.map(async ({ target, lastsMs, undo }) => {
        this.#under += `, for ${lastsMs.toFixed(0)} ms`;
        await sleep(lastsMs);
        await undo();
        this.#cluster.disturbed.delete(nameIn(target));
      }),
    );
    await this.#restartEnded(names);
    await this.#whenAcknowledged(writers, acknowledgedMin);
    const [withoutWritesMs, withoutReadsMs] = [writers.writeGap, writers.readGap].map((gap) =>
      Math.round(gap.longestMs),
    ) as [number, number];
    const { wrong } = watch;
    this.#faults.push({ kind: name, withoutWritesMs, withoutReadsMs, ...wrong });
    log(
      `fault ${this.#faults.length}: ${this.#under}: ${withoutWritesMs} ms without acknowledged writes, ${withoutReadsMs} ms without reads, falsely ready for ${wrong.falselyReadyMs} ms, falsely not ready for ${wrong.falselyUnreadyMs} ms (${wrong.falseReasons}); ${this.#acknowledged + writers.acknowledgedCount} writes acknowledged`,
    );
  }

  /** One kind or, now and then, two that may happen at the same time. */
  #chooseKinds(): FaultName[] {
    const { kinds, pairShare } = this.#options;
    const choose = (from: readonly FaultName[]) => from[Math.floor(this.#random() * from.length)];
    const first = choose(kinds)!;
    if (this.#random() >= pairShare) return [first];
    const { part, needsWhole = false }: FaultKind = FAULT_KINDS[first];
    const second = choose(
      kinds.filter((name) => {
        const other: FaultKind = FAULT_KINDS[name];
        if (other.needsWhole === true || part === 'all' || other.part === 'all') return false;
        return part !== other.part || (part !== 'blobs' && !needsWhole);
      }),
    );
    return second === undefined ? [first] : [first, second];
  }

  /** A node may end by itself only during faults that expect it. */
  async #restartEnded(names: readonly FaultName[]): Promise<void> {
    const name = names.join('+');
    const mayEndNode = names.some((each) => {
      const kind: FaultKind = FAULT_KINDS[each];
      return kind.mayEndNode === true;
    });
    for (const node of NODES) {
      if (this.#cluster.nodes.isRunning(node)) continue;
      if (!mayEndNode) this.#details.push(`${node} ended during the fault ${name}`);
      this.#options.log(`${node} has ended during the fault ${name}`);
      await this.#cluster.startNode(node);
    }
  }

  /** Resolves when `count` more writes are acknowledged, and every node answers. */
  async #whenAcknowledged(writers: Writers, count: number): Promise<void> {
    const wanted = writers.acknowledgedCount + count;
    const deadlineMs = performance.now() + RESUME_MS_MAX;
    while (writers.acknowledgedCount < wanted) {
      if (performance.now() > deadlineMs) {
        throw new Error(
          `writes did not resume after ${this.#under}: ${wanted - writers.acknowledgedCount} of ${count} are missing ${RESUME_MS_MAX} ms later`,
        );
      }
      await sleep(POLL_MS);
    }
    await this.#cluster.nodes.whenLed();
  }
}

/** The name of the node or server with which the description of a target begins. */
function nameIn(target: string): string {
  return target.split(' ')[0]!;
}

/** Quantiles of the times without acknowledged writes, in milliseconds. */
export function resumeTimes(faults: readonly FaultOutcome[]): { p50: number; p99: number } {
  const ascending = faults.map(({ withoutWritesMs }) => withoutWritesMs).sort((a, b) => a - b);
  return { p50: quantile(ascending, 0.5), p99: quantile(ascending, 0.99) };
}
