// The nodes of a cluster in this process, each with a database on a store in memory.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Blobs } from '../../src/cluster/blobs/blobs.js';
import { MemoryBlobs } from '../../src/cluster/blobs/memory-blobs.js';
import { SealedBlobs } from '../../src/cluster/blobs/sealed-blobs.js';
import { ClusterNode } from '../../src/cluster/nodes/cluster-node.js';
import type { ClusterTiming } from '../../src/cluster/nodes/node-parts.js';
import { SealedService } from '../../src/cluster/service/sealed-service.js';
import type { SharedService } from '../../src/cluster/service/shared-service.js';
import type { Clock } from '../../src/common/clock.js';
import type { Limits } from '../../src/common/limits.js';
import { type Logger, silentLogger } from '../../src/common/logger.js';
import { Database } from '../../src/database/database.js';
import type { Peers } from '../../src/database/search/peers.js';
import { NodeKeys } from '../../src/platform/node-keys.js';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../src/storage/memory-store.js';
import type { Store } from '../../src/storage/store.js';
import { createTestClock, openDatabase, type TestClock } from '../database/harness.js';
import { MemoryNetwork, type MemoryService } from './memory-service.js';

/** How long a test waits for what it expects, since a halted machine may be late by seconds. */
const WAIT_MS_MAX = 300_000;
/** The shape of collections in tests that are not about it. */
export const SHAPE = {
  vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
  description: null,
  labels: {},
} as const;
/** No node is silent, since the network reports which ones are gone. */
const TIMING = {
  announceMs: 10,
  silentMsMax: WAIT_MS_MAX,
  electionMs: 5,
  settleMs: 50,
  leaveMs: 50,
  // Only tests of this use a shorter time.
  balanceMs: Number.POSITIVE_INFINITY,
  planMs: 5,
  replaceMs: WAIT_MS_MAX,
};

export interface TestNode {
  readonly name: string;
  readonly service: MemoryService;
  readonly node: ClusterNode;
  readonly database: Database;
  readonly store: Store;
  readonly clock: Clock;
  /** Ends the node like a killed process: only the store stays. */
  kill(): Promise<void>;
  /** Ends the node like a process that gets SIGTERM. */
  stop(): Promise<void>;
}

/** How far the clock of a node is ahead of that of the node started before it. */
const CLOCK_SKEW_MS = 3;

interface TestOptions {
  readonly zone?: string;
  readonly peers?: Peers;
  readonly limits?: Partial<Limits>;
  /** Wraps the store of the node. */
  readonly change?: (store: Store) => Store;
  /** Wraps the shared files for the node. */
  readonly share?: (blobs: Blobs) => Blobs;
  /** Signs what the node writes to the logs, too, which is not signed without keys. */
  readonly keys?: NodeKeys;
  readonly logger?: Logger;
}

/** Keys without a secret. */
const KEYS = new NodeKeys([], 'memory');

export class MemoryCluster {
  readonly network = new MemoryNetwork();
  readonly blobs: Blobs = new MemoryBlobs();
  /** The shared files as nodes without keys see them. */
  readonly files = new SealedBlobs(this.blobs, KEYS);
  readonly clock: TestClock = createTestClock();
  readonly #states = new Map<string, MemoryState>();
  readonly #limits: Partial<Limits>;
  readonly #timing: Partial<ClusterTiming>;
  readonly #snapshotBytes: number;
  readonly #nodes = new Map<string, TestNode>();

  constructor(
    limits: Partial<Limits> = {},
    timing: Partial<ClusterTiming> = {},
    snapshotBytes = Number.POSITIVE_INFINITY,
  ) {
    this.#limits = limits;
    this.#timing = timing;
    this.#snapshotBytes = snapshotBytes;
  }

  /** `snapshotBytes`: bytes written to a log between two snapshots. */
  static async start(
    names: readonly string[],
    limits: Partial<Limits> = {},
    timing: Partial<ClusterTiming> = {},
    snapshotBytes = Number.POSITIVE_INFINITY,
  ): Promise<MemoryCluster> {
    const cluster = new MemoryCluster(limits, timing, snapshotBytes);
    await Promise.all(names.map((name) => cluster.add(name)));
    await cluster.leader();
    return cluster;
  }

  /** The stored state of a node. */
  stateOf(name: string): MemoryState {
    return this.#states.get(name)!;
  }

  find(name: string): TestNode {
    return this.#nodes.get(name)!;
  }

