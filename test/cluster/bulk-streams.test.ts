// Streams whose rows become segment files on the node that receives them.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ARROW_STREAM, NDJSON } from '../../src/server/wire/media-types.js';
import { arrowStream } from '../server/ingest/streams.js';
import {
  assertSameRows,
  assertStored,
  countsOf,
  linesOf,
  NODES,
  range,
  rowsIn,
  rowsOf,
  send,
  start,
  withCluster,
  withCollection,
} from './bulk-cluster.js';
import { idsIn, waitFor } from './memory-cluster.js';
import type { ServedCluster } from './served-cluster.js';

describe('a bulk stream', () => {
  let shared: ServedCluster;
  before(async () => {
    shared = await start();
  });
  after(() => shared.stop());

  it('becomes files on the node that receives it, which all nodes use', () =>
    withCluster({}, async (served) => {
      const owner = (await served.cluster.ownerOf('c')).name;
      const other = NODES.find((name) => name !== owner)!;
      for (const [i, node] of [other, owner].entries()) {
        const reply = await send(served, node, rowsOf(range(200 * i, 200 * (i + 1))));
        assert.equal(reply.status, 200, reply.text);
        const { inserted_count, updated_count, upserted_count, sequence } = reply.json;
        assert.deepEqual([inserted_count, updated_count, upserted_count], [200, 0, 200]);
        assert.equal(sequence, 4 * (i + 1));
        // The reply is visible through the node at once.
        const found = await served.call(node, 'GET', `/collections/c/vectors/v${200 * i + 199}`);
        assert.equal(found.status, 200, found.text);
      }
      await assertSameRows(served, 400);
      await waitFor('the same files on all nodes', () => {
        const found = served.cluster.nodes.map(({ store, database }) => {
          const bytes = store.get(['manifest', database.incarnationOf('c')!]);
          if (bytes === undefined) return '';
          const { segments } = JSON.parse(Buffer.from(bytes).toString());
          return segments.map(({ digest }: { digest: string }) => digest).join();
        });
        const isSame = found.every((digests) => digests === found[0]);
        return (isSame && found[0]!.split(',').length === 8) || undefined;
      });
      await assertStored(served);
    }));

  it('writes each id once, as its last row says', () =>
    withCollection(shared, {}, async (served) => {
      const rows = [...rowsOf([1, 2, 3, 2, 1], 1), ...rowsOf([3], 2)];
      const { json, status, text } = await send(served, 'n2', rows);
      assert.equal(status, 200, text);
      assert.deepEqual([json.inserted_count, json.updated_count, json.sequence], [3, 3, 1]);
      await assertSameRows(served, 3);
      const found = countsOf(await rowsIn(served.cluster.nodes[0]!));
      assert.deepEqual(
        found,
        new Map([
          ['v2', 1],
          ['v1', 1],
          ['v3', 2],
        ]),
      );
    }));

  it('gives its rows their expiries', () =>
    withCollection(shared, { ttl_seconds: 3_600 }, async (served) => {
      const [first, second, third] = rowsOf([1, 2, 3]);
      const { clock } = served.cluster;
      const soon = new Date(clock.now() + 60_000).toISOString();
      const rows = [first, { ...second!, expires_at: soon }, first, third];
      const reply = await send(served, 'n3', rows);
      assert.equal(reply.status, 200, reply.text);
      clock.nowMs += 61_000;
      const owner = await served.cluster.ownerOf('c');
      await owner.database.deleteExpired();
      await served.cluster.settle();
      for (const node of served.cluster.nodes) assert.deepEqual(await idsIn(node), ['v1', 'v3']);
      clock.nowMs += 3_600_000;
      await owner.database.deleteExpired();
      await assertSameRows(served, 0);
    }));

  it('is durable up to the row that is wrong', () =>
    withCollection(shared, {}, async (served) => {
      const batches = [range(0, 100), range(100, 150), range(150, 160), range(160, 170)].map(
        (ids) => rowsOf(ids).map((row) => ({ ...row, metadata: JSON.stringify(row.metadata) })),
      );
      batches[2]![3] = { ...batches[2]![3]!, values: [1, Number.NaN] };
      const reply = await served.call('n2', 'POST', '/collections/c/vectors?bulk=true', {
        body: new Uint8Array(arrowStream(batches)),
        headers: { 'content-type': ARROW_STREAM },
      });
      assert.equal(reply.status, 400, reply.text);
      assert.equal(reply.json.committed_count, 150);
      assert.equal(reply.json.errors[0].pointer, '/rows/153/values');
      await assertSameRows(served, 150);
    }));

  it('is refused where rows depend on what is in the collection', () =>
    withCollection(shared, {}, async (served) => {
      const rows = rowsOf([1]);
      for (const query of ['&mode=insert', '&mode=update', '&mode=patch']) {
        const { status, json } = await send(served, 'n2', rows, query);
        assert.equal(status, 400);
        assert.equal(json.errors[0].pointer, '?bulk', JSON.stringify(json));
      }
      const keyed = await served.call('n2', 'POST', '/collections/c/vectors?bulk=true', {
        body: linesOf(rows),
        headers: { 'content-type': NDJSON, 'idempotency-key': 'k' },
      });
      assert.equal(keyed.status, 400, keyed.text);
      const { status, json } = await send(served, 'n2', [
        rows[0],
        { ...rowsOf([2])[0], if_sequence: 1 },
      ]);
      assert.equal(status, 400);
      assert.equal(json.errors[0].pointer, '/rows/1/if_sequence');
      await assertSameRows(served, 0);
    }));

  it('is checked against the declared types', () =>
    withCollection(shared, { schema: { count: 'integer' } }, async (served) => {
      const wrong = { ...rowsOf([1])[0]!, metadata: { count: 'two' } };
      const { status, json } = await send(served, 'n2', [...rowsOf([0]), wrong]);
      assert.equal(status, 400, JSON.stringify(json));
      assert.equal(json.errors[0].pointer, '/rows/1/metadata/count');
    }));

  it('comes through new nodes, from the log or a snapshot', () =>
    withCluster({ snapshotBytes: 3_000 }, async (served) => {
      for (let i = 0; i < 5; i++) {
        const reply = await send(served, NODES[i % 3]!, rowsOf(range(70 * i, 70 * (i + 1)), i));
        assert.equal(reply.status, 200, reply.text);
      }
      await served.add('n4');
      await assertSameRows(served, 350);
      await assertStored(served);
    }));

  it('is verified in the shared files', () =>
    withCluster({}, async (served) => {
      await send(served, 'n2', rowsOf(range(0, 100)));
      const { cluster } = served;
      const { node } = await cluster.ownerOf('c');
      const problems = async () => {
        const found = await node.verifyFiles(new AbortController().signal);
        return found.flatMap(({ kind, problem }) =>
          problem === null ? [] : `${kind}: ${problem}`,
        );
      };
      assert.deepEqual(await problems(), []);
      for await (const name of cluster.blobs.list('snapshots/')) {
        if (!name.includes('/files/')) continue;
        const bytes = new Uint8Array((await cluster.blobs.get(name))!);
        bytes[100]! ^= 1;
        await cluster.blobs.put(name, [bytes]);
        break;
      }
      const [problem, ...others] = await problems();
      assert.match(problem!, /^log: Expected .* of the shared file .* found other bytes\.$/);
      assert.deepEqual(others, []);
    }));

  it('is in the clone of the collection', () =>
    withCluster({}, async (served) => {
      await send(served, 'n2', rowsOf(range(0, 100)));
      const body = { id: 'd' };
      const reply = await served.call('n2', 'POST', '/collections/c/clone', { body });
      assert.equal(reply.status, 200, reply.text);
      const removed = await served.call('n1', 'DELETE', '/collections/c');
      assert.equal(removed.status, 200, removed.text);
      await served.add('n4');
      await served.cluster.settle();
      for (const node of served.cluster.nodes) assert.equal((await idsIn(node, 'd')).length, 100);
    }));
});
