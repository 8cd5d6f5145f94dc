// With the header Sagitta-Session, a client sees through every node of a cluster what it has seen through another one.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Reply } from '../server/harness.js';
import { ServedCluster } from './served-cluster.js';

const NODES = ['n1', 'n2', 'n3'];
/** Longer than an up-to-date node takes to answer. */
const WAIT_MS = 100;

function sessionOf({ headers }: Reply): string {
  const found = headers['sagitta-session'];
  assert.match(String(found), /^catalogue:\d+(,[0-9a-f-]{36}:\d+)*$/);
  return String(found);
}

describe('the session of a client', () => {
  let served: ServedCluster;
  let release = () => {};
  let idCount = 0;

  before(async () => {
    served = await ServedCluster.start(NODES);
  });
  afterEach(() => release());
  after(() => served.stop());

  const write = async (node: string, collection: string) => {
    const vectors = [{ id: `v${++idCount}`, values: [1, 1] }];
    const path = `/collections/${collection}/vectors`;
    const reply = await served.call(node, 'POST', path, { body: { vectors } });
    assert.equal(reply.status, 200, reply.text);
    return sessionOf(reply);
  };
  const countAt = async (node: string, collection: string, session?: string) => {
    const headers = session === undefined ? {} : { 'sagitta-session': session };
    const reply = await served.call(node, 'GET', `/collections/${collection}/vectors?offset=0`, {
      headers,
    });
    assert.equal(reply.status, 200, reply.text);
    return { count: reply.json.total as number, session: sessionOf(reply) };
  };
  /** Whether a request is answered while one node is late. */
  const isSettled = async (work: Promise<unknown>) =>
    await Promise.race([work.then(() => true), sleep(WAIT_MS, false)]);

  it('makes a late node wait for what was written or read through another one', async () => {
    const body = { id: 'all', dimension: 2 };
    const made = sessionOf(await served.call('n1', 'POST', '/collections', { body }));
    for (const node of NODES) assert.equal((await countAt(node, 'all', made)).count, 0);
    const { name: owner } = await served.cluster.ownerOf('all');
    const late = NODES.find((node) => node !== owner)!;
    release = served.cluster.find(late).service.hold();
    const written = await write(owner, 'all');
    assert.equal((await countAt(late, 'all')).count, 0);
    const read = (await countAt(owner, 'all')).session;
    const waiting = [countAt(late, 'all', written), countAt(late, 'all', read)];
    assert.equal(await isSettled(Promise.race(waiting)), false);
    release();
    for (const { count } of await Promise.all(waiting)) assert.equal(count, 1);
  });

  it('covers the collections that the body of a request names', async () => {
    const { session } = await countAt('n1', 'all');
    const found = await served.call('n2', 'GET', '/vectors?collection=all');
    assert.deepEqual(sessionOf(found).split(',').sort(), session.split(',').sort());
    const join = await served.call('n3', 'POST', '/collections/all/join', {
      body: { with: 'all', top_k: 1 },
      headers: { 'sagitta-consistency': 'strong' },
    });
    assert.equal(sessionOf(join), session);
  });

  it('is passed to an up-to-date holder by a node that does not hold the collection', async () => {
    const body = { id: 'two', dimension: 2, replication_factor: 2 };
    const made = await served.call('n1', 'POST', '/collections', { body });
    const other = NODES.find((name) => !made.json.nodes.includes(name))!;
    const { name: owner } = await served.cluster.ownerOf('two');
    const late = made.json.nodes.find((name: string) => name !== owner)!;
    assert.equal((await countAt(late, 'two', await write(owner, 'two'))).count, 1);
    release = served.cluster.find(late).service.hold();
    const written = await write(owner, 'two');
    // Each holder is asked first for one of them.
    for (let i = 0; i < 2; i++) assert.equal((await countAt(other, 'two', written)).count, 2);
    const record = await served.call(other, 'GET', '/collections/two', {
      headers: { 'sagitta-session': written },
    });
    assert.equal(record.json.vector_count, 2);
  });

  it('goes on through nodes that do not hold the collection', async () => {
    const body = { id: 'one', dimension: 2, replication_factor: 1 };
    const made = await served.call('n1', 'POST', '/collections', { body });
    const others = NODES.filter((name) => !made.json.nodes.includes(name));
    for (let count = 1; count <= 5; count++) {
      const session = await write(others[count % 2]!, 'one');
      const found = await countAt(others[(count + 1) % 2]!, 'one', session);
      assert.equal(found.count, count);
      assert.ok(found.session.includes(','), found.session);
    }
  });

  it('does not wait for positions beyond the end of a log', async () => {
    const body = { id: 'old', dimension: 2 };
    const made = sessionOf(await served.call('n1', 'POST', '/collections', { body }));
    const invented = made.replaceAll(/:\d+/g, ':999999999999');
    const gone = 'catalogue:3,00000000-0000-4000-8000-000000000000:7';
    for (const node of NODES) {
      for (const session of [invented, gone]) {
        assert.equal((await countAt(node, 'old', session)).count, 0);
        const headers = { 'sagitta-session': session };
        assert.equal((await served.call(node, 'GET', '/collections', { headers })).status, 200);
      }
    }
  });

  it('is refused unless it has the form of those in replies', async () => {
    const invalid = ['', 'catalogue', 'catalogue:', 'catalogue:-1', 'a b:1', 'catalogue:1;x:2'];
    const tooMany = Array.from({ length: 65 }, (_, i) => `log-${i}:1`).join(',');
    for (const session of [...invalid, tooMany, 'catalogue:1234567890123456']) {
      const headers = { 'sagitta-session': session };
      const { status, json } = await served.call('n1', 'GET', '/collections', { headers });
      assert.deepEqual([status, json.code], [400, 'invalid_request'], session);
      assert.match(
        json.detail,
        /^The header Sagitta-Session is .*; expected at most 64 .* NAME:POSITION/,
      );
    }
  });
});
