// The kinds of faults of a cluster. Each fault begins immediately, lasts for a while, and is undone. It affects one node or
// one server unless its name says otherwise.

import { setTimeout as sleep } from 'node:timers/promises';
import { findFaketime } from '../../hostile/checker/service.js';
import { type FaultyCluster, NODES, natsName, SERVERS } from './faulty-cluster.js';
import { BLOBS_HOST, type Machine } from './machines.js';

/** A fault in progress. */
export interface Fault {
  readonly target: string;
  /** The duration of the fault. */
  readonly lastsMs: number;
  undo(): Promise<void> | void;
}

export interface FaultKind {
  /** What the fault needs besides processes. */
  readonly needs?: 'machines' | 'faketime';
  /** Whether a node may end by itself during the fault. */
  readonly mayEndNode?: boolean;
  begin(cluster: FaultyCluster, random: () => number): Promise<Fault> | Fault;
}

const CLOCK_OFFSET_S = 600;
const POLL_MS = 50;

export const FAULT_KINDS = {
  'kill-node': {
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      await cluster.nodes.kill(node);
      return { target: node, lastsMs: 2_000 * random(), undo: () => cluster.startNode(node) };
    },
  },
  'halt-node': {
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      cluster.nodes.signal(node, 'SIGSTOP');
      const undo = () => cluster.nodes.signal(node, 'SIGCONT');
      return { target: node, lastsMs: 200 + 4_000 * random(), undo };
    },
  },
  'kill-nats': {
    async begin({ nats }, random) {
      const server = chooseServer(random);
      await nats.kill(server);
      const undo = () => nats.restart(server);
      return { target: natsName(server), lastsMs: 3_000 * random(), undo };
    },
  },
  'halt-nats': {
    begin({ nats }, random) {
      const server = chooseServer(random);
      nats.signal(server, 'SIGSTOP');
      const undo = () => nats.signal(server, 'SIGCONT');
      return { target: natsName(server), lastsMs: 500 + 5_000 * random(), undo };
    },
  },
  /** Halts the leader until another node leads; it then goes on as if it still led. */
  'two-leaders': {
    async begin({ nodes }) {
      const leader = await nodes.whenLed();
      nodes.signal(leader, 'SIGSTOP');
      const others = NODES.filter((node) => node !== leader);
      while ([leader, null].includes(await nodes.leaderSeenBy(others[0]!))) await sleep(POLL_MS);
      const undo = () => nodes.signal(leader, 'SIGCONT');
      return { target: leader, lastsMs: 0, undo };
    },
  },
  /** Kills all processes at once. */
  'kill-all': {
    async begin(cluster, random) {
      const { nodes, nats } = cluster;
      await Promise.all([nodes.killAll(), ...SERVERS.map((server) => nats.kill(server))]);
      const undo = async () => {
        for (const server of SERVERS) await nats.restart(server);
        await Promise.all(NODES.map((node) => cluster.startNode(node)));
      };
      return { target: 'all nodes and NATS servers', lastsMs: 500 * random(), undo };
    },
  },
  'lose-node': {
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      await cluster.nodes.kill(node);
      await cluster.nodes.removeData(node);
      return { target: node, lastsMs: 1_000 * random(), undo: () => cluster.startNode(node) };
    },
  },
  'lose-nats': { begin: (cluster, random) => loseData(cluster, random) },
  /** Deletes the streams of a server, but not its record of votes. */
  'lose-streams': { begin: (cluster, random) => loseData(cluster, random, /./) },
  clock: {
    needs: 'faketime',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      const offset = random() < 0.5 ? `+${CLOCK_OFFSET_S}` : `-${CLOCK_OFFSET_S}`;
      await cluster.nodes.kill(node);
      // Ends with the next start of the server.
      const settings = { LD_PRELOAD: findFaketime()!, FAKETIME: offset, DONT_FAKE_MONOTONIC: '1' };
      const undo = () => cluster.startNode(node, settings);
      return { target: `${node} by ${offset} s`, lastsMs: 0, undo };
    },
  },
  'cut-node-from-nats': {
    needs: 'machines',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      return cut(cluster, random, node, bothWays(cluster, node, SERVERS.map(natsName)));
    },
  },
  'cut-node-from-nodes': {
    needs: 'machines',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      return cut(cluster, random, node, bothWays(cluster, node, othersThan(node)));
    },
  },
  /** Drops the packets that it sends, but not those that it receives. */
  'cut-node-outgoing': {
    needs: 'machines',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      const others = [...othersThan(node), ...SERVERS.map(natsName)];
      return cut(cluster, random, node, oneWay(cluster, node, others));
    },
  },
  'cut-node-incoming': {
    needs: 'machines',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      const others = [...othersThan(node), ...SERVERS.map(natsName)];
      const links = others.flatMap((other) => oneWay(cluster, other, [node]));
      return cut(cluster, random, node, links);
    },
  },
  /** Cuts a server off from the other servers; nodes reach it. */
  'cut-nats': {
    needs: 'machines',
    begin(cluster, random) {
      const server = chooseServer(random);
      const others = SERVERS.filter((other) => other !== server).map(natsName);
      const name = natsName(server);
      return cut(cluster, random, name, bothWays(cluster, name, others));
    },
  },
  'cut-nats-outgoing': {
    needs: 'machines',
    begin(cluster, random) {
      const server = chooseServer(random);
      const others = SERVERS.filter((other) => other !== server).map(natsName);
      const name = natsName(server);
      return cut(cluster, random, name, oneWay(cluster, name, others));
    },
  },
  'cut-node-from-blobs': {
    needs: 'machines',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      return cut(cluster, random, node, [[cluster.machineOf(node), BLOBS_HOST]]);
    },
  },
  'halt-blobs': {
    begin({ blobs }, random) {
      blobs.halt();
      return { target: 'the bucket', lastsMs: 500 + 4_000 * random(), undo: () => blobs.resume() };
    },
  },
  'fill-node': {
    needs: 'machines',
    mayEndNode: true,
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      const disk = cluster.diskOf(node);
      disk.fill();
      return { target: node, lastsMs: 500 + 3_000 * random(), undo: () => disk.empty() };
    },
  },
  'fill-nats': {
    needs: 'machines',
    begin(cluster, random) {
      const server = chooseServer(random);
      const disk = cluster.diskOf(natsName(server));
      disk.fill();
      const undo = async () => {
        disk.empty();
        // A server without space does not try again by itself.
        await cluster.nats.restart(server);
      };
      return { target: natsName(server), lastsMs: 500 + 3_000 * random(), undo };
    },
  },
} as const satisfies Record<string, FaultKind>;

