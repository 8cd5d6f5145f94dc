// Conformance cases against a node of a cluster of three that does not lead at first: those about writes, or with
// SAGITTA_TEST_CLUSTER=all, which `npm run test:cluster` sets, all of them.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningServer } from '../../src/main.js';
import type { Config } from '../../src/platform/config.js';
import { describeCases } from '../conformance/describe-cases.js';
import { type Exchange, exchange } from '../conformance/exchange.js';
import { Servers } from '../conformance/servers.js';
import { WAIT_MS_MAX } from '../support/waiting.js';
import { NatsServers, natsMissing } from './nats-servers.js';
import { startNode, waitForLeader } from './running-cluster.js';

const missing = natsMissing();
const NODES = ['n1', 'n2', 'n3'];
/** On a busy machine, NATS needs seconds to create the log of a collection. */
const REQUEST_MS_MAX = 20_000;
const PAUSE_MS = 100;
const FILES = [
  '01-operations.json',
  'api-aliases.json',
  'api-conditional.json',
  'api-expiry.json',
  'api-idempotency.json',
  'api-operators.json',
];

/**
 * Repeats a request that no node could carry out, as clients do: on a busy machine, the logs may have no leader for a
 * moment. The reply says that nothing was written; the cases would notice otherwise.
 */
const exchangeAgain: Exchange = async (...given) => {
  const deadlineMs = performance.now() + WAIT_MS_MAX;
  for (;;) {
    const reply = await exchange(...given);
    const isLeaderless = reply.status === 503 && reply.text.includes('"code":"no_leader"');
    if (!isLeaderless || performance.now() > deadlineMs) return reply;
    await sleep(PAUSE_MS);
  }
};

describe('a cluster', { skip: missing ?? false }, () => {
  let nats: NatsServers;
  const folders = new Map<string, { readonly name: string; readonly folder: string }>();
  /** The node that gets the requests, by the name of the cluster. */
  const asked = new Map<string, string>();

  before(async () => {
    nats = await NatsServers.start();
  });
  after(async () => {
    await nats?.stop();
    for (const { folder } of folders.values()) await rm(folder, { recursive: true, force: true });
  });

  /**
   * The nodes of the cluster that belongs to the data directory. Requests go to a node that does not lead, and after a
   * restart to the same one, since its audit log contains the earlier requests.
   */
  async function startCluster(config: Config): Promise<RunningServer> {
    const known = folders.get(config.dataDir) ?? {
      name: `cases-${folders.size}`,
      folder: await mkdtemp(join(tmpdir(), 'sagitta-cluster-')),
    };
    folders.set(config.dataDir, known);
    const requestMsMax = Math.max(config.limits.requestMsMax, REQUEST_MS_MAX);
    const patient = { ...config, limits: { ...config.limits, requestMsMax } };
    const servers = await Promise.all(
      NODES.map((node) => startNode({ ...known, nats, node, config: patient })),
    );
    const leader = await waitForLeader(servers.map(({ url }) => url));
    const node = asked.get(known.name) ?? (leader === 'n3' ? 'n2' : 'n3');
    asked.set(known.name, node);
    return {
      ...servers[NODES.indexOf(node)]!,
      loaded: Promise.all(servers.map(({ loaded }) => loaded)).then(() => {}),
      async stop() {
        for (const server of servers) await server.stop();
      },
    };
  }

  describeCases(new Servers(startCluster, exchangeAgain), {
    isCluster: true,
    ...(process.env.SAGITTA_TEST_CLUSTER === 'all' ? {} : { files: FILES }),
  });
});
