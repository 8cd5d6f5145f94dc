// Nodes do not start on NATS servers that may lose what they acknowledge. The monitoring ports of real servers are read,
// and made-up answers are checked.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { JetStreamStream } from '../../src/cluster/service/jetstream-stream.js';
import {
  durabilityOf,
  findProblems,
  type MonitorAnswer,
  NatsDurability,
} from '../../src/cluster/service/nats-durability.js';
import { API_LEVEL_MIN } from '../../src/cluster/service/nats-service.js';
import { silentLogger } from '../../src/common/logger.js';
import type { Config } from '../../src/platform/config.js';
import { eventually } from '../support/waiting.js';
import { NatsServers, natsMissing } from './nats-servers.js';
import { startNode } from './running-cluster.js';

const missing = natsMissing();

function open(monitors: readonly string[] | null, replicas: number) {
  return NatsDurability.open({
    monitors,
    replicas,
    apiLevelMin: API_LEVEL_MIN,
    connectedServerId: () => undefined,
    logger: silentLogger,
  });
}

/** The reply to `GET /cluster` of a node that starts on the servers and stops again. */
async function clusterOf(nats: NatsServers, config: Partial<Config>) {
  const folder = await mkdtemp(join(tmpdir(), 'sagitta-durability-'));
  try {
    const server = await startNode({ nats, name: 'durability', node: 'n1', folder, config });
    try {
      const reply = await fetch(`${server.url}/v1/cluster`);
      return (await reply.json()) as { durability: { state: string; detail: string } };
    } finally {
      await server.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

describe('a node on real NATS servers', { skip: missing ?? false }, () => {
  it('starts if all of them sync every message, also while one is down', async () => {
    const nats = await NatsServers.start();
    try {
      const { monitors } = nats;
      const find = async () => (await clusterOf(nats, { clusterMonitors: monitors })).durability;
      let durability!: Awaited<ReturnType<typeof find>>;
      await eventually('replies of all ports', async () => {
        durability = await find();
        return !durability.detail.includes('could not be checked');
      });
      assert.equal(durability.state, 'verified', durability.detail);
      assert.match(durability.detail, /^n0 \(.*, n1 \(.*, n2 \(.*; each log has 3 replicas\.$/);
      await nats.kill(2);
      const partly = await open(monitors, 3);
      partly.close();
      assert.equal(partly.current.state, 'unverified');
      assert.match(
        partly.current.detail,
        new RegExp(`^${monitors[2]} could not be checked: .*ECONNREFUSED`),
      );
      await nats.kill(1);
      await assert.rejects(open(monitors, 3), {
        code: 'no_leader',
        message: /1 of 3 monitoring ports in SAGITTA_CLUSTER_MONITORS answered; expected most/,
      });
    } finally {
      await nats.stop();
    }
  });

  it('does not start if one of them does not sync every message', async () => {
    const nats = await NatsServers.start(3, { isSyncAlways: (index) => index !== 1 });
    try {
      await assert.rejects(clusterOf(nats, { clusterMonitors: nats.monitors }), ({ message }) => {
        assert.match(message, /^The NATS servers may lose what they acknowledge/);
        assert.match(
          message,
          /n1 \(http:.*\) syncs messages every 120 seconds; expected sync_interval: always/,
        );
        assert.doesNotMatch(message, /n0|n2/);
        return true;
      });
      const { durability } = await clusterOf(nats, {});
      assert.equal(durability.state, 'unverified');
      assert.match(durability.detail, /Set SAGITTA_CLUSTER_MONITORS/);
    } finally {
      await nats.stop();
    }
  });

  it('does not start with fewer servers or replicas than it needs', async () => {
    const nats = await NatsServers.start(1);
    try {
      await assert.rejects(open(nats.monitors, 3), {
        code: 'configuration_invalid',
        message: /n0 \(.*\) is one of 1 servers of its JetStream cluster; expected at least 3/,
      });
      const config = { clusterMonitors: nats.monitors, clusterReplicas: 1 };
      const { durability } = await clusterOf(nats, config);
      assert.equal(durability.state, 'insufficient');
      assert.match(durability.detail, /^Each log has 1 replica \(SAGITTA_CLUSTER_REPLICAS\)/);
      // A log of another cluster, whose name has the same prefix, does not count.
      const connection = await nats.connect();
      const other = new JetStreamStream(connection, 'durability-2-catalogue');
      await other.create({ replicas: 1, messageBytesMax: 1_000_000 });
      await connection.close();
      await assert.rejects(clusterOf(nats, { clusterReplicas: 3 }), {
        code: 'configuration_invalid',
        message:
          /^The log durability-catalogue in JetStream: found 1 replicas, expected 3 \(SAGITTA_CLUSTER_REPLICAS\)\. Add them with: nats stream edit durability-catalogue --replicas 3\.$/,
      });
    } finally {
      await nats.stop();
    }
  });
});

describe('what monitoring ports show', () => {
  const shown = (index: number, change: object = {}): MonitorAnswer => ({
    kind: 'shown',
    url: `http://nats-${index}:8222`,
    variables: {
      server_id: `id-${index}`,
      server_name: `nats-${index}`,
      version: '2.15.1',
      jetstream: {
        config: { sync_always: true, sync_interval: 120e9 },
        stats: { api: { level: 5 } },
        meta: { cluster_size: 3 },
        ...change,
      },
    },
  });
  const requirements = { replicas: 3, apiLevelMin: 2, connectedServerId: 'id-1' };

  it('is enough if every server is named once, syncs always and is new enough', () => {
    assert.deepEqual(findProblems([shown(0), shown(1), shown(2)], requirements), []);
  });

  it('is not enough for one server under two names, for servers that are not named, and for others', () => {
    const [twice] = findProblems([shown(0), shown(1), shown(1)], requirements);
    assert.match(twice!, /are the same server \(nats-1\)/);
    const [more] = findProblems(
      [0, 1, 2].map((index) => shown(index, { meta: { cluster_size: 5 } })),
      requirements,
    );
    assert.match(more!, /has 5 servers, any of which may hold a log, but .* names 3/);
    const elsewhere = { ...requirements, connectedServerId: 'id-7' };
    const [others] = findProblems([shown(0), shown(1), shown(2)], elsewhere);
    assert.match(others!, /connected to the server id-7 .* is not among/);
    // The server may be the one that does not answer.
    const silent = { kind: 'silent', url: 'http://nats-2:8222', reason: 'down' } as const;
    assert.deepEqual(findProblems([shown(0), shown(1), silent], elsewhere), []);
  });

  it('does not count a member that is gone among the servers that must be named, and says what to do', async () => {
    const gone = { name: 'nats-2', current: false, active: 90e9 };
    const meta = { cluster_size: 4, leader: 'nats-0', replicas: [gone] };
    const answers = [shown(0, { meta }), shown(1, { meta }), shown(3, { meta })];
    assert.deepEqual(findProblems(answers, requirements), []);
    const { state, detail } = durabilityOf(answers, requirements);
    assert.equal(state, 'unverified');
    assert.match(detail, /nats-2 is silent.*sagitta cluster nats --remove "nats-2"/);
    // It may just be starting again.
    const late = { ...meta, replicas: [{ ...gone, active: 9e9 }] };
    const [named] = findProblems([shown(0, { meta: late }), shown(1), shown(3)], requirements);
    assert.match(named!, /has 4 servers/);
  });

  it('is not enough for servers without JetStream or with an old one', () => {
    const old = shown(1, { stats: { api: { level: 1 } } });
    const none = shown(2, { config: undefined });
    const problems = findProblems([shown(0), old, none], requirements);
    assert.equal(problems.length, 2);
    assert.match(problems[0]!, /nats-1 .* API level 1; expected 2 or later/);
    assert.match(problems[1]!, /nats-2 .* has no JetStream/);
  });
});
