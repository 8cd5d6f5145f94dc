// Servers in this process as nodes of clusters, which share the NATS servers.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningServer, startServer } from '../../src/main.js';
import { type Config, loadConfig } from '../../src/platform/config.js';
import { eventually } from '../support/waiting.js';
import type { NatsServers } from './nats-servers.js';

export interface NodeOptions {
  readonly nats: NatsServers;
  /** The name of the cluster. */
  readonly name: string;
  readonly node: string;
  /** Contains a folder for each node, and one for the blobs of all of them. */
  readonly folder: string;
  readonly config?: Partial<Config>;
}

export function startNode(options: NodeOptions): Promise<RunningServer> {
  return startServer(configOf(options));
}

export function configOf({ nats, name, node, folder, config = {} }: NodeOptions): Config {
  const usual = loadConfig({ env: {} });
  return {
    ...usual,
    port: 0,
    engine: 'reference',
    logLevel: 'error',
    threads: 1,
    limits: { ...usual.limits, requestMsMax: 120_000 },
    // A busy machine must not fail a test.
    clusterSilentMs: 60_000,
    ...config,
    dataDir: join(folder, node),
    cluster: nats.urls,
    clusterName: name,
    clusterNode: node,
    blobStore: config.blobStore ?? { kind: 'folder', folder: join(folder, 'blobs') },
  };
}

interface SeenCluster {
  readonly leader: string | null;
  readonly nodes: readonly { readonly name: string; readonly state: string }[];
}

async function clusterSeenAt(url: string): Promise<SeenCluster> {
  const reply = await fetch(`${url}/v1/cluster`);
  return (await reply.json()) as SeenCluster;
}

async function leaderSeenAt(url: string): Promise<string | null> {
  return (await clusterSeenAt(url)).leader;
}

/** Resolves with the leader when all nodes know it. */
export async function waitForLeader(urls: readonly string[]): Promise<string> {
  for (;;) {
    const seen = new Set(await Promise.all(urls.map(leaderSeenAt)));
    const [leader] = seen;
    if (seen.size === 1 && leader != null) return leader;
    await sleep(50);
  }
}

export class RunningCluster {
  readonly folder: string;
  readonly servers: Map<string, RunningServer>;
  readonly #options: Omit<NodeOptions, 'node' | 'folder'>;

  private constructor(
    folder: string,
    servers: Map<string, RunningServer>,
    options: Omit<NodeOptions, 'node' | 'folder'>,
  ) {
    this.folder = folder;
    this.servers = servers;
    this.#options = options;
  }

  static async start(
    options: Omit<NodeOptions, 'node' | 'folder'>,
    nodes: readonly string[] = ['n1', 'n2', 'n3'],
  ): Promise<RunningCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-cluster-'));
    const cluster = new RunningCluster(folder, new Map(), options);
    await Promise.all(nodes.map((node) => cluster.add(node)));
    await cluster.whenWritable();
    return cluster;
  }

  async add(node: string): Promise<RunningServer> {
    const server = await startNode({ ...this.#options, node, folder: this.folder });
    this.servers.set(node, server);
    return server;
  }

  async remove(node: string): Promise<void> {
    const server = this.servers.get(node);
    this.servers.delete(node);
    await server?.stop();
  }

  urlOf(node: string): string {
    return this.servers.get(node)!.url;
  }

  /** Resolves when every node knows the leader, and that exactly these nodes serve. */
  async whenWritable(): Promise<void> {
    const names = [...this.servers.keys()].sort().join();
    const urls = [...this.servers.values()].map(({ url }) => url);
    const servingOf = ({ nodes }: SeenCluster) =>
      nodes.flatMap(({ name, state }) => (state === 'serving' ? name : []));
    await eventually(`${names} serve`, async () => {
      await waitForLeader(urls);
      const seen = await Promise.all(urls.map(clusterSeenAt));
      return seen.every((each) => servingOf(each).sort().join() === names);
    });
  }

  leaderSeenBy(node: string): Promise<string | null> {
    return leaderSeenAt(this.urlOf(node));
  }

  async stop(): Promise<void> {
    for (const node of [...this.servers.keys()]) await this.remove(node);
    await rm(this.folder, { recursive: true, force: true });
  }
}
