// A round trip with the client of orval.

import assert from 'node:assert/strict';
import {
  createCollection,
  deleteCollection,
  fetchVectors,
  getCollection,
  listVectorsInCollection,
  type Match,
  type Query,
  queryCollection,
  writeVectors,
} from '../generated/orval/api';
import { FILTER, FOUND, QUERY, VECTORS } from './sample';

const id = 'orval';

const created = await createCollection({ id, dimension: 3, metric: 'dot' });
assert.ok(created.status === 200);
assert.equal(created.data.vector_count, 0);

const written = await writeVectors(id, { vectors: VECTORS });
assert.ok(written.status === 200);
assert.equal(written.data.inserted_count, VECTORS.length);

const found: Match[] = [];
const first: Query = {
  vector: QUERY,
  filter: FILTER,
  limit: 2,
  include_metadata: true,
};
let cursor: string | undefined;
do {
  const body: Query = cursor === undefined ? first : { cursor };
  const page = await queryCollection(id, body);
  assert.ok(page.status === 200);
  found.push(...page.data.matches);
  cursor = page.data.next_cursor;
} while (cursor !== undefined);
assert.deepEqual(
  found.map((match) => match.id),
  FOUND,
);
assert.equal(found[0]?.metadata?.year, 2020);

const fetched = await fetchVectors(id, { ids: ['article-2021', 'none'] });
assert.ok(fetched.status === 200);
assert.deepEqual(fetched.data.vectors[0]?.values, VECTORS[1]?.values);
assert.deepEqual(fetched.data.not_found, ['none']);

const listed = await listVectorsInCollection(id, {
  filter: JSON.stringify(FILTER),
  include_values: true,
});
assert.ok(listed.status === 200);
assert.deepEqual(
  listed.data.vectors.map((vector) => vector.id),
  FOUND,
);

const failed = await getCollection('none');
assert.ok(failed.status === 404);
assert.equal(failed.data.code, 'collection_not_found');

const deleted = await deleteCollection(id);
assert.ok(deleted.status === 200);
assert.equal(deleted.data.vector_count, VECTORS.length);
