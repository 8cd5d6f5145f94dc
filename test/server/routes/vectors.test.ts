import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createFilledService, createService, expectProblem, type Service } from '../harness.js';

let service: Service;
beforeEach(async () => {
  service = await createFilledService();
});
afterEach(() => service.close());

const VECTORS = '/v1/collections/c/vectors';
const ODD_IDS = ['a/b', 'a b', '100%', '%2F', '%25', '😀', 'ä+b', '?x=1#y', 'fetch', 'delete'];

describe('writing vectors over HTTP', () => {
  it('counts what was inserted and what was updated', async () => {
    const reply = await service.call('POST', VECTORS, {
      body: {
        vectors: [
          { id: 'a', values: [1, 2, 3] },
          { id: 'new', values: [1, 2, 3] },
        ],
      },
    });
    const { sequence, ...counts } = reply.json;
    assert.deepEqual(counts, { upserted_count: 2, inserted_count: 1, updated_count: 1 });
    assert.equal(sequence, 2);
    assert.equal(reply.headers['cache-control'], 'no-store');
  });

  it('returns the ids in order when some were generated', async () => {
    const { json } = await service.call('POST', VECTORS, {
      body: { vectors: [{ values: [1, 2, 3] }, { id: 'x', values: [1, 2, 3] }] },
    });
    assert.equal(json.ids.length, 2);
    assert.equal(json.ids[1], 'x');
    assert.equal((await service.call('GET', `${VECTORS}/${json.ids[0]}`)).status, 200);
  });

  it('observes the write mode', async () => {
    const write = (id: string, mode: string) =>
      service.call('POST', VECTORS, { body: { id, values: [1, 2, 3], mode } });
    await expectProblem(write('a', 'insert'), 409, 'vector_exists');
    await expectProblem(write('new', 'update'), 404, 'vector_not_found');
    assert.equal((await write('a', 'update')).json.updated_count, 1);
    assert.equal((await write('new', 'insert')).json.inserted_count, 1);
  });

  it('writes nothing when one row is invalid, and points to it', async () => {
    const { commitCount } = service;
    const body = {
      vectors: [
        { id: 'n1', values: [1, 2, 3] },
        { id: 'n2', values: [1, 2] },
      ],
    };
    await expectProblem(
      service.call('POST', VECTORS, { body }),
      400,
      'dimension_mismatch',
      '/vectors/1/values',
    );
    assert.equal(service.commitCount, commitCount);
  });

  it('requires an existing collection', async () => {
    const body = { vectors: [{ values: [1] }] };
    await expectProblem(
      service.call('POST', '/collections/none/vectors', { body }),
      404,
      'collection_not_found',
    );
  });

  it('returns metadata as it was sent, in every read', async () => {
    const metadata = '{ "n" : 1.0, "big": 12345678901234567890,"e":1e2, "é":"\\u00fc" }';
    await service.call('POST', VECTORS, {
      body: `{"id":"m","values":[1,2,3],"metadata":${metadata}}`,
    });
    const texts = [
      await service.call('GET', `${VECTORS}/m`),
      await service.call('GET', `${VECTORS}?limit=1000`),
      await service.call('POST', `${VECTORS}/fetch`, { body: { ids: ['m'] } }),
      await service.call('POST', '/collections/c/query', {
        body: { vector: [1, 2, 3], include_metadata: true },
      }),
    ].map(({ text }) => text);
    for (const text of texts) assert.ok(text.includes(`"metadata":${metadata}`), text);
  });

  it('returns the same float32 values, as numbers and in base64', async () => {
    const values = Float32Array.of(0.1, -0, 1e-42);
    const base64 = Buffer.from(values.buffer).toString('base64');
    await service.call('POST', VECTORS, { body: { id: 'v', values: base64 } });
    const { text, json } = await service.call('GET', `${VECTORS}/v`);
    assert.ok(text.includes('"values":[0.1,-0,'), text);
    assert.deepEqual(Float32Array.from(json.values), values);
    const found = await service.call('POST', '/query', {
      body: { collection: 'c', vector: [-9, 0, 0], include_values: 'base64', top_k: 4 },
    });
    const match = found.json.matches.find(({ id }: { id: string }) => id === 'v');
    assert.equal(match.values, base64);
  });

  it('takes any id in a path', async () => {
    for (const id of ODD_IDS) {
      const path = `${VECTORS}/${encodeURIComponent(id)}`;
      const put = await service.call('PUT', path, { body: { values: [1, 2, 3] } });
      assert.deepEqual([put.status, put.json.id], [200, id]);
      assert.equal((await service.call('GET', path)).json.id, id);
      assert.equal((await service.call('DELETE', path)).json.id, id);
      await expectProblem(service.call('GET', path), 404, 'vector_not_found');
    }
    const long = 'é'.repeat(256);
    const path = `${VECTORS}/${encodeURIComponent(long)}`;
    assert.equal((await service.call('PUT', path, { body: { values: [1, 2, 3] } })).json.id, long);
    await expectProblem(
      service.call('PUT', `${path}x`, { body: { values: [1, 2, 3] } }),
      400,
      'limit_exceeded',
      '/id',
    );
    await expectProblem(
      service.call('PUT', `${VECTORS}/a%0Ab`, { body: { values: [1, 2, 3] } }),
      400,
      'invalid_request',
      '/id',
    );
    for (const method of ['GET', 'PUT', 'DELETE']) {
      await expectProblem(service.call(method, `${VECTORS}/`), 404, 'route_not_found');
    }
  });

  it('replaces one vector whole, and says whether it is new', async () => {
    const put = (body: unknown) => service.call('PUT', `${VECTORS}/a`, { body });
    const reply = await put({ id: 'a', values: [3, 2, 1] });
    assert.deepEqual(reply.json, { id: 'a', collection: 'c', created: false, sequence: 2 });
    assert.deepEqual((await service.call('GET', `${VECTORS}/a`)).json.metadata, {});
    await expectProblem(put({ id: 'b', values: [3, 2, 1] }), 400, 'invalid_request', '/id');
    await expectProblem(put({ values: [3, 2] }), 400, 'dimension_mismatch', '/values');
    await expectProblem(put({}), 400, 'invalid_vector', '/values');
    const named = put({ values: [1, 2, 3], collection: 'c' });
    await expectProblem(named, 400, 'unknown_parameter', '/collection');
    await expectProblem(put({ vectors: [] }), 400, 'invalid_request', '/vectors');
  });

  it('finds the collection of PUT /vectors/{id} in the body, the query or the configuration', async () => {
    const values = [1, 2, 3];
    const put = (url: string, body: unknown, at = service) => at.call('PUT', url, { body });
    await service.call('POST', '/collections', { body: { id: 'e', dimension: 3 } });
    assert.equal((await put('/v1/vectors/x', { values, collection: 'c' })).json.collection, 'c');
    assert.equal((await put('/vectors/x?collection=e', { values })).json.collection, 'e');
    const both = await put('/vectors/x?collection=e', { values, collection: 'c' });
    assert.equal(both.json.collection, 'c');
    await expectProblem(put('/vectors/x', { values }), 400, 'collection_required');
    await expectProblem(put('/vectors/x?collection=', { values }), 400, 'invalid_request');
    await expectProblem(
      put('/vectors/x', { values, collection: 'none' }),
      404,
      'collection_not_found',
    );
    const other = await createFilledService({ defaultCollection: 'c' });
    assert.equal((await put('/vectors/x', { values }, other)).json.collection, 'c');
    await other.close();
  });

  it('patches metadata and values, on condition of the tag', async () => {
    const patch = (body: unknown, headers = {}) =>
      service.call('PATCH', `${VECTORS}/a`, { body, headers });
    const { headers } = await service.call('GET', `${VECTORS}/a`);
    const tag = headers.etag ?? '';
    const first = await patch({ metadata: { year: 2030 } }, { 'if-match': tag });
    assert.equal(first.status, 200);
    assert.notEqual(first.headers.etag, tag);
    const stale = patch({ metadata: {} }, { 'if-match': tag });
    await expectProblem(stale, 412, 'precondition_failed');
    const weak = patch({ metadata: {} }, { 'if-match': `W/${first.headers.etag}` });
    await expectProblem(weak, 412, 'precondition_failed');
    const listed = await patch({ values: [9, 9, 9] }, { 'if-match': `"x", ${first.headers.etag}` });
    assert.equal(listed.status, 200);
    assert.equal((await patch({ metadata: {} }, { 'if-match': '*' })).status, 200);
    await expectProblem(patch({ metadata: {} }, { 'if-match': 'x' }), 400, 'invalid_request');
    const { json } = await service.call('GET', `${VECTORS}/a`);
    assert.deepEqual([json.values, json.metadata.year], [[9, 9, 9], 2030]);
    for (const [body, code, pointer] of [
      [{}, 'invalid_request', ''],
      [{ values: [1] }, 'dimension_mismatch', '/values'],
      [{ values: 'x' }, 'invalid_vector', '/values'],
      [{ metadata: null }, 'invalid_metadata', '/metadata'],
      [{ metadata: { $set: 1 } }, 'invalid_metadata', '/metadata'],
      [{ id: 'x', metadata: {} }, 'unknown_parameter', '/id'],
    ] as const) {
      await expectProblem(patch(body), 400, code, pointer);
    }
    await expectProblem(
      service.call('PATCH', `${VECTORS}/none`, { body: { metadata: {} } }),
      404,
      'vector_not_found',
    );
  });

  it('rejects preconditions that it does not support', async () => {
    for (const [method, url, header] of [
      ['PUT', `${VECTORS}/a`, 'if-match'],
      ['PUT', `${VECTORS}/a`, 'if-none-match'],
      ['DELETE', `${VECTORS}/a`, 'if-match'],
      ['PATCH', `${VECTORS}/a`, 'if-none-match'],
      ['POST', VECTORS, 'if-match'],
    ] as const) {
      const calling = service.call(method, url, { headers: { [header]: '"x"' } });
      await expectProblem(calling, 400, 'invalid_request');
    }
  });

  it('deletes one, some by id or filter, or all, exactly one way', async () => {
    const remove = (body: unknown) => service.call('POST', `${VECTORS}/delete`, { body });
    const single = await service.call('DELETE', `${VECTORS}/a`);
    assert.deepEqual(single.json, { id: 'a', deleted: true, sequence: 2 });
    assert.deepEqual((await remove({ filter: { kind: 'x' }, dry_run: true })).json, {
      deleted_count: 1,
      sequence: 2,
    });
    await service.call('POST', VECTORS, { body: { id: 'e', values: [1, 2, 3] } });
    assert.equal((await remove({ ids: ['b', 'b', 'none', 'e'] })).json.deleted_count, 2);
    assert.equal((await remove({ all: true })).json.deleted_count, 1);
    for (const [body, code, pointer] of [
      [{}, 'invalid_request', ''],
      [{ ids: ['a'], all: true }, 'invalid_request', ''],
      [{ all: false }, 'invalid_request', '/all'],
      [{ all: 'true' }, 'invalid_request', '/all'],
      [{ ids: [] }, 'invalid_request', '/ids'],
      [{ ids: [1] }, 'invalid_request', '/ids/0'],
      [{ ids: ['a', ''] }, 'invalid_request', '/ids/1'],
      [{ ids: new Array(10_001).fill('a') }, 'limit_exceeded', '/ids'],
      [{ filter: [] }, 'invalid_filter', '/filter'],
      [{ filter: null }, 'invalid_filter', '/filter'],
      ['{"ids":["\\ud800"]}', 'invalid_request', '/ids/0'],
    ] as const) {
      await expectProblem(remove(body), 400, code, pointer);
    }
  });

  it('takes no body on DELETE', async () => {
    const calling = service.call('DELETE', `${VECTORS}/a`, { body: { ids: ['b'] } });
    await expectProblem(calling, 400, 'invalid_request');
    assert.equal((await service.call('GET', `${VECTORS}/a`)).status, 200);
  });
});

