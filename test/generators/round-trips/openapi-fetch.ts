// A round trip with the types of openapi-typescript and the client openapi-fetch.

import assert from 'node:assert/strict';
import createClient from 'openapi-fetch';
import type { components, paths } from '../generated/openapi-typescript';
import { FILTER, FOUND, QUERY, URL_OF_SERVICE, VECTORS } from './sample';

const client = createClient<paths>({ baseUrl: URL_OF_SERVICE });
const params = { path: { id: 'openapi-fetch' } };

const created = await client.POST('/collections', {
  body: { id: params.path.id, dimension: 3, metric: 'dot' },
});
assert.equal(created.data?.vector_count, 0);

const written = await client.POST('/collections/{id}/vectors', {
  params,
  body: { vectors: VECTORS },
});
assert.equal(written.data?.inserted_count, VECTORS.length);

const found: components['schemas']['Match'][] = [];
const first: components['schemas']['Query'] = {
  vector: QUERY,
  filter: FILTER,
  limit: 2,
  include_metadata: true,
};
let cursor: string | undefined;
do {
  const body: components['schemas']['Query'] = cursor === undefined ? first : { cursor };
  const page = await client.POST('/collections/{id}/query', { params, body });
  assert.ok(page.data);
  found.push(...page.data.matches);
  cursor = page.data.next_cursor;
} while (cursor !== undefined);
assert.deepEqual(
  found.map((match) => match.id),
  FOUND,
);
assert.equal(found[0]?.metadata?.year, 2020);

const fetched = await client.POST('/collections/{id}/vectors/fetch', {
  params,
  body: { ids: ['article-2021', 'none'] },
});
assert.deepEqual(fetched.data?.vectors[0]?.values, VECTORS[1]?.values);
assert.deepEqual(fetched.data?.not_found, ['none']);

const listed = await client.GET('/collections/{id}/vectors', {
  params: { ...params, query: { filter: JSON.stringify(FILTER), include_values: true } },
});
assert.deepEqual(
  listed.data?.vectors.map((vector) => vector.id),
  FOUND,
);

const failed = await client.GET('/collections/{id}', { params: { path: { id: 'none' } } });
assert.equal(failed.data, undefined);
assert.equal(failed.error?.code, 'collection_not_found');

const deleted = await client.DELETE('/collections/{id}', { params });
assert.equal(deleted.data?.vector_count, VECTORS.length);
