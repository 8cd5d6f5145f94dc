// A cluster of three processes on three NATS servers as the service that the checker of histories tests: clients send
// to all nodes, while nodes and NATS servers are killed and halted, and disks of nodes are lost.

import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClusterSession } from '../../../packages/client/src/session.js';
import {
  type Attempt,
  type Call,
  Connections,
  type Sender,
} from '../../hostile/checker/attempt.js';
import {
  addMaintenance,
  createMarks,
  type Disturbance,
  type Marks,
  type ServiceOptions,
  settingsOf,
  type TestedService,
} from '../../hostile/checker/service.js';
import { halt, startOrKill } from '../../hostile/harness/disturbances.js';
import type { NatsServers } from '../nats-servers.js';
import { isRepeated, NodeProcesses } from '../node-processes.js';

const NODES = ['n1', 'n2', 'n3'];
const SERVERS = 3;
/** Longer than a take-over, so that a waiting client sees its end. */
const WAIT_MS_MAX = 8_000;
const LIFE_MS_MAX = 20_000;
/** Longer than the silence after which another node takes over. */
const HALT_MS_MAX = 5_000;
const DOWN_MS_MAX = 2_000;
/** The frequency of each fault, per second of load. */
const PER_SECOND = 0.3;
const DISKS_LOST_PER_SECOND = 0.1;
/** Several snapshots in a run of half a minute. */
const SNAPSHOT_BYTES = 500_000;

export interface ClusterMarks extends Marks {
  nodeKills: number;
  nodeHalts: number;
  disksLost: number;
  natsKills: number;
  natsHalts: number;
  /** All nodes and servers killed at once. */
  powerLosses: number;
  /** The number of changes of the leader. */
  leaderChanges: number;
}

export class ClusterService implements TestedService {
  readonly marks: ClusterMarks = {
    ...createMarks(),
    nodeKills: 0,
    nodeHalts: 0,
    disksLost: 0,
    natsKills: 0,
    natsHalts: 0,
    powerLosses: 0,
    leaderChanges: 0,
  };
  readonly lifeMsMax = LIFE_MS_MAX;
  readonly lifeActions = { min: 300, max: 3_000 };
  readonly disturbances: readonly Disturbance[];
  readonly #servers: NatsServers;
  readonly #nodes: NodeProcesses;
  readonly #random: () => number;
  #sender: NodeSender | null = null;
  #leader = '';

