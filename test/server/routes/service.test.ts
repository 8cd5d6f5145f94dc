import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { createFilledService, createService, expectProblem, type Service } from '../harness.js';

describe('the service', () => {
  let service: Service;
  before(async () => {
    service = await createFilledService({ limits: { ...DEFAULT_LIMITS, topKMax: 77 } });
  });
  after(() => service.close());

  it('reports every limit as configured', async () => {
    const { json } = await service.call('GET', '/v1/limits');
    assert.equal(Object.keys(json).length, Object.keys(DEFAULT_LIMITS).length);
    assert.equal(json.top_k_max, 77);
    assert.equal(json.body_bytes_max, 64_000_000);
    const calling = service.call('POST', '/collections/c/query', {
      body: { vector: [1, 2, 3], top_k: 78 },
    });
    const problem = await expectProblem(calling, 400, 'limit_exceeded', '/top_k');
    assert.equal(problem.json.errors[0].expected, 77);
  });

  it('is live in every state, and ready when it serves requests', async (t) => {
    const { mock } = t.mock.getter(service.database, 'isStopping', () => true);
    assert.equal((await service.call('GET', '/livez')).status, 200);
    assert.equal((await service.call('GET', '/limits')).status, 200);
    const stopping = await service.call('GET', '/readyz');
    assert.deepEqual([stopping.status, stopping.json.status], [503, 'stopping']);
    assert.match(stopping.json.reason, /finishes/);
    assert.equal(stopping.headers['retry-after'], '1');
    for (const url of ['/collections', '/v1/collections/c/vectors/a']) {
      const { headers } = await expectProblem(service.call('GET', url), 503, 'stopping');
      assert.ok(headers['retry-after']);
    }
    mock.restore();
    const { status, json } = await service.call('GET', '/readyz');
    assert.deepEqual(
      [status, json],
      [200, { status: 'ready', collections_loading: 0, collections_not_ready: [], problems: [] }],
    );
  });

  it('looks at all collections, however few fit in a page', async (t) => {
    const small = await createService({ limits: { ...DEFAULT_LIMITS, pageLimitDefault: 1 } });
    t.after(() => small.close());
    for (const id of ['a', 'b', 'c']) {
      await small.call('POST', '/collections', { body: { id, dimension: 3 } });
    }
    assert.match((await small.call('GET', '/metrics')).text, /^sagitta_collections 3$/m);
  });

  it('counts requests by route and status, and vectors when scraped', async () => {
    await service.call('GET', '/v1/collections/c');
    await service.call('GET', '/collections/none');
    await service.call('GET', '/wp-login.php');
    const { text, headers } = await service.call('GET', '/metrics');
    assert.match(headers['content-type'] ?? '', /^text\/plain; version=0\.0\.4/);
    for (const line of [
      /^sagitta_http_request_duration_seconds_count\{method="GET",route="\/collections\/\{id\}",status="200"\} 1$/m,
      /^sagitta_http_request_duration_seconds_count\{method="GET",route="\/collections\/\{id\}",status="404"\} 1$/m,
      /^sagitta_http_request_duration_seconds_count\{method="GET",route="other",status="404"\} 1$/m,
      /^sagitta_vectors 3$/m,
      /^sagitta_collections 1$/m,
      /^process_cpu_seconds_total \d/m,
      /^process_resident_memory_bytes \d{7,}$/m,
    ]) {
      assert.match(text, line);
    }
  });

  it('answers HEAD like GET, without the body', async () => {
    const get = await service.call('GET', '/collections/c');
    const head = await service.call('HEAD', '/collections/c');
    assert.deepEqual([head.status, head.text], [200, '']);
    assert.equal(head.headers.etag, get.headers.etag);
    assert.equal(head.headers['content-length'], get.headers['content-length']);
  });
});
