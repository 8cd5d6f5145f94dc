// Random bulk streams, other writes and deletions through all nodes, some of which end, compared with a map.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NDJSON } from '../../src/server/wire/media-types.js';
import { Random, seedOf } from '../segment/sample.js';
import {
  assertSameRows,
  assertStored,
  countsOf,
  linesOf,
  NODES,
  rowsIn,
  rowsOf,
  withCluster,
} from './bulk-cluster.js';

describe('bulk streams', () => {
  it('replace rows and are replaced like any other write', () =>
    withCluster({ snapshotBytes: 20_000 }, async (served) => {
      const seed = seedOf('bulk streams');
      const random = new Random(seed);
      const expected = new Map<string, number>();
      for (let count = 1; count <= 24; count++) {
        const node = random.pick(NODES);
        const ids = Array.from({ length: 1 + random.below(150) }, () => random.below(300));
        const kind = random.below(4);
        if (kind === 0) {
          const names = [...new Set(ids)].map((id) => `v${id}`).slice(0, 40);
          const body = { ids: names };
          const path = '/collections/c/vectors/delete';
          const reply = await served.call(node, 'POST', path, { body });
          assert.equal(reply.status, 200, reply.text);
          for (const name of names) expected.delete(name);
          continue;
        }
        const rows = rowsOf(ids, count);
        const query = kind === 1 ? '' : '?bulk=true';
        const reply = await served.call(node, 'POST', `/collections/c/vectors${query}`, {
          body: linesOf(rows),
          headers: { 'content-type': NDJSON },
        });
        assert.equal(reply.status, 200, reply.text);
        const { inserted_count, updated_count } = reply.json;
        const names = new Set(rows.map(({ id }) => id));
        const newCount = [...names].filter((id) => !expected.has(id)).length;
        assert.deepEqual([inserted_count, updated_count], [newCount, rows.length - newCount]);
        for (const { id } of rows) expected.set(id, count);
        if (random.below(6) === 0) {
          await served.kill(node);
          await served.add(node);
          await served.whenServing(NODES);
        }
      }
      await assertSameRows(served, expected.size);
      for (const each of served.cluster.nodes) {
        assert.deepEqual(countsOf(await rowsIn(each)), sorted(expected));
      }
      await assertStored(served);
    }));
});

function sorted(map: ReadonlyMap<string, number>): Map<string, number> {
  return new Map([...map].sort(([a], [b]) => (a < b ? -1 : 1)));
}
