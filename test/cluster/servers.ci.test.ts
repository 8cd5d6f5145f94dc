// Three servers as nodes of a cluster on three real NATS servers; each of them accepts every request.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { JetStreamStream } from '../../src/cluster/service/jetstream-stream.js';
import { eventually } from '../support/waiting.js';
import { NatsServers, natsMissing } from './nats-servers.js';
import { patientFetch } from './patient-fetch.js';
import { RunningCluster } from './running-cluster.js';

const missing = natsMissing();
const HAS_FOUND = /^sagitta_cluster_search_parts_total\{outcome="found"\} [1-9]/m;

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies freely
  readonly json: any;
}

interface CallOptions {
  readonly body?: unknown;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function call(
  base: string,
  method: string,
  path: string,
  { body, type = 'application/json', headers = {} }: CallOptions = {},
): Promise<Reply> {
  const isText = typeof body === 'string';
  const reply = await patientFetch(`${base}/v1${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': type }), ...headers },
    ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
  });
  const { status, text } = reply;
  return { status, headers: reply.headers, json: text === '' ? null : JSON.parse(text) };
}

describe('servers of a cluster', { skip: missing ?? false }, () => {
  let nats: NatsServers;
  let cluster: RunningCluster;
  let follower: string;
  let other: string;
  let leader: string;
  let adminKey = '';

  before(async () => {
    nats = await NatsServers.start();
    // All nodes share every search.
    const config = { clusterSnapshotBytes: 100_000, clusterScatterValues: 1 };
    cluster = await RunningCluster.start({ nats, name: 'servers', config });
    await findRoles();
  });
  after(async () => {
    await cluster?.stop();
    await nats?.stop();
  });

  async function findRoles(): Promise<void> {
    await cluster.whenWritable();
    const [node] = cluster.servers.keys();
    leader = (await cluster.leaderSeenBy(node!))!;
    [follower, other] = [...cluster.servers.keys()].filter((name) => name !== leader) as [
      string,
      string,
    ];
  }
  const at = (node: string) => ({
    get: (path: string, options?: CallOptions) => call(cluster.urlOf(node), 'GET', path, options),
    post: (path: string, body: unknown, options?: CallOptions) =>
      call(cluster.urlOf(node), 'POST', path, { body, ...options }),
    delete: (path: string, options?: CallOptions) =>
      call(cluster.urlOf(node), 'DELETE', path, options),
    put: (path: string, body?: unknown) => call(cluster.urlOf(node), 'PUT', path, { body }),
  });

  it('show the nodes and the leader alike', async () => {
    for (const node of cluster.servers.keys()) {
      const { json } = await at(node).get('/cluster');
      assert.equal(json.node, node);
      assert.deepEqual(
        json.nodes.map(({ name, state }: { name: string; state: string }) => [name, state]),
        ['n1', 'n2', 'n3'].map((name) => [name, 'serving']),
      );
    }
  });

  it('take writes on any node, which then has them', async () => {
    const made = await at(follower).post('/collections', { id: 'c', dimension: 2, metric: 'dot' });
    assert.equal(made.status, 200, JSON.stringify(made.json));
    for (const node of [follower, other, leader]) {
      assert.equal((await at(node).get('/collections/c')).status, 200);
    }
    for (let i = 0; i < 20; i++) {
      const vectors = [{ id: `v${i}`, values: [i, 1] }];
      const written = await at(follower).post('/collections/c/vectors', { vectors });
      assert.equal(written.status, 200, JSON.stringify(written.json));
      const { json } = await at(follower).post('/collections/c/query', {
        vector: [1, 0],
        top_k: 1,
      });
      assert.equal(json.matches[0].id, `v${i}`);
    }
  });

  it('answer strong reads in time after all consumers were removed from the NATS servers', async () => {
    const strong = { headers: { 'sagitta-consistency': 'strong' } };
    const { manager, close } = await nats.connect();
    try {
      for await (const { config } of manager.streams.list()) {
        for await (const { name } of manager.consumers.list(config.name)) {
          await manager.consumers.delete(config.name, name);
        }
      }
    } finally {
      await close();
    }
    const vectors = [{ id: 'kept', values: [0, 1] }];
    const written = await at(leader).post('/collections/c/vectors', { vectors });
    assert.equal(written.status, 200, JSON.stringify(written.json));
    for (const node of [follower, other]) {
      assert.equal((await at(node).get('/collections/c/vectors/kept', strong)).status, 200);
    }
    await at(leader).post('/collections/c/vectors/delete', { ids: ['kept'] });
  });

  it('stream rows through any node', async () => {
    const lines = Array.from({ length: 5_000 }, (_, i) =>
      JSON.stringify({ id: `s${i}`, values: [i / 5_000, 1] }),
    );
    const { status, json } = await at(other).post('/collections/c/vectors', lines.join('\n'), {
      type: 'application/x-ndjson',
    });
    assert.equal(status, 200, JSON.stringify(json));
    assert.equal(json.upserted_count, 5_000);
    assert.equal((await at(other).get('/collections/c')).json.vector_count, 5_020);
  });

  it('share searches, and let no client take part', async () => {
    const strong = { headers: { 'sagitta-consistency': 'strong' } };
    const ask = (node: string) =>
      at(node).post('/collections/c/query', { vector: [1, 1], top_k: 5 }, strong);
    const { json: expected } = await ask(leader);
    for (const node of cluster.servers.keys()) {
      // A node that is late is not asked for a while.
      await eventually('parts of other nodes', async () => {
        assert.deepEqual((await ask(node)).json.matches, expected.matches);
        return HAS_FOUND.test(await (await fetch(`${cluster.urlOf(node)}/metrics`)).text());
      });
    }
    assert.equal((await at(leader).post('/cluster/search', {})).status, 404);
    const { json } = await at(leader).get('/../openapi.json');
    assert.equal(json.paths['/cluster/search'], undefined);
  });

  it('are drained through any node, and then no longer lead', async () => {
    const { status, json } = await at(follower).put(`/cluster/nodes/${leader}/drain`);
    assert.deepEqual([status, json.name], [200, leader], JSON.stringify(json));
    const drainOf = async (node: string) => {
      const { json: found } = await at(follower).get('/cluster');
      return found.nodes.find(({ name }: { name: string }) => name === node).drain;
    };
    await eventually('the drain', async () => (await drainOf(leader)) === 'drained');
    const drained = leader;
    await findRoles();
    assert.notEqual(leader, drained);
    const written = await at(drained).post('/collections/c/vectors', {
      vectors: [{ id: 'through the drained one', values: [1, 1] }],
    });
    assert.equal(written.status, 200, JSON.stringify(written.json));
    assert.equal((await at(drained).delete(`/cluster/nodes/${drained}/drain`)).status, 200);
    await eventually('the end of the drain', async () => (await drainOf(drained)) === 'none');
    const unknown = await at(other).put('/cluster/nodes/n9/drain');
    assert.deepEqual([unknown.status, unknown.json.code], [404, 'node_not_found']);
    assert.match(unknown.json.detail, /"n9"; expected one of n1, n2, n3\.$/);
  });

  it('move a collection of one of them during writes', async () => {
    const body = { id: 'moved-about', dimension: 2, metric: 'dot', replication_factor: 1 };
    const made = await at(follower).post('/collections', body);
    assert.equal(made.status, 200, JSON.stringify(made.json));
    const path = '/collections/moved-about';
    let count = 0;
    let session = '';
    const write = async (node: string) => {
      const vectors = Array.from({ length: 50 }, () => ({ id: `m${count}`, values: [count++, 1] }));
      // A log without an owner gets one a moment later.
      for (;;) {
        const { status, headers, json } = await at(node).post(`${path}/vectors`, { vectors });
        session = headers.get('sagitta-session') ?? session;
        if (status === 200) return;
        assert.equal(json.code, 'no_leader', JSON.stringify(json));
      }
    };
    await write(other);
    // There and back, so that a node gets a collection that it has held before.
    for (let i = 0; i < 2; i++) {
      const strong = { headers: { 'sagitta-consistency': 'strong' } };
      const { nodes } = (await at(follower).get(path, strong)).json;
      const from = nodes[0];
      const to = ['n1', 'n2', 'n3'].find((name) => name !== from)!;
      const moved = await at(other).post(`${path}/move`, { from, to });
      assert.deepEqual([moved.status, moved.json.move], [200, { to, from }]);
      for (;;) {
        await write(i % 2 === 0 ? leader : follower);
        const { json } = await at(other).get(path);
        if (json.move === undefined && json.nodes?.[0] === to) break;
      }
      for (const node of cluster.servers.keys()) {
        // A node may have held it a moment ago.
        const options = { headers: { 'sagitta-session': session } };
        const { json } = await at(node).get(`${path}/digest`, options);
        assert.equal(json.vector_count, count, `${node}: ${JSON.stringify(json)}`);
        const query = { vector: [1, 0], top_k: 1 };
        const reply = await at(node).post(`${path}/query`, query, options);
        assert.equal(reply.json.matches[0].id, `m${count - 1}`);
      }
    }
    const deleted = await at(follower).delete(path);
    assert.equal(deleted.json.vector_count, count, JSON.stringify(deleted.json));
  });

  it('repeat the reply to a key after the owner is gone, and write through the next leader', async () => {
    const options = { headers: { 'idempotency-key': 'once' } };
    const body = { vectors: [{ id: 'once', values: [1, 1] }] };
    const first = await at(follower).post('/collections/c/vectors', body, options);
    assert.equal(first.status, 200);
    await cluster.remove(leader);
    await findRoles();
    const second = await at(follower).post('/collections/c/vectors', body, options);
    assert.equal(second.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(second.json, first.json);
    const later = await at(follower).post('/collections/c/vectors', {
      vectors: [{ id: 'later', values: [2, 2] }],
    });
    assert.equal(later.json.sequence, first.json.sequence + 1);
  });

  it('trim the logs by snapshots, from which new nodes start', async () => {
    const connection = await nats.connect();
    const names = await connection.manager.streams.names().next();
    const streams = names.map((name) => new JetStreamStream(connection, name));
    const areWhole = async () => {
      const firsts = await Promise.all(streams.map((stream) => stream.firstPosition()));
      return firsts.every((position) => position === null || position === 1);
    };
    for (let i = 0; await areWhole(); i++) {
      const values = Array.from({ length: 2_000 }, (_, j) => ({
        id: `f${i}-${j}`,
        values: [i, j],
      }));
      const { status } = await at(follower).post('/collections/c/vectors', { vectors: values });
      assert.equal(status, 200);
    }
    await connection.close();
  });

  it('have all data when they come back or are new', async () => {
    for (const node of ['n1', 'n2', 'n3', 'n4']) {
      if (!cluster.servers.has(node)) await cluster.add(node);
      const { json } = await at(node).get('/collections/c/vectors/later');
      assert.deepEqual(json.values, [2, 2]);
    }
  });

  it('require keys that were created on another node', async () => {
    await findRoles();
    const made = await at(follower).post('/keys', { owner: 'admin', scopes: ['admin'] });
    assert.equal(made.status, 200, JSON.stringify(made.json));
    const { key } = made.json;
    adminKey = key;
    const options = { headers: { authorization: `Bearer ${key}` } };
    for (const node of cluster.servers.keys()) {
      // Another node has it a moment later.
      let reply = await at(node).get('/collections', options);
      while (reply.status === 200 && (await at(node).get('/collections')).status === 200) {
        reply = await at(node).get('/collections', options);
      }
      assert.equal((await at(node).get('/collections')).status, 401);
    }
    const written = await at(other).post(
      '/collections/c/vectors',
      { vectors: [{ id: 'with key', values: [1, 1] }] },
      options,
    );
    assert.equal(written.status, 200, JSON.stringify(written.json));
    const refused = await at(other).post('/collections/c/vectors', { vectors: [] });
    assert.equal(refused.status, 401);
  });

  it('reveal nothing about a collection to clients without access to it', async () => {
    const asAdmin = { headers: { authorization: `Bearer ${adminKey}` } };
    const limited = { owner: 'limited', scopes: ['vectors:write:mine', 'vectors:read:mine'] };
    const made = await at(follower).post('/keys', limited, asAdmin);
    assert.equal(made.status, 200);
    await at(follower).get('/principal', { headers: { 'sagitta-consistency': 'strong' } });
    const asLimited = { headers: { authorization: `Bearer ${made.json.key}` } };
    for (const node of cluster.servers.keys()) {
      for (const id of ['c', 'nothing']) {
        for (const options of [asLimited, {}]) {
          const vectors = [{ id: 'a', values: [1, 1] }];
          for (const reply of [
            await at(node).get(`/collections/${id}/vectors/v1`, options),
            await at(node).post(`/collections/${id}/vectors`, { vectors }, options),
            await at(node).post('/query', { collection: id, vector: [1, 1] }, options),
          ]) {
            assert.ok(reply.status >= 400, `${reply.status}`);
            const session = reply.headers.get('sagitta-session') ?? 'catalogue:';
            assert.match(session, /^catalogue:\d*$/);
          }
        }
      }
      const known = await at(node).get('/collections/c/vectors/v1', asAdmin);
      assert.match(known.headers.get('sagitta-session')!, /^catalogue:\d+,/);
    }
  });
});
