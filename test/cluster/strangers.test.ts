// What an attacker can do who reaches the ports of the nodes and what they share, but does not have their secret.

import assert from 'node:assert/strict';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { MemoryStream } from '../../src/cluster/logs/memory-stream.js';
import { NO_SIZES } from '../../src/cluster/members/announced-sizes.js';
import { Members, newMember } from '../../src/cluster/members/members.js';
import { SealedService } from '../../src/cluster/service/sealed-service.js';
import type { Logger } from '../../src/common/logger.js';
import { silentLogger } from '../../src/common/logger.js';
import { NodeKeys } from '../../src/platform/node-keys.js';
import { commitOf, committed, logContract, outline, readAll, takeOver } from './log-contract.js';
import { MemoryCluster, waitFor } from './memory-cluster.js';
import { MemoryNetwork } from './memory-service.js';
import { ServedCluster } from './served-cluster.js';

const SECRET = 'a secret of some nodes, and of nobody else';
const KEYS = new NodeKeys([SECRET], 'test');
const STRANGER = new NodeKeys([], 'test');
const sealed = (network: MemoryNetwork, keys = KEYS, logger = silentLogger) =>
  new SealedService(network.connect(), keys, logger);
const GZIP = { 'content-encoding': 'gzip' };
const SHAPE = { dimension: 2, metric: 'dot' } as const;

logContract('signed', {
  create: async () => {
    const service = sealed(new MemoryNetwork());
    await service.createLog('log');
    return service.openStream('log');
  },
});

describe('a stranger with access to the logs', () => {
  it('cannot find the secret there, nor read or write records in the name of a node', async () => {
    const network = new MemoryNetwork();
    const service = sealed(network);
    await service.createLog('log');
    const log = new ChainedLog(service.openStream('log'));
    const { writer } = await takeOver(log);
    await committed(writer, commitOf(1));
    const stranger = sealed(network, STRANGER);
    await assert.rejects(readAll(new ChainedLog(stranger.openStream('log'))), {
      code: 'data_corrupt',
      message: /it is not signed with SAGITTA_CLUSTER_SECRET/,
    });
    await assert.rejects(stranger.createLog('log', { isStarting: true }), {
      code: 'configuration_invalid',
      message: /^Expected the same SAGITTA_CLUSTER_SECRET on all nodes .*; found the log log, /,
    });
    // A node during a change of the secret.
    const changed = new NodeKeys(['a new secret', SECRET], 'test');
    await sealed(network, changed).createLog('log', { isStarting: true });
    const raw = network.streams.get('log')!;
    const head = writer.head.position;
    const stolen: Uint8Array[] = [];
    const signal = AbortSignal.timeout(60_000);
    for await (const { position, bytes } of raw.read(0, { shards: undefined, signal })) {
      assert.ok(!Buffer.from(bytes).includes(SECRET));
      stolen.push(bytes);
      if (position === head) break;
    }
    // A record of another log, and one that no node has written.
    for (const bytes of [stolen[0]!, stolen.at(-1)!.subarray(0, -32)]) {
      const copy = new MemoryStream({ name: 'log' });
      await copy.publish([{ channel: 'chain', bytes }], 0);
      const opened = new MemoryNetwork();
      opened.streams.set('log', copy);
      const reading = sealed(opened);
      await assert.rejects(readAll(new ChainedLog(reading.openStream('log'))), {
        code: 'data_corrupt',
      });
    }
    assert.deepEqual(outline(await readAll(log)), ['epoch 1 by a', 1]);
  });

  it('cannot announce a node, nor replay an announcement', async () => {
    const network = new MemoryNetwork();
    const service = sealed(network);
    const open = (name: string, bus: SealedService, heard: string[]) => {
      const members = new Members({
        bus,
        self: newMember({
          instance: name,
          node: name,
          version: '1',
          zone: '',
          state: 'serving',
        }),
        timing: { announceMs: 60_000, silentMsMax: 60_000 },
      });
      members.start({
        measure: () => ({ position: 0, positions: {}, sizes: NO_SIZES, problems: [] }),
        onMember: ({ url }) => heard.push(url),
        onOtherFormat() {},
      });
      members.close();
      return members;
    };
    const heard: string[] = [];
    const listener = open('a', service, heard);
    const sent: Uint8Array[] = [];
    const wire = network.connect();
    wire.onAnnouncement((bytes) => sent.push(Buffer.from(bytes)));
    const node = open('b', sealed(network), []);
    node.change({ url: 'http://b:1' });
    node.change({ url: 'http://b:2' });
    open('c', sealed(network, STRANGER), []).change({ url: 'http://evil' });
    wire.announce(sent[0]!);
    const forged = sent[2]!.toString().replace('http://b:2', 'http://evil');
    wire.announce(Buffer.from(forged, 'latin1'));
    assert.deepEqual(heard, ['', 'http://b:1', 'http://b:2']);
    assert.equal(listener.find('b')?.url, 'http://b:2');
    assert.ok(Math.abs(listener.clockOf('b')! - performance.now()) < 60_000);
    assert.equal(listener.clockOf('c'), null);
  });
});

