import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createService, expectProblem, type Service } from '../harness.js';

const manyLabels = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`label-${i}`, 'x']));

describe('collections over HTTP', () => {
  let service: Service;
  before(async () => {
    service = await createService();
  });
  after(() => service.close());

  const create = (body: unknown, query = '') =>
    service.call('POST', `/v1/collections${query}`, { body });

  it('are created with defaults, and the reply says where', async () => {
    const reply = await create({ id: 'made', dimension: 3 });
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.location, '/v1/collections/made');
    assert.equal(reply.headers['cache-control'], 'no-store');
    const { metric, description, labels, vector_count: count } = reply.json;
    assert.deepEqual([metric, description, labels, count], ['cosine', null, {}, 0]);
    const generated = await create({ dimension: 3, metric: 'dot', description: 'x' });
    assert.equal(generated.headers.location, `/v1/collections/${generated.json.id}`);
  });

  it('are the same under every prefix', async () => {
    await create({ id: 'same', dimension: 3 });
    const [a, b] = [
      await service.call('GET', '/v1/collections/same'),
      await service.call('GET', '/collections/same'),
    ];
    assert.deepEqual(a.json, b.json);
    assert.equal(a.headers.etag, b.headers.etag);
  });

  it('are created once; if_not_exists returns an equal one', async () => {
    await create({ id: 'once', dimension: 3 });
    await expectProblem(create({ id: 'once', dimension: 3 }), 409, 'collection_exists');
    const again = await create({ id: 'once', dimension: 3 }, '?if_not_exists=true');
    assert.equal(again.status, 200);
    assert.equal(again.headers.location, undefined);
    await expectProblem(
      create({ id: 'once', dimension: 4 }, '?if_not_exists=true'),
      409,
      'collection_exists',
    );
  });

  it('are rejected with a pointer to each issue', async () => {
    for (const [body, code, pointer] of [
      [{}, 'invalid_request', '/dimension'],
      [{ dimension: 0 }, 'invalid_request', '/dimension'],
      [{ dimension: 1.5 }, 'invalid_request', '/dimension'],
      [{ dimension: '3' }, 'invalid_request', '/dimension'],
      [{ dimension: [3] }, 'invalid_request', '/dimension'],
      [{ dimension: null }, 'invalid_request', '/dimension'],
      [{ dimension: 16_385 }, 'limit_exceeded', '/dimension'],
      [{ dimension: 3, metric: 'l2' }, 'invalid_request', '/metric'],
      [{ dimension: 3, id: '-x' }, 'invalid_request', '/id'],
      [{ dimension: 3, id: '' }, 'invalid_request', '/id'],
      [{ dimension: 3, id: 'a'.repeat(129) }, 'invalid_request', '/id'],
      [{ dimension: 3, id: 'a\n' }, 'invalid_request', '/id'],
      [{ dimension: 3, labels: { a: 1 } }, 'invalid_request', '/labels'],
      [{ dimension: 3, labels: [] }, 'invalid_request', '/labels'],
      [{ dimension: 3, labels: { a: 'x'.repeat(257) } }, 'limit_exceeded', '/labels'],
      [{ dimension: 3, labels: manyLabels(65) }, 'limit_exceeded', '/labels'],
      [{ dimension: 3, description: 'x'.repeat(2001) }, 'limit_exceeded', '/description'],
      [{ dimension: 3, size: 1 }, 'unknown_parameter', '/size'],
      ['{"dimension":3,"__proto__":{"metric":"dot"}}', 'unknown_parameter', '/__proto__'],
      ['[1]', 'invalid_request', ''],
    ] as const) {
      await expectProblem(create(body), 400, code, pointer);
    }
    assert.equal((await create({ dimension: 3, labels: manyLabels(64) })).status, 200);
    const { json } = await create({ dimension: 16_385 });
    assert.deepEqual([json.errors[0].expected, json.errors[0].actual], [16_384, 16_385]);
    const many = await create({ dimension: 'x', metric: 'y', z: 1 });
    assert.equal(many.json.code, 'invalid_request');
    assert.equal(many.json.errors.length, 3);
  });

  it('keep a label of any name', async () => {
    await create('{"id":"labelled","dimension":1,"labels":{"__proto__":"a","b":"c"}}');
    const { text } = await service.call('GET', '/collections/labelled');
    assert.match(text, /"labels":\{"__proto__":"a","b":"c"\}/);
  });

  it('are cached for 30 s and then revalidated by their ETag', async () => {
    await create({ id: 'cached', dimension: 3 });
    const first = await service.call('GET', '/collections/cached');
    assert.equal(first.headers['cache-control'], 'private, max-age=30');
    const tag = first.headers.etag ?? '';
    assert.match(tag, /^"[\w-]{22}"$/);
    for (const header of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
      const again = await service.call('GET', '/collections/cached', {
        headers: { 'if-none-match': header },
      });
      assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', tag]);
    }
    const other = await service.call('GET', '/collections/cached', {
      headers: { 'if-none-match': '"x"' },
    });
    assert.equal(other.status, 200);
    await service.call('PATCH', '/collections/cached', { body: { description: 'new' } });
    const changed = await service.call('GET', '/collections/cached', {
      headers: { 'if-none-match': tag },
    });
    assert.equal(changed.status, 200);
  });

  it('are listed page by page', async () => {
    const other = await createService();
    for (const id of ['a', 'b', 'c']) {
      await other.call('POST', '/collections', { body: { id, dimension: 1 } });
    }
    const first = await other.call('GET', '/v1/collections?limit=2');
    assert.equal(first.json.collections.length, 2);
    assert.deepEqual([first.json.has_more, first.json.total], [true, 3]);
    const cursor = encodeURIComponent(first.json.next_cursor);
    const second = await other.call('GET', `/v1/collections?limit=2&cursor=${cursor}`);
    assert.equal(second.json.collections[0].id, 'c');
    assert.equal('next_cursor' in second.json, false);
    await other.close();
  });

  it('take parameters by their type, once each, and no others', async () => {
    for (const [query, code, pointer] of [
      ['limit=abc', 'invalid_request', '?limit'],
      ['limit=1.5', 'invalid_request', '?limit'],
      ['limit=1e2', 'invalid_request', '?limit'],
      ['limit=+1', 'invalid_request', '?limit'],
      ['limit=0x1', 'invalid_request', '?limit'],
      ['limit=', 'invalid_request', '?limit'],
      ['limit=0', 'invalid_request', '?limit'],
      ['limit=-1', 'invalid_request', '?limit'],
      ['limit=1001', 'limit_exceeded', '?limit'],
      ['limit=1&limit=1', 'invalid_request', '?limit'],
      ['limit=1&Limit=1', 'unknown_parameter', '?Limit'],
      ['cursor=', 'invalid_request', '?cursor'],
      ['__proto__=1', 'unknown_parameter', '?__proto__'],
      ['offset=1', 'unknown_parameter', '?offset'],
    ] as const) {
      await expectProblem(service.call('GET', `/collections?${query}`), 400, code, pointer);
    }
    const { json } = await service.call('GET', '/collections?limit=1&limit=1');
    assert.match(json.detail, /Expected the parameter once; found it 2 times/);
    await expectProblem(create({ dimension: 1 }, '?if_not_exists=1'), 400, 'invalid_request');
    await expectProblem(create({ dimension: 1 }, '?if_not_exists'), 400, 'invalid_request');
  });

  it('change in description and labels only', async () => {
    await create({ id: 'changed', dimension: 3, labels: { a: '1' } });
    const reply = await service.call('PATCH', '/collections/changed', {
      body: { labels: { b: '2' } },
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    assert.deepEqual(reply.json.labels, { b: '2' });
    for (const body of [{ dimension: 4 }, { id: 'x' }, { idempotency_key: 'k' }]) {
      await expectProblem(
        service.call('PATCH', '/collections/changed', { body }),
        400,
        'unknown_parameter',
      );
    }
    await expectProblem(
      service.call('PATCH', '/collections/none', { body: {} }),
      404,
      'collection_not_found',
    );
  });

  it('are deleted with a count and then no longer exist', async () => {
    await create({ id: 'gone', dimension: 1 });
    await service.call('POST', '/collections/gone/vectors', { body: { values: [1] } });
    const reply = await service.call('DELETE', '/v1/collections/gone');
    assert.deepEqual(reply.json, { id: 'gone', deleted: true, vector_count: 1 });
    for (const method of ['GET', 'DELETE']) {
      await expectProblem(service.call(method, '/collections/gone'), 404, 'collection_not_found');
    }
  });
});
