// A round trip with the client of @hey-api/openapi-ts.

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
} from '../generated/hey-api';
import { client } from '../generated/hey-api/client.gen';
import { FILTER, FOUND, QUERY, URL_OF_SERVICE, VECTORS } from './sample';

client.setConfig({ baseUrl: URL_OF_SERVICE });
const path = { id: 'hey-api' };

const created = await createCollection({ body: { id: path.id, dimension: 3, metric: 'dot' } });
assert.equal(created.data?.vector_count, 0);

const written = await writeVectors({ path, body: { vectors: VECTORS } });
assert.equal(written.data?.inserted_count, VECTORS.length);

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
  const page = await queryCollection({ path, body });
  assert.ok(page.data);
  found.push(...page.data.matches);
  cursor = page.data.next_cursor;
} while (cursor !== undefined);
assert.deepEqual(
  found.map((match) => match.id),
  FOUND,
);
assert.equal(found[0]?.metadata?.year, 2020);

const fetched = await fetchVectors({ path, body: { ids: ['article-2021', 'none'] } });
assert.deepEqual(fetched.data?.vectors[0]?.values, VECTORS[1]?.values);
assert.deepEqual(fetched.data?.not_found, ['none']);

const listed = await listVectorsInCollection({
  path,
  query: { filter: JSON.stringify(FILTER), include_values: true },
});
assert.deepEqual(
  listed.data?.vectors.map((vector) => vector.id),
  FOUND,
);

const failed = await getCollection({ path: { id: 'none' } });
assert.equal(failed.data, undefined);
assert.equal(failed.error?.code, 'collection_not_found');

const deleted = await deleteCollection({ path });
assert.equal(deleted.data?.vector_count, VECTORS.length);
