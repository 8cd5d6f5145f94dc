// Records of collections that a node does not hold, or holds only in part, completed from other nodes.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CollectionRecord } from '../../../src/database/api/database-api.js';
import type { NodeReply } from '../../../src/server/cluster/node-client.js';
import { completeRecord, fetchRemoteRecord } from '../../../src/server/cluster/remote-records.js';

const RECORD: CollectionRecord = {
  id: 'now',
  description: null,
  labels: { changed: 'here' },
  nodes: ['n1'],
  status: 'ready',
  vectorCount: 3,
  sequence: 2,
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-02T00:00:00.000Z',
  engine: { name: 'simd', reason: 'test' },
  memory: { hostBytes: 0, mappedBytes: 0, deviceBytes: 0 },
  diskBytes: 0,
};
const HELD: CollectionRecord = {
  ...RECORD,
  id: 'renamed meanwhile',
  labels: {},
  vectorCount: 10,
  sequence: 7,
  updatedAt: '2026-01-03T00:00:00.000Z',
  diskBytes: 99,
};

/** A node that has loaded the collection; `isHolder` says whether it holds all rows, `replies` what replicas answer. */
function servicesOf({ isHolder, replies }: { isHolder: boolean; replies: readonly NodeReply[] }) {
  const asked: string[] = [];
  const database = { incarnationOf: () => 'incarnation', holds: () => true };
  const forwarder = {
    cluster: { holds: () => isHolder },
    replicasOf: () => replies.map((_, i) => ({ node: `n${i + 1}`, instance: `n${i + 1}/process` })),
    ask: async ({ node }: { node: string }) => {
      asked.push(node);
      return replies[Number(node.slice(1)) - 1];
    },
    peers: { requestFailed: () => {} },
    raiseMarks: () => {},
  };
  const services = { database, forwarder } as unknown as Parameters<typeof completeRecord>[0];
  return { services, asked };
}

const answerWith = (record: CollectionRecord): NodeReply => ({
  status: 200,
  text: JSON.stringify({ records: [record], positions: {} }),
});
const answer = answerWith(HELD);

describe('the record of a collection', () => {
  it('is the own one if the node holds the collection', async () => {
    const { services, asked } = servicesOf({ isHolder: true, replies: [answer] });
    assert.equal(await completeRecord(services, RECORD), RECORD);
    assert.equal(await fetchRemoteRecord(services, RECORD), null);
    assert.deepEqual(asked, []);
  });

  it('combines the counts of a replica with the own catalogue while the collection is moved to the node', async () => {
    const { services, asked } = servicesOf({ isHolder: false, replies: [answer] });
    const expected = { ...HELD, id: RECORD.id, labels: RECORD.labels };
    assert.deepEqual(await completeRecord(services, RECORD), expected);
    assert.deepEqual(await fetchRemoteRecord(services, RECORD), expected);
    assert.deepEqual(asked, ['n1', 'n1']);
  });

  it('comes from a replica that has loaded the collection, if there is one', async () => {
    const loading = answerWith({ ...HELD, status: 'loading', vectorCount: 0, sequence: 0 });
    const both = servicesOf({ isHolder: false, replies: [loading, answer] });
    assert.deepEqual((await completeRecord(both.services, RECORD)).vectorCount, HELD.vectorCount);
    assert.deepEqual(both.asked, ['n1', 'n2']);
    const one = servicesOf({ isHolder: false, replies: [loading] });
    assert.equal((await completeRecord(one.services, RECORD)).status, 'loading');
  });

  it('lacks counts if no replica answers, although the node has some of the rows', async () => {
    const reply = { status: 503, text: 'starting' };
    const { services, asked } = servicesOf({ isHolder: false, replies: [reply] });
    const { status, statusReason, vectorCount, sequence } = await completeRecord(services, RECORD);
    assert.deepEqual([status, vectorCount, sequence], ['elsewhere', 0, 0]);
    assert.match(statusReason!, /held by n1/);
    assert.deepEqual(asked, ['n1']);
  });
});
