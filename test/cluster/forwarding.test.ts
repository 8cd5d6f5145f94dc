// Requests that one node forwards to another, with targets and bodies of every form that clients may send.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { eventually } from '../support/waiting.js';
import { ServedCluster } from './served-cluster.js';

const NODES = ['n1', 'n2'];
const SHAPE = { dimension: 2, metric: 'dot' } as const;

describe('a node that sends requests to another one', () => {
  let served: ServedCluster;
  /** Does not own the catalogue. */
  let follower: string;
  let trap: Server;
  let trapped = 0;

  before(async () => {
    served = await ServedCluster.start(NODES);
    const leader = (await served.cluster.leader()).name;
    follower = NODES.find((node) => node !== leader)!;
    trap = createServer((_request, response) => {
      trapped++;
      response.end('{}');
    });
    await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve));
  });
  after(async () => {
    trap.close();
    await served.stop();
  });

  /** The reply of the node to a text, until it closes the connection. */
  const exchange = (text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const { port } = new URL(served.cluster.find(follower).node.self.url);
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(text));
      let replies = '';
      socket.setEncoding('utf8');
      socket.on('data', (data: string) => {
        replies += data;
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(replies));
    });
  const statusesIn = (replies: string) =>
    [...replies.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));

  it('sends them only to nodes, even if their target names another host', async () => {
    const { port } = trap.address() as AddressInfo;
    const body = JSON.stringify({ id: 'absolute', ...SHAPE });
    for (const target of ['/v1/collections', `http://127.0.0.1:${port}/v1/collections?x"=`]) {
      await exchange(
        `POST ${target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    }
    const read = await exchange(
      `GET http://127.0.0.1:${port}/v1/collections/unknown HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
    );
    assert.deepEqual(statusesIn(read), [404]);
    assert.equal(trapped, 0);
    const { status } = await served.call(follower, 'GET', '/collections/absolute');
    assert.equal(status, 200);
  });

  it('does not change targets', async () => {
    await served.call(follower, 'POST', '/collections', { body: { id: 'odd', ...SHAPE } });
    for (const id of ['%2e%2e', 'a%2Fb', 'x"y', '%22']) {
      const text = JSON.stringify({ values: [1, 2] });
      const reply = await exchange(
        `PUT /v1/collections/odd/vectors/${id} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
      );
      assert.deepEqual(statusesIn(reply), [200], `${id}: ${reply}`);
    }
    const { json } = await served.call(follower, 'GET', '/collections/odd/vectors');
    assert.deepEqual(
      json.vectors.map((vector: { id: string }) => vector.id),
      ['..', 'a/b', 'x"y', '"'],
    );
  });

  it('sends encoded bodies of any length, in one piece or in many', async () => {
    await served.call(follower, 'POST', '/collections', { body: { id: 'packed', ...SHAPE } });
    const rows = Array.from({ length: 1_000 }, (_, i) => ({ id: `r${i}`, values: [i, 1] }));
    const lines = rows.map((row) => JSON.stringify(row)).join('\n');
    const { url } = served.cluster.find(follower).node.self;
    for (const [type, text] of [
      ['application/json', JSON.stringify({ vectors: rows.slice(0, 300) })],
      ['application/x-ndjson', lines],
    ] as const) {
      for (const encoding of ['gzip', undefined]) {
        const bytes = encoding === undefined ? Buffer.from(text) : gzipSync(text);
        const pieces = async function* () {
          for (let at = 0; at < bytes.length; at += 3_000) yield bytes.subarray(at, at + 3_000);
        };
        for (const body of [bytes, Readable.toWeb(Readable.from(pieces()))]) {
          const reply = await fetch(`${url}/v1/collections/packed/vectors`, {
            method: 'POST',
            headers: { 'content-type': type, ...(encoding && { 'content-encoding': encoding }) },
            body,
            duplex: 'half',
          } as RequestInit);
          const found = (await reply.json()) as { upserted_count?: number };
          assert.equal(found.upserted_count, text === lines ? 1_000 : 300, JSON.stringify(found));
        }
      }
    }
  });

  it('never sends a body as another request', async () => {
    await served.call(follower, 'POST', '/collections', { body: { id: 'kept', ...SHAPE } });
    const inner = `DELETE /v1/collections/kept HTTP/1.1\r\nhost: localhost\r\n\r\n`;
    const chunked = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
    for (const [method, path] of [
      ['GET', '/v1/collections/not-known'],
      ['DELETE', '/v1/collections/not-known'],
      ['DELETE', '/v1/aliases/not-known'],
    ]) {
      const framings = [
        `transfer-encoding: chunked\r\n\r\n${chunked}`,
        `content-length: ${inner.length}\r\n\r\n${inner}`,
      ];
      for (const framing of framings) {
        const reply = await exchange(
          `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${framing}`,
        );
        const statuses = statusesIn(reply);
        assert.equal(statuses.length, 1, reply);
        assert.ok(statuses[0]! >= 400, reply);
        // The connection between the nodes is used again.
        const next = await served.call(follower, 'POST', '/collections/kept/vectors', {
          body: { vectors: [{ id: 'next', values: [1, 1] }] },
        });
        assert.equal(next.status, 200, next.text);
        assert.equal(next.json.upserted_count, 1, next.text);
      }
    }
    assert.equal((await served.call(follower, 'GET', '/collections/kept')).status, 200);
  });

  it('forwards the session of a client to a node that does not know the collection', async () => {
    const leader = NODES.find((node) => node !== follower)!;
    const release = served.cluster.find(follower).service.hold();
    try {
      const body = { vectors: [{ id: 'a', values: [1, 1] }] };
      const made = await served.call(leader, 'POST', '/collections', {
        body: { id: 'late', ...SHAPE },
      });
      assert.equal(made.status, 200, made.text);
      const written = await served.call(leader, 'POST', '/collections/late/vectors', { body });
      assert.equal(written.status, 200, written.text);
      const read = await served.call(follower, 'GET', '/collections/late/vectors?offset=0');
      assert.equal(read.status, 200, read.text);
      assert.equal(read.json.total, 1);
      const session = String(read.headers['sagitta-session']);
      const incarnation = served.cluster.find(leader).database.incarnationOf('late')!;
      assert.match(session, new RegExp(`(^|,)${incarnation}:[1-9]`));
    } finally {
      release();
    }
  });

  it('does not count the writes of disconnected clients', async () => {
    const { node } = served.cluster.find(follower);
    const ended = node.beginRead('some collection');
    ended();
    const owner = await served.cluster.leader();
    const { port } = new URL(owner.node.self.url);
    const body = JSON.stringify({ vectors: [{ id: 'gone', values: [1, 1] }] });
    for (let i = 0; i < 5; i++) {
      const socket = connect(Number(port), '127.0.0.1', () => {
        socket.write(
          `POST /v1/collections/kept/vectors HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        );
        socket.destroy();
      });
      await new Promise((resolve) => socket.once('close', resolve));
    }
    await owner.node.drain(owner.name, true);
    await eventually('the drain', () =>
      owner.node.health.status.members.some(
        ({ node: name, drain }) => name === owner.name && drain === 'drained',
      ),
    );
  });
});