describe('reading vectors over HTTP', () => {
  it('omits what was not requested', async () => {
    const get = async (query: string) => (await service.call('GET', `${VECTORS}/a${query}`)).json;
    assert.deepEqual(Object.keys(await get('')), ['id', 'values', 'metadata']);
    assert.deepEqual(Object.keys(await get('?include_values=false')), ['id', 'metadata']);
    assert.deepEqual(Object.keys(await get('?include_metadata=false')), ['id', 'values']);
    for (const query of ['?include_values=no', '?include_values=1', '?include_values']) {
      await expectProblem(service.call('GET', `${VECTORS}/a${query}`), 400, 'invalid_request');
    }
  });

  it('answers 304 to the tag that a vector still has', async () => {
    const { headers } = await service.call('GET', `${VECTORS}/a`);
    assert.equal(headers['cache-control'], 'private, no-cache');
    const known = { headers: { 'if-none-match': headers.etag ?? '' } };
    assert.equal((await service.call('GET', `${VECTORS}/a`, known)).status, 304);
    await service.call('PUT', `${VECTORS}/a`, { body: { values: [1, 2, 3] } });
    assert.equal((await service.call('GET', `${VECTORS}/a`, known)).status, 200);
  });

  it('fetches by ids and lists missing ones', async () => {
    const fetch = (body: unknown) => service.call('POST', `${VECTORS}/fetch`, { body });
    const { json } = await fetch({ ids: ['d', 'none', 'a', 'd'] });
    assert.deepEqual(
      json.vectors.map(({ id }: { id: string }) => id),
      ['d', 'a'],
    );
    assert.deepEqual(json.not_found, ['none']);
    const bare = await fetch({ ids: ['a'], include_values: false, include_metadata: false });
    assert.deepEqual(bare.json.vectors, [{ id: 'a' }]);
    await expectProblem(fetch({ ids: new Array(1001).fill('a') }), 400, 'limit_exceeded', '/ids');
    await expectProblem(fetch({}), 400, 'invalid_request', '/ids');
  });

  it('lists pages by offset, by cursor, and by offset in the snapshot of a cursor', async () => {
    const list = (query: string) => service.call('GET', `${VECTORS}?${query}`);
    const first = await list('limit=2');
    assert.deepEqual(first.json.vectors, [
      { id: 'a', metadata: { year: 2020, kind: 'x' } },
      { id: 'b', metadata: { year: 2021, kind: 'x' } },
    ]);
    const second = await list(`limit=2&cursor=${first.json.next_cursor}`);
    assert.equal(second.json.has_more, false);
    const offset = await list('limit=1&offset=2&include_values=true&include_metadata=false');
    assert.deepEqual(offset.json.vectors, [{ id: 'd', values: [1, 1, 0.5] }]);
    assert.equal(offset.json.total, 3);
    assert.equal((await list('offset=0')).headers['cache-control'], 'no-store');
    const jump = await list(`offset=0&limit=1&cursor=${first.json.next_cursor}`);
    assert.deepEqual(jump.json.vectors, first.json.vectors.slice(0, 1));
    await expectProblem(list('offset=-1'), 400, 'invalid_request', '?offset');
    await expectProblem(list('cursor=forged'), 400, 'cursor_invalid');
  });

  it('takes a filter as JSON in the query', async () => {
    const list = (filter: string) =>
      service.call('GET', `${VECTORS}?filter=${encodeURIComponent(filter)}`);
    assert.equal((await list('{"kind":"y"}')).json.vectors.length, 1);
    for (const filter of ['{kind', '[]', '7', 'null', '"x"', '']) {
      await expectProblem(list(filter), 400, 'invalid_filter', '?filter');
    }
  });

  it('finds the collection of GET /vectors in the query or the configuration', async () => {
    assert.equal((await service.call('GET', '/v1/vectors?collection=c')).json.vectors.length, 3);
    await expectProblem(service.call('GET', '/vectors'), 400, 'collection_required');
    const other = await createService({ defaultCollection: 'c' });
    await expectProblem(other.call('GET', '/vectors'), 404, 'collection_not_found');
    await other.close();
    await expectProblem(
      service.call('GET', '/collections/c/vectors?collection=c'),
      400,
      'unknown_parameter',
    );
  });

  it('counts', async () => {
    const count = (body: unknown) => service.call('POST', '/collections/c/count', { body });
    assert.deepEqual((await count({})).json, { count: 3 });
    assert.deepEqual((await count({ filter: { kind: 'x' } })).json, { count: 2 });
    await expectProblem(count({ filter: 'x' }), 400, 'invalid_filter', '/filter');
    await expectProblem(count({ idempotency_key: 'k' }), 400, 'unknown_parameter');
  });
});
