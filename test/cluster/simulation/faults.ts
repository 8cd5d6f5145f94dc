// The faults of a simulation. Each begins, lasts for a while and ends; several may last at the same time.

import type { Dice } from './dice.js';
import { BLOBS } from './simulated-blobs.js';
import type { SimulatedCluster } from './simulated-cluster.js';
import type { SimulatedNode } from './simulated-node.js';

/** Nodes at most, with those that are added. */
const NODES_MAX = 5;
const WALL_JUMP_MS_MAX = 600_000;
const SLOW_LINK_MS_MAX = 800;
/** The longest time between two faults. */
const PAUSE_MS_MAX = 1_500;

export interface FaultContext {
  readonly cluster: SimulatedCluster;
  readonly dice: Dice;
  readonly collections: readonly string[];
}

interface FaultKind {
  readonly msMin: number;
  readonly msMax: number;
  /** Returns a description and what ends the fault, or null if it is not possible at the moment. */
  readonly begin: (context: FaultContext) => { what: string; end: () => void } | null;
}

const nothing = () => {};

function aRunningNode({ cluster, dice }: FaultContext): SimulatedNode | null {
  const running = cluster.nodes.filter(
    ({ process, isWanted }) => isWanted && process !== null && !process.isHalted,
  );
  return running.length === 0 ? null : dice.pick(running);
}

/** A fault of one node that runs. */
function ofNode(
  msMin: number,
  msMax: number,
  begin: (node: SimulatedNode, context: FaultContext) => { what: string; end: () => void },
): FaultKind {
  return {
    msMin,
    msMax,
    begin: (context) => {
      const node = aRunningNode(context);
      return node === null ? null : begin(node, context);
    },
  };
}

function cutBetween(
  name: string,
  choose: (node: SimulatedNode, context: FaultContext) => readonly (readonly [string, string])[],
): FaultKind {
  return ofNode(500, 9_000, (node, context) => {
    const links = choose(node, context);
    for (const [from, to] of links) context.cluster.network.cut(from, to);
    return {
      what: `${name} ${links.map((link) => link.join('>')).join(' ')}`,
      end: () => context.cluster.network.heal(),
    };
  });
}

const bothWays = (a: string, b: string) =>
  [
    [a, b],
    [b, a],
  ] as const;

