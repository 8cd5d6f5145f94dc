// One simulation: a cluster starts, clients work while faults come and go, and in the end everything must have recovered
// and agree with what the clients were told. The seed determines all of it.

import { collectGarbageSoon } from '../../../src/common/garbage.js';
import { checkReads, checkWrites } from './checks.js';
import { Clients } from './clients.js';
import { Dice } from './dice.js';
import { causeFaults, endAllFaults } from './faults.js';
import { EMPTY, isOfCatalogue } from './node-api.js';
import { Scheduler } from './scheduler.js';
import { SimulatedCluster } from './simulated-cluster.js';
import type { RunningNode } from './simulated-node.js';
import { Truth } from './truth.js';
import { replaceGlobals } from './virtual-globals.js';

const START_MS_MAX = 60_000;
const WORK_MS_MIN = 10_000;
const WORK_MS_MAX = 40_000;
/** How long requests that are under way when the faults end may take. */
const REST_MS_MAX = 60_000;
/** How long the cluster may take to recover after all faults have ended. */
const RECOVERY_MS_MAX = 90_000;
const POLL_MS = 250;

export interface Simulated {
  readonly seed: number;
  readonly failures: readonly string[];
  readonly digest: string;
  readonly trace: readonly string[];
  readonly virtualMs: number;
  readonly eventCount: number;
  readonly writes: number;
  readonly acknowledged: number;
  readonly unknown: number;
  readonly reads: number;
}

export async function simulate(seed: number): Promise<Simulated> {
  const dice = new Dice(`${seed}`);
  const scheduler = new Scheduler(dice);
  occupyGarbageCollection();
  const restore = replaceGlobals(scheduler);
  try {
    return await new Simulation(seed, scheduler).run();
  } finally {
    restore();
  }
}

/**
 * Leaves a collection of garbage scheduled on a clock that stands still. Otherwise the first simulation in a thread would
 * schedule one, and the others not.
 */
function occupyGarbageCollection(): void {
  const restore = replaceGlobals(new Scheduler(new Dice('')));
  collectGarbageSoon();
  restore();
}

class Simulation {
  readonly #seed: number;
  readonly #dice: Dice;
  readonly #scheduler: Scheduler;
  readonly #cluster: SimulatedCluster;
  readonly #collections = ['everywhere', 'placed'];
  readonly #clients: Clients;

