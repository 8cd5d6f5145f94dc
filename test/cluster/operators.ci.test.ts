// What operators see of a cluster on real NATS servers when something is wrong: status, readiness for writes, metrics; and
// a node that starts while the servers do not answer. Nothing here depends on how long a fault takes to be noticed.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startServer } from '../../src/main.js';
import { run } from '../cli/command.js';
import { freePorts } from '../support/free-ports.js';
import { eventually } from '../support/waiting.js';
import { NatsServers, natsMissing } from './nats-servers.js';
import { configOf, RunningCluster } from './running-cluster.js';

const NODES = ['n1', 'n2', 'n3'];
const SERVERS = [0, 1, 2];

interface Problem {
  readonly code: string;
  readonly detail: string;
  readonly blocks_writes: boolean;
}

interface Readiness {
  readonly status: string;
  readonly problems: readonly Problem[];
}

async function readinessOf(url: string): Promise<{ status: number; body: Readiness }> {
  const reply = await fetch(`${url}/readyz?for=write`);
  return { status: reply.status, body: (await reply.json()) as Readiness };
}

async function post(url: string, path: string, body: object) {
  const reply = await fetch(`${url}/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: reply.status, body: (await reply.json()) as { readonly code?: string } };
}

describe('operators of a cluster', { skip: natsMissing() ?? false }, () => {
  let nats: NatsServers;
  let cluster: RunningCluster;
  let written = 0;

  before(async () => {
    nats = await NatsServers.start();
    // Silent nodes are found soon, since these tests wait for that.
    const config = { clusterSilentMs: 1_500, clusterMonitors: nats.monitors };
    cluster = await RunningCluster.start({ nats, name: 'operators', config }, NODES);
    const made = await post(cluster.urlOf('n1'), '/collections', { id: 'c', dimension: 1 });
    assert.equal(made.status, 200, JSON.stringify(made.body));
  });
  after(async () => {
    for (const server of SERVERS) nats?.signal(server, 'SIGCONT');
    await cluster?.stop();
    await nats?.stop();
  });

  const write = (node: string) =>
    post(cluster.urlOf(node), '/collections/c/vectors', {
      vectors: [{ id: `v${written++}`, values: [1] }],
    });
  const whenWritable = (nodes = NODES) =>
    eventually('all nodes are ready for writes', async () => {
      const found = await Promise.all(nodes.map((node) => readinessOf(cluster.urlOf(node))));
      return found.every(({ status }) => status === 200);
    });
  const whenBlockedBy = (code: string) =>
    eventually(`all nodes say ${code}`, async () => {
      const found = await Promise.all(NODES.map((node) => readinessOf(cluster.urlOf(node))));
      return found.every(
        ({ status, body }) => status === 503 && body.problems.some((each) => each.code === code),
      );
    });

  it('see nothing wrong, and that writes succeed', async () => {
    await whenWritable();
    const { body } = await readinessOf(cluster.urlOf('n2'));
    assert.deepEqual(
      body.problems.filter(({ code }) => code !== 'durability'),
      [],
    );
    const reply = await fetch(`${cluster.urlOf('n2')}/v1/cluster`);
    const status = (await reply.json()) as {
      is_writable: boolean;
      collections: unknown[];
      log_servers: { name: string }[];
    };
    assert.equal(status.is_writable, true);
    assert.deepEqual(status.collections, []);
    assert.deepEqual(status.log_servers.map(({ name }) => name).sort(), ['n0', 'n1', 'n2']);
    for (const node of NODES) assert.equal((await write(node)).status, 200);
  });

  it('see on every node that most NATS servers are gone, and writes get an answer', async () => {
    nats.signal(0, 'SIGSTOP');
    nats.signal(1, 'SIGSTOP');
    // A node on one of the halted servers has no connection until it finds the third one.
    await eventually('no node is ready for writes', async () => {
      const found = await Promise.all(NODES.map((node) => readinessOf(cluster.urlOf(node))));
      return found.every(
        ({ status, body }) =>
          status === 503 && body.problems.some(({ code }) => code.startsWith('nats_')),
      );
    });
    await whenBlockedBy('nats_no_quorum');
    const metrics = await (await fetch(`${cluster.urlOf('n3')}/metrics`)).text();
    assert.match(metrics, /^sagitta_write_ready 0$/m);
    assert.match(metrics, /^sagitta_problems\{code="nats_no_quorum"\} 1$/m);
    const { stdout } = await run(['cluster', 'status', '--url', cluster.urlOf('n3')]);
    assert.match(stdout, /^Writes through n3 fail or wait at the moment\.$/m);
    for (const node of NODES) {
      assert.match(stdout, new RegExp(`^${node}: nats_no_quorum for [\\d.]+ s\\. .* NATS`, 'm'));
    }
    const strong = { headers: { 'sagitta-consistency': 'strong' } };
    const [created, read, ...writes] = await Promise.all([
      post(cluster.urlOf('n1'), '/collections', { id: 'd', dimension: 1 }),
      fetch(`${cluster.urlOf('n2')}/v1/collections/c/vectors/v0`, strong),
      ...NODES.map(write),
    ]);
    assert.equal(created.status, 503, JSON.stringify(created.body));
    assert.equal(read.status, 504);
    for (const { status, body } of writes) {
      assert.ok(
        ['no_leader', 'outcome_unknown'].includes(body.code ?? ''),
        `${status} ${JSON.stringify(body)}`,
      );
    }
    // Other reads are answered from memory.
    const plain = await fetch(`${cluster.urlOf('n2')}/v1/collections/c/vectors/v0`);
    assert.equal(plain.status, 200);
    nats.signal(0, 'SIGCONT');
    nats.signal(1, 'SIGCONT');
    await whenWritable();
    await eventually('writes succeed', async () => (await write('n1')).status === 200);
  });

  it('see that a node cannot connect to another one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-unreachable-'));
    const [port] = await freePorts(1);
    // It announces an address where nobody listens.
    const unreachable = await startServer({
      ...configOf({ nats, name: 'operators', node: 'n4', folder }),
      blobStore: { kind: 'folder', folder: join(cluster.folder, 'blobs') },
      clusterUrl: `http://127.0.0.1:${port}`,
    });
    try {
      await eventually('the others say so', async () => {
        const { body } = await readinessOf(cluster.urlOf('n1'));
        return body.problems.some(
          ({ code, detail }) => code === 'peer_unreachable' && detail.includes('n4'),
        );
      });
    } finally {
      await unreachable.stop();
      await rm(folder, { recursive: true, force: true });
    }
    await whenWritable();
  });

  it('see a node that starts wait while the NATS servers do not answer', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-waiting-'));
    const [port] = await freePorts(1);
    const url = `http://127.0.0.1:${port}`;
    for (const server of SERVERS) nats.signal(server, 'SIGSTOP');
    const starting = startServer({
      ...configOf({ nats, name: 'operators', node: 'n5', folder }),
      blobStore: { kind: 'folder', folder: join(cluster.folder, 'blobs') },
      port: port!,
    });
    try {
      await eventually('it answers', () =>
        fetch(`${url}/livez`).then(
          ({ status }) => status === 200,
          () => false,
        ),
      );
      const { status, body } = await readinessOf(url);
      assert.deepEqual([status, body.status], [503, 'starting']);
      const refused = await post(url, '/collections/c/query', { vector: [1] });
      assert.deepEqual([refused.status, refused.body.code], [503, 'starting']);
    } finally {
      for (const server of SERVERS) nats.signal(server, 'SIGCONT');
      const server = await starting;
      await eventually('it is ready', async () => (await readinessOf(url)).status === 200);
      assert.equal((await fetch(`${url}/v1/collections/c/vectors/v0`)).status, 200);
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    }
    await whenWritable();
  });
});