describe('a stranger with access to the ports of nodes', () => {
  let served: ServedCluster;
  let leader: string;
  let follower: string;
  let key: string;
  /** The connection between the follower and the leader. */
  let wire: Server;
  let seen = '';
  const warnings: object[] = [];
  const logger: Logger = { ...silentLogger, warn: (details) => warnings.push(details) };

  before(async () => {
    served = await ServedCluster.start(['n1', 'n2'], new MemoryCluster(), logger);
    leader = (await served.cluster.leader()).name;
    follower = ['n1', 'n2'].find((node) => node !== leader)!;
    const port = Number(new URL(served.cluster.find(leader).node.self.url).port);
    wire = createServer((inner) => {
      const outer = connect(port, '127.0.0.1');
      inner.on('data', (data) => {
        seen += data.toString('latin1');
      });
      inner.pipe(outer).pipe(inner);
      for (const socket of [inner, outer]) socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => wire.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(wire.address() as { port: number }).port}`;
    served.cluster.find(leader).node.serve(url);
    await waitFor(
      'the wire',
      () =>
        served.cluster.find(follower).node.present.some((member) => member.url === url) ||
        undefined,
    );
    const made = await served.call(follower, 'POST', '/keys', {
      body: { owner: 'me', scopes: ['admin'] },
    });
    key = made.json.key as string;
    await served.cluster.settle();
  });
  after(async () => {
    wire.close();
    await served.stop();
  });

  const authorized = () => ({ authorization: `Bearer ${key}` });

  /** The reply of a node to these bytes. */
  function exchange(node: string, text: string): Promise<string> {
    const found = served.cluster.find(node).node.self.url;
    const port = node === leader ? (wire.address() as { port: number }).port : new URL(found).port;
    return new Promise((resolve, reject) => {
      const socket: Socket = connect(Number(port), '127.0.0.1', () => socket.write(text, 'latin1'));
      socket.setEncoding('latin1');
      socket.once('data', (data) => {
        socket.destroy();
        resolve(String(data));
      });
      socket.once('error', reject);
    });
  }

  /** A client's request through the follower, as the leader receives it. */
  async function captured(
    method: string,
    path: string,
    options: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<string> {
    seen = '';
    const headers = { ...authorized(), ...options.headers };
    const reply = await served.call(follower, method, path, { ...options, headers });
    assert.equal(reply.status, 200, reply.text);
    assert.match(seen, new RegExp(`^${method} /v1${path} `));
    return seen;
  }

  it('does not see the credentials of clients', async () => {
    const request = await captured('POST', '/collections', {
      body: { id: 'c', ...SHAPE },
      headers: { cookie: 'a=b', 'proxy-authorization': 'Basic eDp5', 'x-api-key': 'z' },
    });
    assert.doesNotMatch(request, /authorization|cookie|x-api-key/i);
    assert.ok(!request.includes(key) && !request.includes(key.slice(-20)));
  });

  it('cannot replay requests of nodes, change them, or send them to another node', async () => {
    const request = await captured('POST', '/collections/c/vectors', {
      body: { vectors: [{ id: 'a', values: [1, 2] }] },
    });
    const before = warnings.length;
    assert.match(await exchange(leader, request), /^HTTP\/1\.1 401 .*received before/s);
    assert.match(await exchange(follower, request), /^HTTP\/1\.1 503 .*addressed to the process/s);
    for (const [from, to] of [
      ['/c/vectors ', '/d/vectors '],
      ['POST /v1/collections/c/vectors ', 'DELETE /v1/collections/c '],
      ['application/json', 'application/x-ndjson'],
      ['\r\n\r\n', '\r\nif-match: "1"\r\n\r\n'],
      ['\r\n\r\n', '\r\nsagitta-consistency: strong\r\n\r\n'],
      ['sagitta-forwarded: e', 'sagitta-forwarded: f'],
    ]) {
      const changed = request.replace(from!, to!);
      assert.notEqual(changed, request);
      const reply = await exchange(leader, changed);
      assert.match(reply, /^HTTP\/1\.1 401 .*is not signed for this request/s, from);
    }
    assert.equal(warnings.length - before, 8);
    assert.match(JSON.stringify(warnings.at(-1)), /"client":"(::ffff:)?127\.0\.0\.1"/);
  });

  it('cannot change requests on their way', async () => {
    let change = (text: string) => text.replace('"honest"', '"forged"');
    const changing = createServer((inner) => {
      const target = (wire.address() as { port: number }).port;
      const outer = connect(target, '127.0.0.1');
      inner.on('data', (data) => {
        outer.write(Buffer.from(change(data.toString('latin1')), 'latin1'));
      });
      outer.pipe(inner);
      inner.on('close', () => outer.destroy());
      for (const socket of [inner, outer]) socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => changing.listen(0, '127.0.0.1', resolve));
    const { node } = served.cluster.find(leader);
    const usual = node.self.url;
    const url = `http://127.0.0.1:${(changing.address() as { port: number }).port}`;
    const whenSeen = (expected: string) =>
      waitFor(
        'another URL',
        () =>
          served.cluster.find(follower).node.present.some((member) => member.url === expected) ||
          undefined,
      );
    node.serve(url);
    await whenSeen(url);
    const bodies = [
      ['application/json', { vectors: [{ id: 'honest', values: [1, 2] }] }, {}],
      ['application/x-ndjson', '{"id":"honest","values":[1,2]}\n', {}],
      ['application/x-ndjson', gzipSync('{"id":"honest","values":[1,2]}\n'), GZIP],
      ['application/json', gzipSync('{"id":"honest","values":[1,2]}'), GZIP],
    ] as const;
    const send = ([type, body, more]: (typeof bodies)[number]) =>
      served.call(follower, 'POST', '/collections/c/vectors', {
        body,
        headers: { ...authorized(), 'content-type': type, ...more },
      });
    for (const sent of bodies.slice(0, 2)) {
      const reply = await send(sent);
      assert.match(reply.text, /does not carry the signature of a node/, sent[0]);
    }
    // The body has ended when the node begins to read it.
    change = (text) => (/^POST/.test(text) ? text.replace(/\r\n\r\n.*/s, '\r\n\r\n0\r\n\r\n') : '');
    for (const sent of bodies) {
      const reply = await send(sent);
      assert.match(reply.text, /The body was cut off/, sent[0]);
    }
    node.serve(usual);
    await whenSeen(usual);
    changing.close();
    for (const id of ['honest', 'forged']) {
      const path = `/collections/c/vectors/${id}`;
      const { status } = await served.call(leader, 'GET', path, { headers: authorized() });
      assert.equal(status, 404);
    }
  });

  it('cannot use the routes of nodes without their keys', async () => {
    const forged = Buffer.from(
      JSON.stringify({
        principal: { id: 'operator', grants: [{ scope: 'admin', collections: '*' }] },
      }),
    ).toString('base64url');
    for (const headers of [
      { 'sagitta-forwarded': `${forged}.AAAA` },
      { 'sagitta-forwarded': forged },
    ]) {
      const body = { owner: 'stranger', scopes: ['admin'] };
      const { status } = await served.call(leader, 'POST', '/keys', { body, headers });
      assert.equal(status, 401);
      const part = await served.call(leader, 'POST', '/cluster/parts', { body: {}, headers });
      assert.equal(part.status, 401);
    }
    assert.equal((await served.call(leader, 'POST', '/cluster/parts', { body: {} })).status, 404);
    const { json } = await served.call(leader, 'GET', '/keys', { headers: authorized() });
    assert.deepEqual(
      json.keys.map(({ owner }: { owner: string }) => owner),
      ['me'],
    );
  });

  it('is audited, as are changes that one node carries out for clients of another one', async () => {
    const { json } = await served.call(leader, 'GET', '/audit', { headers: authorized() });
    const known = json.events.map((event: Record<string, unknown>) => [
      event.operation,
      event.status,
      event.via,
      String(event.principal).slice(0, 4),
    ]);
    assert.ok(
      known.some((event: unknown[]) => event.join() === 'key.create,401,,anon'),
      known,
    );
    assert.deepEqual(
      known.filter(([, status]: unknown[]) => status === 200),
      [
        ['collection.create', 200, follower, 'key:'],
        ['key.create', 200, follower, 'anon'],
      ],
    );
    const asked = await served.call(follower, 'GET', '/audit?operation=collection', {
      headers: authorized(),
    });
    assert.deepEqual(
      asked.json.events.map(({ operation, via }: Record<string, unknown>) => [operation, via]),
      [['collection.create', null]],
    );
  });
});
