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
  /** What it affects: at the same time, another fault may affect something else, or another of the same kind. */
  readonly part: 'node' | 'nats' | 'blobs' | 'all';
  /** Whether it begins only when all NATS servers and nodes are up, and needs most of each. */
  readonly needsWhole?: boolean;
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
    part: 'node',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      await cluster.nodes.kill(node);
      return { target: node, lastsMs: 2_000 * random(), undo: () => cluster.startNode(node) };
    },
  },
  'halt-node': {
    part: 'node',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      cluster.nodes.signal(node, 'SIGSTOP');
      const undo = () => cluster.nodes.signal(node, 'SIGCONT');
      return { target: node, lastsMs: 200 + 4_000 * random(), undo };
    },
  },
  'kill-nats': {
    part: 'nats',
    async begin(cluster, random) {
      const { nats } = cluster;
      const server = chooseServer(cluster, random);
      await nats.kill(server);
      const undo = () => nats.restart(server);
      return { target: natsName(server), lastsMs: 3_000 * random(), undo };
    },
  },
  'halt-nats': {
    part: 'nats',
    begin(cluster, random) {
      const { nats } = cluster;
      const server = chooseServer(cluster, random);
      nats.signal(server, 'SIGSTOP');
      const undo = () => nats.signal(server, 'SIGCONT');
      return { target: natsName(server), lastsMs: 500 + 5_000 * random(), undo };
    },
  },
  /** Halts the leader until another node leads; it then goes on as if it still led. */
  'two-leaders': {
    part: 'node',
    needsWhole: true,
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
    part: 'all',
    needsWhole: true,
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
    part: 'node',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      await cluster.nodes.kill(node);
      await cluster.nodes.removeData(node);
      return { target: node, lastsMs: 1_000 * random(), undo: () => cluster.startNode(node) };
    },
  },
  'lose-nats': {
    part: 'nats',
    needsWhole: true,
    begin: (cluster, random) => loseData(cluster, random),
  },
  /** Deletes the streams of a server, but not its record of votes. */
  'lose-streams': {
    part: 'nats',
    needsWhole: true,
    begin: (cluster, random) => loseData(cluster, random, /./),
  },
  /** Replaces a server and its disk by an empty one with another name, and removes it from the JetStream cluster. */
  'replace-nats': {
    part: 'nats',
    needsWhole: true,
    async begin(cluster, random) {
      const server = await chooseCurrentServer(cluster, random);
      const gone = await cluster.nats.replace(server);
      const undo = () => cluster.removeServer(gone);
      return { target: natsName(server), lastsMs: 2_000 * random(), undo };
    },
  },
  clock: {
    part: 'node',
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
    part: 'node',
    needs: 'machines',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      return cut(cluster, random, node, bothWays(cluster, node, SERVERS.map(natsName)));
    },
  },
  'cut-node-from-nodes': {
    part: 'node',
    needs: 'machines',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      return cut(cluster, random, node, bothWays(cluster, node, othersThan(node)));
    },
  },
  /** Drops the packets that it sends, but not those that it receives. */
  'cut-node-outgoing': {
    part: 'node',
    needs: 'machines',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      const others = [...othersThan(node), ...SERVERS.map(natsName)];
      return cut(cluster, random, node, oneWay(cluster, node, others));
    },
  },
  'cut-node-incoming': {
    part: 'node',
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
    part: 'nats',
    needs: 'machines',
    begin(cluster, random) {
      const server = chooseServer(cluster, random);
      const others = SERVERS.filter((other) => other !== server).map(natsName);
      const name = natsName(server);
      return cut(cluster, random, name, bothWays(cluster, name, others));
    },
  },
  'cut-nats-outgoing': {
    part: 'nats',
    needs: 'machines',
    begin(cluster, random) {
      const server = chooseServer(cluster, random);
      const others = SERVERS.filter((other) => other !== server).map(natsName);
      const name = natsName(server);
      return cut(cluster, random, name, oneWay(cluster, name, others));
    },
  },
  'cut-node-from-blobs': {
    part: 'node',
    needs: 'machines',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      return cut(cluster, random, node, [[cluster.machineOf(node), BLOBS_HOST]]);
    },
  },
  'halt-blobs': {
    part: 'blobs',
    begin({ blobs }, random) {
      blobs.halt();
      return { target: 'the bucket', lastsMs: 500 + 4_000 * random(), undo: () => blobs.resume() };
    },
  },
  'fill-node': {
    part: 'node',
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
    part: 'nats',
    needs: 'machines',
    begin(cluster, random) {
      const server = chooseServer(cluster, random);
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
  'freeze-node': {
    part: 'node',
    needs: 'machines',
    async begin(cluster, random) {
      const node = await chooseNode(cluster, random);
      const disk = cluster.diskOf(node);
      disk.freeze();
      return { target: node, lastsMs: 500 + 8_000 * random(), undo: () => disk.thaw() };
    },
  },
  'freeze-nats': {
    part: 'nats',
    needs: 'machines',
    begin(cluster, random) {
      const server = chooseServer(cluster, random);
      const disk = cluster.diskOf(natsName(server));
      disk.freeze();
      return {
        target: natsName(server),
        lastsMs: 500 + 8_000 * random(),
        undo: () => disk.thaw(),
      };
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

async function loseData(
  cluster: FaultyCluster,
  random: () => number,
  stream?: RegExp,
): Promise<Fault> {
  const { nats } = cluster;
  const server = await chooseCurrentServer(cluster, random);
  await nats.kill(server);
  nats.removeData(server, stream);
  const undo = async () => {
    await nats.restart(server);
    await cluster.whenInSync();
  };
  return { target: natsName(server), lastsMs: 1_000 * random(), undo };
}

/** A server whose disk can be lost: the others have everything, since a majority of the servers must have it afterwards. */
async function chooseCurrentServer(cluster: FaultyCluster, random: () => number): Promise<number> {
  await cluster.whenInSync();
  return chooseServer(cluster, random);
}

/** A random node without a fault, the leader most often, since the others matter less. */
async function chooseNode(cluster: FaultyCluster, random: () => number): Promise<string> {
  const free = NODES.filter((node) => !cluster.disturbed.has(node));
  const any = free[Math.floor(random() * free.length)]!;
  if (random() >= 0.4) return any;
  const leader = await cluster.nodes.leaderSeenBy(any);
  return leader !== null && free.includes(leader) ? leader : any;
}

/** A random server without a fault. */
function chooseServer({ disturbed }: FaultyCluster, random: () => number): number {
  const free = SERVERS.filter((server) => !disturbed.has(natsName(server)));
  return free[Math.floor(random() * free.length)]!;
}

function othersThan(node: string): string[] {
  return NODES.filter((other) => other !== node);
}
