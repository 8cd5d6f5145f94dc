// A cluster of three nodes as a system to compare with the model of a database: the leader is stopped or killed and comes
// back later, and each read goes to another node.

import type { ModelledSystem } from '../database/model.js';
import { MemoryCluster, type TestNode } from './memory-cluster.js';

const NAMES = ['n1', 'n2', 'n3'];

export async function startSystem(): Promise<ModelledSystem> {
  const cluster = await MemoryCluster.start(NAMES, { retentionMs: 60_000 });
  let leader = await cluster.leader();
  let readCount = 0;
  const replace = async (end: (node: TestNode) => Promise<void>) => {
    await end(leader);
    leader = await cluster.soleWriter();
    // Two nodes remain, and the third one catches up later.
    const absent = NAMES.find((name) => cluster.nodes.every((node) => node.name !== name))!;
    await cluster.add(absent);
  };
  return {
    clock: cluster.clock,
    now: () => leader.clock.now(),
    get database() {
      return leader.database;
    },
    async reader() {
      await cluster.settle();
      return cluster.nodes[readCount++ % cluster.nodes.length]!.database;
    },
    restart: () => replace(({ stop }) => stop()),
    crash: () => replace(({ kill }) => kill()),
    close: () => cluster.stop(),
  };
}
