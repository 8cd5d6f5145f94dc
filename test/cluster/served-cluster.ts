// The nodes of a MemoryCluster, each with a server, which reach each other over HTTP on this machine.

import type { AddressInfo } from 'node:net';
import { type Logger, silentLogger } from '../../src/common/logger.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { NodeKeys } from '../../src/platform/node-keys.js';
import { Authenticator } from '../../src/server/auth/authenticator.js';
import { RequestForwarder } from '../../src/server/cluster/request-forwarder.js';
import { type CallOptions, createService, type Reply, type Service } from '../server/harness.js';
import { MemoryCluster, type TestNode, waitFor } from './memory-cluster.js';

/** The keys that all nodes share. */
const NODE_KEYS = new NodeKeys(['known to the nodes and to nobody else'], 'served');

interface ServedNode {
  readonly node: TestNode;
  readonly service: Service;
  readonly forwarder: RequestForwarder;
}

export class ServedCluster {
  readonly cluster: MemoryCluster;
  readonly #logger: Logger;
  readonly #served = new Map<string, ServedNode>();

  private constructor(cluster: MemoryCluster, logger: Logger) {
    this.cluster = cluster;
    this.#logger = logger;
  }

  static async start(
    nodes: readonly string[],
    cluster = new MemoryCluster(),
    logger = silentLogger,
  ): Promise<ServedCluster> {
    const served = new ServedCluster(cluster, logger);
    await Promise.all(nodes.map((node) => served.add(node)));
    await served.whenServing(nodes);
    return served;
  }

  get names(): readonly string[] {
    return [...this.#served.keys()].sort();
  }

  async add(name: string): Promise<void> {
    const node = await this.cluster.add(name);
    const forwarder = new RequestForwarder({
      cluster: node.node,
      keys: NODE_KEYS,
      metrics: createMetrics(),
      logger: this.#logger,
    });
    const { database } = node;
    const authenticator = new Authenticator({ apiKeys: database.apiKeys });
    const service = await createService({ database, forwarder, authenticator });
    await service.app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = service.app.server.address() as AddressInfo;
    node.node.serve(`http://127.0.0.1:${port}`);
    this.#served.set(name, { node, service, forwarder });
  }

  /** Resolves when every node knows the leader, and that all of these serve. */
  async whenServing(names: readonly string[]): Promise<void> {
    await this.cluster.leader();
    await waitFor('nodes that know each other', () => {
      const knowsAll = ({ node }: TestNode) =>
        names.every((name) =>
          node.health.status.members.some(
            (member) =>
              member.node === name &&
              member.state === 'serving' &&
              member.url.startsWith('http://127.0.0.1:'),
          ),
        );
      return this.cluster.nodes.every(knowsAll) || undefined;
    });
  }

  call(name: string, method: string, path: string, options?: CallOptions): Promise<Reply> {
    return this.#served.get(name)!.service.call(method, `/v1${path}`, options);
  }

  /** Closes the server of a node, without telling the others. */
  async silence(name: string): Promise<void> {
    const { service } = this.#served.get(name)!;
    service.app.server.closeAllConnections();
    await service.app.close();
  }

  async kill(name: string): Promise<void> {
    const { node, service, forwarder } = this.#served.get(name)!;
    this.#served.delete(name);
    await node.kill();
    forwarder.close();
    await service.app.close();
  }

  async stop(): Promise<void> {
    for (const name of this.names) await this.kill(name);
  }
}