  get nodes(): readonly TestNode[] {
    return [...this.#nodes.values()];
  }

  /** Starts a node with its stored state. */
  async add(
    name: string,
    {
      zone = '',
      limits,
      change = (store) => store,
      share = (blobs) => blobs,
      keys,
      logger = silentLogger,
      ...databaseOptions
    }: TestOptions = {},
  ): Promise<TestNode> {
    const state = this.#states.get(name) ?? createMemoryState();
    this.#states.set(name, state);
    const store = change(createMemoryStore({ state }));
    const service = this.network.connect();
    const node = await ClusterNode.open({
      service: keys === undefined ? service : withSignedLogs(service, keys),
      node: name,
      zone,
      version: '1.0.0',
      store,
      blobs: new SealedBlobs(share(this.blobs), keys ?? KEYS),
      layout: Database.storeLayout,
      snapshotBytes: this.#snapshotBytes,
      logger,
      timing: { ...TIMING, ...this.#timing },
    });
    try {
      await node.catchUp({
        incarnationsIn: () => Database.incarnationsIn(store),
        isFounded: () => Database.secretIn(store) !== null,
        foundation: Database.foundation,
      });
    } catch (error) {
      await node.close();
      await service.close();
      throw error;
    }
    const skewMs = CLOCK_SKEW_MS * this.#nodes.size;
    const clock = { now: () => this.clock.now() + skewMs };
    const database = await openDatabase({
      ...databaseOptions,
      store,
      logs: node.logs,
      clock,
      limits: { ...this.#limits, ...limits },
    });
    await node.attach(database);
    node.serve(`http://${name}`);
    const end = async () => {
      this.#nodes.delete(name);
      await node.close();
      await database.close();
      await service.close();
    };
    const added: TestNode = {
      name,
      service,
      node,
      database,
      store,
      clock,
      kill: async () => {
        service.cutOff();
        await end();
      },
      stop: async () => {
        await node.leave(WAIT_MS_MAX);
        await end();
      },
    };
    this.#nodes.set(name, added);
    return added;
  }

  /** Waits until all connected nodes know the same leader. */
  async leader(): Promise<TestNode> {
    return await waitFor('a leader', () => {
      const connected = this.nodes.filter(({ service }) => !service.isCutOff);
      const known = new Set(connected.map(({ node }) => node.health.status.leader?.node));
      const [name] = known;
      return known.size === 1 && name !== undefined ? this.#nodes.get(name) : undefined;
    });
  }

  /** Waits until all connected nodes that hold a collection know the same owner. */
  async ownerOf(collection: string): Promise<TestNode> {
    return await waitFor(`an owner of ${collection}`, () => {
      const connected = this.nodes.filter(({ service }) => !service.isCutOff);
      const known = new Set(
        connected.flatMap(({ node, database }) => {
          const incarnation = database.incarnationOf(collection);
          if (incarnation === undefined) return [undefined];
          return node.holds(incarnation) ? [node.ownerOf(incarnation)?.node] : [];
        }),
      );
      const [name] = known;
      const owner = name === undefined ? undefined : this.#nodes.get(name);
      const isSure = owner?.node.owns(owner.database.incarnationOf(collection) ?? null) === true;
      return known.size === 1 && isSure ? owner : undefined;
    });
  }

  /** The leader, after it has taken over all collections. */
  async soleWriter(): Promise<TestNode> {
    const leader = await this.leader();
    const { collections } = leader.database.listCollections({ limit: 1_000 });
    for (const { id } of collections) await this.ownerOf(id);
    for (const incarnation of leader.database.incarnations)
      await leader.node.logs.acquire(incarnation);
    return leader;
  }

  async follower(): Promise<TestNode> {
    const leader = await this.leader();
    return this.nodes.find((node) => node !== leader)!;
  }

  /** Waits until every connected node has applied what was committed before the call. */
  async settle(): Promise<void> {
    const signal = AbortSignal.timeout(WAIT_MS_MAX);
    const connected = this.nodes.filter(({ service }) => !service.isCutOff);
    await Promise.all(connected.map(({ node }) => node.progress.whenAllCurrent(signal)));
  }

  async stop(): Promise<void> {
    for (const { kill } of this.nodes) await kill();
  }
}

/** Signs the logs, but not the announcements, some of which the network makes. */
function withSignedLogs(service: MemoryService, keys: NodeKeys): SharedService {
  const signed = new SealedService(service, keys, silentLogger);
  return {
    get state() {
      return service.state;
    },
    openStream: (name) => signed.openStream(name),
    createLog: (name, options) => signed.createLog(name, options),
    announce: (bytes) => service.announce(bytes),
    onAnnouncement: (listener) => service.onAnnouncement(listener),
    close: () => service.close(),
  };
}

/** The ids, in the order of the list that clients get. */
export async function idsIn({ database }: Pick<TestNode, 'database'>, collection = 'c') {
  const { vectors } = await database.collection(collection).list({ limit: 1_000 });
  return vectors.map(({ id }) => id);
}

export async function waitFor<Value>(
  what: string,
  find: () => Value | undefined | Promise<Value | undefined>,
): Promise<Value> {
  const deadlineMs = performance.now() + WAIT_MS_MAX;
  // Checks become rarer, since the nodes that they wait for share this process.
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs + 5, 25)) {
    const found = await find();
    if (found !== undefined) return found;
    if (performance.now() > deadlineMs) throw new Error(`${what} did not come in time`);
    await sleep(pauseMs);
  }
}
