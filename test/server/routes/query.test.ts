import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { countPins, createFilledService, expectProblem, type Service } from '../harness.js';

describe('queries over HTTP', () => {
  let service: Service;
  before(async () => {
    service = await createFilledService();
  });
  after(() => service.close());

  const vector = [1, 0.5, 0];
  const query = (body: unknown, search = '') =>
    service.call('POST', `/v1/collections/c/query${search}`, { body });

  it('return matches with scores, and metadata and values when requested', async () => {
    const { json, headers } = await query({ vector });
    assert.deepEqual(json.matches, [
      { id: 'd', score: 1.5 },
      { id: 'a', score: 1 },
      { id: 'b', score: 0.5 },
    ]);
    assert.deepEqual([json.has_more, json.total, json.sequence], [false, 3, 1]);
    assert.equal(headers['cache-control'], 'no-store');
    const full = await query({ vector, top_k: 1, include_metadata: true, include_values: true });
    assert.deepEqual(full.json.matches, [
      { id: 'd', score: 1.5, metadata: { year: 2022, kind: 'y' }, values: [1, 1, 0.5] },
    ]);
  });

  it('report their phases in the header Server-Timing', async () => {
    const { headers } = await query({ vector });
    assert.match(
      headers['server-timing'] ?? '',
      /^(?:(?:filter|wait|search|assemble|total);dur=\d+(?:\.\d{1,3})?(?:, |$)){5}$/,
    );
    const anywhere = await service.call('POST', '/query', { body: { vector, collection: 'c' } });
    assert.match(anywhere.headers['server-timing'] ?? '', /total;dur=/);
    const list = await service.call('GET', '/collections/c/vectors');
    assert.equal(list.headers['server-timing'], undefined);
  });

  it('take a vector in base64, or the id of a stored one', async () => {
    const base64 = Buffer.from(Float32Array.from(vector).buffer).toString('base64');
    assert.deepEqual((await query({ vector: base64 })).json, (await query({ vector })).json);
    const { json } = await query({ id: 'a' });
    assert.equal(
      json.matches.some(({ id }: { id: string }) => id === 'a'),
      false,
    );
    await expectProblem(query({ id: 'none' }), 404, 'vector_not_found');
  });

  it('take limit, offset and cursor from the body or the query string', async () => {
    const fromQuery = await query({ vector }, '?limit=1&offset=1');
    const fromBody = await query({ vector, limit: 1, offset: 1 });
    assert.deepEqual(fromQuery.json.matches, fromBody.json.matches);
    assert.equal((await query({ vector, limit: 1 }, '?limit=1')).status, 200);
    await expectProblem(query({ vector, limit: 1 }, '?limit=2'), 400, 'invalid_request', '?limit');
    const { next_cursor: cursor } = (await query({ vector, limit: 2 })).json;
    await expectProblem(
      query({ vector, cursor }, '?cursor=another'),
      400,
      'invalid_request',
      '?cursor',
    );
    await expectProblem(query({ vector }, `?offset=1&cursor=${cursor}`), 400, 'invalid_request');
    await expectProblem(query({ vector }, '?top_k=1'), 400, 'unknown_parameter', '?top_k');
    await expectProblem(query({ vector }, '?limit=abc'), 400, 'invalid_request', '?limit');
    const next = await query({ vector, cursor }, '?limit=1');
    assert.equal(next.json.matches[0].id, 'b');
  });

  // Bounds and malformed numbers are in test/conformance: 08-limits.json and api-bad-input.json.
  it('are refused at the parameter that has the wrong type or an unknown value', async () => {
    for (const [body, code, pointer] of [
      [{}, 'invalid_request', '/vector'],
      [{ vector, id: 'a' }, 'invalid_request', '/id'],
      [{ vector, include_metadata: 'true' }, 'invalid_request', '/include_metadata'],
      [{ vector, include_values: 'hex' }, 'invalid_request', '/include_values'],
      [{ vector, metric: 'l2' }, 'invalid_request', '/metric'],
      [{ vector, sort: [] }, 'invalid_request', '/sort'],
      [{ vector, sort: 'year' }, 'invalid_request', '/sort'],
      [{ vector, sort: [{ field: 'a', order: 'up' }] }, 'invalid_request', '/sort/0/order'],
      [{ vector, sort: [{ by: 'a', field: 'b' }] }, 'unknown_parameter', '/sort/0/by'],
      [{ vector, score_threshold: '1' }, 'invalid_request', '/score_threshold'],
      ['{"vector":[1,2,3],"score_threshold":1e999}', 'invalid_request', '/score_threshold'],
      [{ vector, filter: 'x' }, 'invalid_filter', '/filter'],
      [{ vector, filter: null }, 'invalid_filter', '/filter'],
      [{ vector, idempotency_key: 'k' }, 'unknown_parameter', '/idempotency_key'],
    ] as const) {
      await expectProblem(query(body), 400, code, pointer);
    }
  });

  it('find the collection of POST /query in the body, the query or the configuration', async () => {
    const anywhere = (body: object, search = '', at = service) =>
      at.call('POST', `/query${search}`, { body });
    assert.equal((await anywhere({ vector, collection: 'c' })).json.matches.length, 3);
    assert.equal((await anywhere({ vector }, '?collection=c')).json.matches.length, 3);
    const both = await anywhere({ vector, collection: 'c' }, '?collection=none');
    assert.equal(both.status, 200);
    await expectProblem(anywhere({ vector }), 400, 'collection_required');
    await expectProblem(anywhere({ vector, collection: 7 }), 400, 'invalid_request');
    const other = await createFilledService({ defaultCollection: 'c' });
    assert.equal((await anywhere({ vector }, '', other)).status, 200);
    await other.close();
  });

  it('are charged individually in a batch; none runs if the batch exceeds the limit', async () => {
    const { DEFAULT_LIMITS } = await import('../../../src/common/limits.js');
    const limits = { ...DEFAULT_LIMITS, readRateMax: 1, readBurstMax: 20 };
    const poor = await createFilledService({ limits });
    const batch = (count: number) => {
      const queries = new Array(count).fill({ vector });
      return poor.call('POST', '/collections/c/query/batch', { body: { queries } });
    };
    const first = await batch(15);
    assert.deepEqual([first.status, first.headers.ratelimit], [200, '"read";r=5;t=15']);
    let queryCount = 0;
    poor.hooks.beforeSearch = async () => {
      queryCount++;
    };
    await expectProblem(batch(15), 429, 'rate_limited');
    assert.equal(queryCount, 0);
    await poor.close();
  });

  it('end at the deadline, which aborts the search', async () => {
    const slow = await createFilledService({
      limits: {
        ...(await import('../../../src/common/limits.js')).DEFAULT_LIMITS,
        requestMsMax: 200,
      },
    });
    const pins = countPins();
    let reason: unknown;
    slow.hooks.beforeSearch = (signal) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => {
          reason = signal.reason;
          reject(signal.reason as Error);
        });
      });
    for (const [path, body] of [
      ['query', { vector }],
      ['query/batch', { queries: [{ vector }, { vector }, { vector }] }],
    ] as const) {
      reason = undefined;
      const calling = slow.call('POST', `/collections/c/${path}`, { body });
      const reply = await expectProblem(calling, 504, 'deadline_exceeded');
      assert.equal(reply.json.retryable, true);
      assert.equal((reason as unknown as { code: string }).code, 'deadline_exceeded');
    }
    assert.equal(pins.count, 0);
    await slow.close();
  });
});