const FAULTS: Readonly<Record<string, FaultKind>> = {
  kill: ofNode(100, 6_000, (node) => {
    void node.kill();
    return { what: `kill ${node.name}`, end: () => node.start() };
  }),
  stop: ofNode(9_000, 12_000, (node) => {
    node.stop();
    return { what: `stop ${node.name}`, end: () => node.start() };
  }),
  halt: ofNode(300, 9_000, (node, { cluster }) => {
    const process = node.process!;
    cluster.scheduler.halt(process);
    return { what: `halt ${node.name}`, end: () => cluster.scheduler.resume(process) };
  }),
  empty: ofNode(100, 3_000, (node) => {
    void node.kill().then(() => node.disk.erase());
    return { what: `empty ${node.name}`, end: () => node.start() };
  }),
  'kill-all': {
    msMin: 100,
    msMax: 2_000,
    begin: ({ cluster }) => {
      const killed = cluster.nodes.filter(({ isWanted }) => isWanted);
      for (const node of killed) void node.kill();
      return { what: 'kill all', end: () => killed.map((node) => node.start()) };
    },
  },
  'cut-nats': cutBetween('cut', ({ name }) => bothWays(name, 'nats')),
  'cut-nats-out': cutBetween('cut', ({ name }) => [[name, 'nats']]),
  'cut-nats-in': cutBetween('cut', ({ name }) => [['nats', name]]),
  'cut-nodes': cutBetween('cut', ({ name }, { cluster }) =>
    cluster.nodes
      .filter((other) => other.name !== name)
      .flatMap((other) => bothWays(name, other.name)),
  ),
  'cut-out': cutBetween('cut', ({ name }, { cluster }) =>
    ['nats', BLOBS, ...cluster.nodes.map((other) => other.name)].map(
      (other) => [name, other] as const,
    ),
  ),
  'cut-blobs': cutBetween('cut', ({ name }) => bothWays(name, BLOBS)),
  'slow-links': ofNode(1_000, 8_000, ({ name }, { cluster, dice }) => {
    cluster.network.slow(name, dice.between(10, SLOW_LINK_MS_MAX));
    return { what: `slow links of ${name}`, end: () => cluster.network.slow(name, 0) };
  }),
  'no-quorum': {
    msMin: 300,
    msMax: 9_000,
    begin: ({ cluster: { servers } }) => {
      if (!servers.hasQuorum) return null;
      servers.loseQuorum();
      return { what: 'no quorum', end: () => servers.regainQuorum() };
    },
  },
  'new-log-leaders': {
    msMin: 50,
    msMax: 4_000,
    begin: ({ cluster: { servers } }) => {
      if (!servers.hasLeader) return null;
      servers.loseLeaders();
      return { what: 'new leaders of the logs', end: () => servers.electLeaders() };
    },
  },
  'quorum-then-leaders': {
    msMin: 300,
    msMax: 6_000,
    begin: ({ cluster: { servers } }) => {
      if (!servers.hasQuorum || !servers.hasLeader) return null;
      servers.loseQuorum();
      const end = () => {
        servers.loseLeaders();
        servers.electLeaders();
        servers.regainQuorum();
      };
      return { what: 'no quorum, then new leaders', end };
    },
  },
  'slow-logs': {
    msMin: 500,
    msMax: 5_000,
    begin: ({ cluster: { servers } }) => {
      servers.setSlow(true);
      return { what: 'slow logs', end: () => servers.setSlow(false) };
    },
  },
  'rotten-logs': {
    msMin: 2_000,
    msMax: 10_000,
    begin: ({ cluster: { servers } }) => {
      servers.setRotten(true);
      return { what: 'rotten replicas of the logs', end: () => servers.setRotten(false) };
    },
  },
  clock: ofNode(1_000, 20_000, ({ name, machine }, { dice }) => {
    machine.wallOffsetMs = dice.between(-WALL_JUMP_MS_MAX, WALL_JUMP_MS_MAX);
    const what = `clock of ${name} by ${Math.round(machine.wallOffsetMs / 1_000)} s`;
    return { what, end: () => (machine.wallOffsetMs = 0) };
  }),
  'full-disk': ofNode(500, 8_000, ({ name, disk }) => {
    disk.fault = 'full';
    return { what: `full disk of ${name}`, end: () => (disk.fault = null) };
  }),
  'broken-disk': ofNode(100, 3_000, ({ name, disk }) => {
    disk.fault = 'broken';
    return { what: `broken disk of ${name}`, end: () => (disk.fault = null) };
  }),
  'slow-disk': ofNode(500, 6_000, ({ name, disk }) => {
    disk.fault = 'slow';
    return { what: `slow disk of ${name}`, end: () => (disk.fault = null) };
  }),
  blobs: {
    msMin: 1_000,
    msMax: 15_000,
    begin: ({ cluster: { blobFaults } }) => {
      blobFaults.isFailing = true;
      return { what: 'failing shared files', end: () => (blobFaults.isFailing = false) };
    },
  },
  add: {
    msMin: 0,
    msMax: 1,
    begin: ({ cluster }) => {
      if (cluster.nodes.length >= NODES_MAX) return null;
      return { what: `add ${cluster.addNode().name}`, end: nothing };
    },
  },
  drain: ofNode(3_000, 15_000, ({ name }, { cluster }) => {
    cluster.atLeader('drain', ({ node }) => node.drain(name, true));
    const end = () => cluster.atLeader('end of drain', ({ node }) => node.drain(name, false));
    return { what: `drain ${name}`, end };
  }),
  move: {
    msMin: 0,
    msMax: 3_000,
    begin: ({ cluster, collections, dice }) => {
      const collection = dice.pick(collections);
      const to = dice.pick(cluster.nodes).name;
      cluster.atLeader('move', async ({ node, database }) => {
        const incarnation = database.incarnationOf(collection);
        const from =
          incarnation === undefined ? undefined : node.placementOf(incarnation)?.nodes[0];
        if (incarnation !== undefined && from !== undefined)
          await node.move(incarnation, { from, to });
      });
      return { what: `move ${collection} to ${to}`, end: nothing };
    },
  },
};

/** Causes one fault after another until a virtual time, by which the last one ends. */
export async function causeFaults(context: FaultContext, endMs: number): Promise<void> {
  const { cluster, dice } = context;
  const { scheduler, trace } = cluster;
  const names = Object.keys(FAULTS);
  const pause = (msMin: number, msMax: number) =>
    scheduler.sleep(Math.min(dice.between(msMin, msMax), endMs - scheduler.nowMs));
  for (;;) {
    await pause(0, PAUSE_MS_MAX);
    if (scheduler.nowMs >= endMs) return;
    const { begin, msMin, msMax } = FAULTS[dice.pick(names)]!;
    const fault = begin(context);
    if (fault === null) continue;
    trace.add('fault', fault.what);
    await pause(msMin, msMax);
    fault.end();
    trace.add('fault', `end of: ${fault.what}`);
  }
}

/** Ends whatever still lasts. */
export function endAllFaults(cluster: SimulatedCluster): void {
  const { scheduler, network, servers, blobFaults, nodes, trace } = cluster;
  network.heal();
  if (!servers.hasLeader) servers.electLeaders();
  servers.regainQuorum();
  servers.setSlow(false);
  servers.setRotten(false);
  blobFaults.isFailing = false;
  for (const node of nodes) {
    node.disk.fault = null;
    if (node.process?.isHalted) scheduler.resume(node.process);
    node.start();
  }
  trace.add('fault', 'all faults have ended');
}