  constructor(servers: NatsServers, options: ServiceOptions) {
    const { directory, random, faults } = options;
    this.#servers = servers;
    this.#random = random;
    this.#nodes = new NodeProcesses({
      names: NODES,
      folder: directory,
      settings: {
        ...settingsOf(options),
        SAGITTA_THREADS: '1',
        SAGITTA_ENGINE: 'reference',
        SAGITTA_CLUSTER: servers.urls.join(','),
        SAGITTA_CLUSTER_SECRET: 'known-to-the-nodes-under-test-only',
        // The servers and nodes share a network of this machine.
        SAGITTA_CLUSTER_INSECURE: 'yes',
        // Several runs can use the same servers.
        SAGITTA_CLUSTER_NAME: `checker-${process.pid}`,
        SAGITTA_CLUSTER_SNAPSHOT_BYTES: String(SNAPSHOT_BYTES),
        SAGITTA_BLOBS: join(directory, 'blobs'),
      },
    });
    const perSecond = PER_SECOND;
    this.disturbances = [
      ...(faults.has('kill')
        ? [
            { perSecond, happen: () => this.#killNode() },
            { perSecond, happen: () => this.#killServer() },
            { perSecond: DISKS_LOST_PER_SECOND, happen: () => this.#loseDisk() },
          ]
        : []),
      ...(faults.has('stop')
        ? [
            { perSecond, happen: () => this.#haltNode() },
            { perSecond, happen: () => this.#haltServer() },
          ]
        : []),
    ];
  }

  /** Kills and halts of nodes and servers, one at a time, under load. */
  get faultCount(): number {
    const { nodeKills, nodeHalts, disksLost, natsKills, natsHalts } = this.marks;
    return nodeKills + nodeHalts + disksLost + natsKills + natsHalts;
  }

  async start(mayKill: boolean): Promise<Sender> {
    await Promise.all(NODES.map((node) => this.#start(node, mayKill && this.#random() < 0.1)));
    await this.#noteLeader();
    this.#sender = new NodeSender(this.#nodes, this.#random);
    return this.#sender;
  }

  async #start(node: string, isKilled: boolean): Promise<void> {
    if (isKilled) {
      try {
        const started = await startOrKill(2_500 * this.#random(), async (onSpawned) => {
          await this.#nodes.start(node, { onSpawned });
          return true;
        });
        if (started !== null) return;
        this.marks.killsWhileStarting++;
      } catch (error) {
        // The node may also end by itself while the NATS servers elect a leader.
        if (!isRepeated(error)) throw error;
      }
    }
    await this.#nodes.startUntilReady(node);
  }

  /** Kills all nodes, and sometimes all NATS servers. */
  async kill(): Promise<void> {
    this.marks.kills++;
    await this.#nodes.killAll();
    if (this.#random() < 0.3) {
      for (let server = 0; server < SERVERS; server++) await this.#servers.kill(server);
      for (let server = 0; server < SERVERS; server++) await this.#servers.restart(server);
      this.marks.powerLosses++;
    }
    this.#forget();
  }

  async stop(): Promise<void> {
    this.marks.stops++;
    await Promise.all(NODES.map((node) => this.#nodes.stop(node)));
    this.#forget();
  }

  async close(): Promise<void> {
    await this.#nodes.killAll();
    this.#forget();
  }

  async noteMaintenance(): Promise<void> {
    await this.#noteLeader();
    for (const node of NODES) {
      const { reply } = await this.#sender!.send({ method: 'GET', path: '/metrics', node });
      if (reply?.status === 200) addMaintenance(this.marks, reply.text);
    }
  }

  #forget(): void {
    this.#sender?.close();
    this.#sender = null;
  }

  async #noteLeader(): Promise<void> {
    const leader = await this.#nodes.whenLed();
    if (leader !== this.#leader && this.#leader !== '') this.marks.leaderChanges++;
    this.#leader = leader;
  }

  #node(): string {
    return NODES[Math.floor(this.#random() * NODES.length)]!;
  }

  #server(): number {
    return Math.floor(this.#random() * SERVERS);
  }

  async #killNode(): Promise<void> {
    this.marks.nodeKills++;
    const node = this.#node();
    await this.#nodes.kill(node);
    await sleep(DOWN_MS_MAX * this.#random());
    await this.#nodes.startUntilReady(node);
    await this.#noteLeader();
  }

  /** Removes the data of a node, which then loads the newest snapshots. */
  async #loseDisk(): Promise<void> {
    this.marks.disksLost++;
    const node = this.#node();
    await this.#nodes.kill(node);
    await this.#nodes.removeData(node);
    await this.#nodes.startUntilReady(node);
    await this.#noteLeader();
  }

  async #haltNode(): Promise<void> {
    this.marks.nodeHalts++;
    const node = this.#node();
    await halt((signal) => this.#nodes.signal(node, signal), HALT_MS_MAX * this.#random());
  }

  async #killServer(): Promise<void> {
    this.marks.natsKills++;
    const server = this.#server();
    await this.#servers.kill(server);
    await sleep(DOWN_MS_MAX * this.#random());
    await this.#servers.restart(server);
  }

  async #haltServer(): Promise<void> {
    this.marks.natsHalts++;
    const server = this.#server();
    await halt((signal) => this.#servers.signal(server, signal), HALT_MS_MAX * this.#random());
  }
}

/**
 * Sends each request to any node, with strong consistency or with the session of all replies so far, which are the same
 * for a client that sends all requests, or with neither.
 */
class NodeSender implements Sender {
  readonly nodes = NODES;
  readonly #processes: NodeProcesses;
  readonly #random: () => number;
  readonly #session = new ClusterSession();
  /** By URL, which is different after each start of a node. */
  readonly #connections = new Map<string, Connections>();

  constructor(processes: NodeProcesses, random: () => number) {
    this.#processes = processes;
    this.#random = random;
  }

  async send(call: Call): Promise<Attempt> {
    const node = call.node ?? NODES[Math.floor(this.#random() * NODES.length)]!;
    const isStrong = call.isStrong ?? this.#random() < 0.3;
    const hasSession = !isStrong && this.#random() < 0.5;
    const url = this.#processes.urlOf(node)!;
    let connections = this.#connections.get(url);
    if (connections === undefined) {
      connections = new Connections(url, WAIT_MS_MAX, (headers) => this.#note(headers));
      this.#connections.set(url, connections);
    }
    const headers = {
      ...call.headers,
      ...(isStrong && { 'sagitta-consistency': 'strong' }),
      ...(hasSession && this.#session.headers),
    };
    const attempt = await connections.send({ ...call, headers });
    return { ...attempt, node, mayLag: !isStrong && !hasSession };
  }

  #note({ 'sagitta-session': session }: IncomingHttpHeaders): void {
    if (session !== undefined)
      this.#session.record(new Headers({ 'sagitta-session': `${session}` }));
  }

  close(): void {
    for (const connections of this.#connections.values()) connections.close();
  }
}