export type FaultName = keyof typeof FAULT_KINDS;

export const FAULT_NAMES = Object.keys(FAULT_KINDS) as readonly FaultName[];

/** Which packets are lost, by sender and address. */
type Link = readonly [from: Machine, host: string];

function oneWay(cluster: FaultyCluster, from: string, to: readonly string[]): Link[] {
  return to.map((name) => [cluster.machineOf(from), cluster.machineOf(name).host]);
}

function bothWays(cluster: FaultyCluster, one: string, others: readonly string[]): Link[] {
  return [
    ...oneWay(cluster, one, others),
    ...others.flatMap((other) => oneWay(cluster, other, [one])),
  ];
}

function cut(
  { machines }: FaultyCluster,
  random: () => number,
  target: string,
  links: readonly Link[],
): Fault {
  for (const [from, host] of links) machines!.cut(from, host);
  const undo = () => {
    for (const [from, host] of links) machines!.heal(from, host);
  };
  return { target, lastsMs: 500 + 6_000 * random(), undo };
}

/** Waits until the others have everything, since a majority of the servers must have it afterwards. */
async function loseData(
  cluster: FaultyCluster,
  random: () => number,
  stream?: RegExp,
): Promise<Fault> {
  const { nats } = cluster;
  const server = chooseServer(random);
  await cluster.whenInSync();
  await nats.kill(server);
  nats.removeData(server, stream);
  const undo = async () => {
    await nats.restart(server);
    await cluster.whenInSync();
  };
  return { target: natsName(server), lastsMs: 1_000 * random(), undo };
}

/** A random node, the leader most often, since the others matter less. */
async function chooseNode({ nodes }: FaultyCluster, random: () => number): Promise<string> {
  const any = NODES[Math.floor(random() * NODES.length)]!;
  return random() < 0.4 ? await nodes.whenLed() : any;
}

function chooseServer(random: () => number): number {
  return SERVERS[Math.floor(random() * SERVERS.length)]!;
}

function othersThan(node: string): string[] {
  return NODES.filter((other) => other !== node);
}