  constructor(seed: number, scheduler: Scheduler) {
    this.#seed = seed;
    this.#scheduler = scheduler;
    this.#dice = scheduler.dice.for('shape');
    this.#cluster = new SimulatedCluster(scheduler, {
      nodes: 2 + this.#dice.below(3),
      snapshotBytes: this.#dice.pick([8_000, 40_000, 1_000_000]),
      replaceMs: this.#dice.pick([8_000, 600_000]),
    });
    this.#clients = new Clients(this.#cluster, this.#collections);
  }

  async run(): Promise<Simulated> {
    const scheduler = this.#scheduler;
    const onRejection = (error: unknown) =>
      this.#cluster.fail(`nothing handled ${(error as Error)?.stack ?? error}`);
    scheduler.onUnhandled = onRejection;
    process.on('unhandledRejection', onRejection);
    try {
      let isOver = false;
      scheduler.after(0, scheduler.world, 'plan', () => {
        this.#plan()
          .catch((error: unknown) => this.#cluster.fail(`${(error as Error).stack}`))
          .finally(() => {
            isOver = true;
          });
      });
      await scheduler.runUntil(() => isOver, Number.POSITIVE_INFINITY);
    } finally {
      process.off('unhandledRejection', onRejection);
    }
    const { writes, reads } = this.#clients;
    const count = (kind: string) => writes.filter(({ outcome }) => outcome.kind === kind).length;
    return {
      seed: this.#seed,
      failures: this.#cluster.failures,
      digest: scheduler.digest,
      trace: this.#cluster.trace.lines,
      virtualMs: scheduler.nowMs,
      eventCount: scheduler.eventCount,
      writes: writes.length,
      acknowledged: count('acknowledged'),
      unknown: count('unknown'),
      reads: reads.length,
    };
  }

  async #plan(): Promise<void> {
    const scheduler = this.#scheduler;
    const cluster = this.#cluster;
    if (!(await this.#createCollections())) return;
    this.#clients.start(3 + this.#dice.below(4));
    const endMs = scheduler.nowMs + this.#dice.between(WORK_MS_MIN, WORK_MS_MAX);
    const faultsAtOnce = this.#dice.pick([1, 1, 2, 2, 3]);
    const faults = Array.from({ length: faultsAtOnce }, (_, i) => {
      const dice = this.#dice.for(`faults ${i}`);
      return causeFaults({ cluster, dice, collections: this.#collections }, endMs);
    });
    await Promise.all(faults);
    endAllFaults(cluster);
    this.#clients.stop();
    await this.#until('answers to all requests', () => this.#clients.areDone, REST_MS_MAX);
    if (!(await this.#recover('after the faults'))) return;
    await this.#check();
    // What the stores contain must be enough, too.
    for (const node of cluster.nodes) await node.kill();
    for (const node of cluster.nodes) node.start();
    if (await this.#recover('after a restart')) await this.#check();
  }

  /** Retries like a client, since the first attempts come while the cluster starts. */
  async #createCollections(): Promise<boolean> {
    const { cluster } = { cluster: this.#cluster };
    const create = (id: string, replicationFactor: number | null) => {
      let isCreated = false;
      const attempt = async ({ node, database }: RunningNode) => {
        const end = node.beginWrite(null);
        try {
          await database.createCollection(
            { ...EMPTY, id, ...(replicationFactor !== null && { replicationFactor }) },
            { ifNotExists: true },
          );
          isCreated = true;
        } finally {
          end();
        }
      };
      return async () => {
        if (!isCreated) cluster.atLeader('create', attempt);
        return isCreated;
      };
    };
    const all = await this.#until('the first collection', create('everywhere', null), START_MS_MAX);
    return all && (await this.#until('the second collection', create('placed', 2), START_MS_MAX));
  }

  /** Every node must serve, carry out a write, and hold what the others do. */
  async #recover(when: string): Promise<boolean> {
    const cluster = this.#cluster;
    const startedAtMs = this.#scheduler.nowMs;
    const left = () => startedAtMs + RECOVERY_MS_MAX - this.#scheduler.nowMs;
    const areServing = () => cluster.nodes.every(({ running }) => running !== null);
    if (!(await this.#until(`all nodes serve ${when}`, areServing, left()))) return false;
    for (const { name } of cluster.nodes) {
      for (const collection of this.#collections) this.#clients.probe(name, collection);
    }
    const areWritten = () => this.#clients.areDone;
    if (!(await this.#until(`writes through all nodes ${when}`, areWritten, left()))) return false;
    const areEqual = () => this.#findDifference() === null;
    if (await this.#until(`all nodes are equal ${when}`, areEqual, left())) return true;
    const difference = this.#findDifference();
    if (difference !== null) cluster.fail(difference);
    return false;
  }

  /** Null when all nodes hold the same. */
  #findDifference(): string | null {
    const { nodes, serving } = this.#cluster;
    if (serving.length < nodes.length) return 'not all nodes serve';
    const names = serving.map(({ database }) => [...database.incarnations].sort().join());
    if (new Set(names).size > 1) return `the collections differ: ${names.join(' | ')}`;
    const all = serving[0]!.database.listCollections({ limit: 1_000 }).collections;
    for (const { id } of all) {
      let isHeld = false;
      const sequences = new Map<number, string>();
      for (const { name, node, database } of serving) {
        const incarnation = database.incarnationOf(id);
        if (incarnation === undefined) return `${name} does not know ${id}`;
        const isHolder = node.placementOf(incarnation)?.nodes.includes(name) ?? true;
        if (database.holds(id) !== isHolder) return `${name} should hold ${id}: ${isHolder}`;
        if (!isHolder) continue;
        isHeld = true;
        const { status, sequence } = database.collection(id).record();
        if (status !== 'ready') return `${id} is ${status} on ${name}`;
        sequences.set(sequence, name);
      }
      if (!isHeld) return `no node holds ${id}`;
      if (sequences.size > 1) {
        return `${id} ends at ${[...sequences].map(([at, name]) => `${at} on ${name}`).join(', ')}`;
      }
    }
    return null;
  }

  async #check(): Promise<void> {
    const cluster = this.#cluster;
    const fail = (what: string) => cluster.fail(what);
    const first = cluster.serving[0];
    if (first === undefined) return;
    for (const id of this.#collections) {
      const incarnation = first.database.incarnationOf(id);
      const stream =
        incarnation === undefined ? undefined : cluster.servers.streams.get(incarnation);
      if (stream === undefined) {
        fail(`the log of ${id} is gone`);
        continue;
      }
      const truth = await Truth.read(stream, cluster.files, (what) => fail(`${id}: ${what}`));
      const isHere = ({ collection }: { collection: string }) => collection === id;
      const writes = this.#clients.writes.filter(
        ({ write }) => isHere(write) && !isOfCatalogue(write),
      );
      const reads = this.#clients.reads.filter(({ read }) => isHere(read));
      checkWrites(truth, writes, (what) => fail(`${id}: ${what}`));
      checkReads(truth, { reads, writes }, (what) => fail(`${id}: ${what}`));
      await this.#checkNodes(id, truth);
    }
    this.#checkCatalogue();
  }

  /** The rows on every node are those of the log. */
  async #checkNodes(id: string, truth: Truth): Promise<void> {
    for (const { name, node, database } of this.#cluster.serving) {
      // A node to which it is being moved may be loading it.
      const isHolder = node.placementOf(truth.incarnation)?.nodes.includes(name) ?? true;
      if (!isHolder || !database.holds(id)) continue;
      const handle = database.collection(id);
      const { sequence } = handle.record();
      const listing = handle.list({ limit: 1_000, includeMetadata: true });
      let found: Awaited<typeof listing> | null = null;
      void listing.then((reply) => {
        found = reply;
      });
      await this.#until(`a list of ${id} on ${name}`, () => found !== null, REST_MS_MAX);
      const { vectors } = await listing;
      const shown = vectors.map(({ id: key, metadata }) => `${key} ${metadata}`).sort();
      const expected = [...truth.at(truth.sequence).values()].map(
        ({ id: key, marker }) => `${key} ${JSON.stringify({ marker })}`,
      );
      if (shown.join() !== expected.sort().join() || sequence !== truth.sequence) {
        this.#cluster.fail(
          `${id} on ${name} at ${sequence} differs from the log at ${truth.sequence}: ${shown.join()} instead of ${expected.join()}`,
        );
      }
    }
  }

  /** Every node has the aliases and collections that clients were told they had created, and no others. */
  #checkCatalogue(): void {
    const changes = this.#clients.writes.filter(({ write }) => isOfCatalogue(write));
    const drops = new Map(
      changes.flatMap((record) =>
        record.write.kind === 'drop' ? [[record.write.key, record] as const] : [],
      ),
    );
    for (const { write, outcome } of changes) {
      if (write.kind === 'drop' || outcome.kind === 'unknown') continue;
      const drop = drops.get(write.key)?.outcome;
      if (drop?.kind === 'unknown') continue;
      const isExpected = outcome.kind === 'acknowledged' && drop?.kind !== 'acknowledged';
      for (const { name, database } of this.#cluster.serving) {
        const isThere = database.incarnationOf(write.key) !== undefined;
        if (isThere === isExpected) continue;
        const answers = `${outcome.kind}${drop === undefined ? '' : `, drop ${drop.kind}`}`;
        this.#cluster.fail(`${write.kind} ${write.key}: ${answers}; ${name} has it: ${isThere}`);
      }
    }
  }

  async #until(
    what: string,
    isSo: () => boolean | Promise<boolean>,
    msMax: number,
  ): Promise<boolean> {
    const deadlineMs = this.#scheduler.nowMs + msMax;
    while (!(await isSo())) {
      if (this.#scheduler.nowMs >= deadlineMs) {
        this.#cluster.fail(`not within ${Math.round(msMax / 1_000)} s: ${what}`);
        return false;
      }
      await new Promise<void>((resolve) =>
        this.#scheduler.after(POLL_MS, this.#scheduler.world, 'poll', resolve),
      );
    }
    return true;
  }
}
