// GET /traffic: what counts, what it says about slow queries, and whom it names collections to.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { parseGrant } from '../../../src/common/access.js';
import type { ErrorCode } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { createDatabaseMetrics } from '../../../src/database/database-metrics.js';
import { createMetrics } from '../../../src/platform/metrics.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { openDatabase } from '../../database/harness.js';
import { createFilledService, createService, expectProblem, type Service } from '../harness.js';

interface Interval {
  readonly requests: number;
  readonly errors: number;
  readonly rows_written: number;
}

const sumOf = (intervals: readonly Interval[], name: keyof Interval) =>
  intervals.reduce((sum, interval) => sum + interval[name], 0);

async function createMeasuredService(): Promise<Service> {
  const metrics = createMetrics();
  const database = await openDatabase({ observer: createDatabaseMetrics(metrics) });
  const service = await createService({ metrics, database });
  const body = { id: 'c', dimension: 3, metric: 'dot' };
  await service.call('POST', '/collections', { body });
  return service;
}

describe('the traffic', () => {
  let service: Service;
  before(async () => {
    service = await createMeasuredService();
  });
  after(async () => {
    await service.close();
    await service.database.close();
  });

  it('has requests, errors, written rows and the queries of each collection', async () => {
    const vectors = ['a', 'b'].map((id) => ({ id, values: [1, 2, 3] }));
    await service.call('POST', '/collections/c/vectors', { body: { vectors } });
    await service.call('POST', '/collections/c/query', { body: { vector: [1, 0, 0] } });
    const queries = [{ vector: [1, 0, 0] }, { id: 'a' }];
    await service.call('POST', '/collections/c/query/batch', { body: { queries } });
    await service.call('GET', '/collections/none');
    // Neither probes nor unknown paths count.
    for (const url of ['/livez', '/metrics', '/limits', '/traffic', '/wp-login.php']) {
      await service.call('GET', url);
    }
    const { status, json } = await service.call('GET', '/v1/traffic');
    assert.equal(status, 200);
    assert.equal(json.node, null);
    const { intervals, collections } = json;
    assert.equal(sumOf(intervals, 'requests'), 5);
    assert.equal(sumOf(intervals, 'errors'), 1);
    assert.equal(sumOf(intervals, 'rows_written'), 2);
    assert.ok(Date.parse(intervals[0].time) <= Date.now());
    assert.ok(intervals.some(({ p50_ms }: { p50_ms: number | null }) => p50_ms !== null));
    const [collection, ...others] = collections;
    assert.deepEqual(others, []);
    const { id, queries: queryCount, rows_written } = collection;
    assert.deepEqual({ id, queryCount, rows_written }, { id: 'c', queryCount: 3, rows_written: 2 });
  });

  it('counts the rows of streams', async () => {
    const before = (await service.call('GET', '/traffic')).json.intervals;
    await service.call('POST', '/collections/c/vectors', {
      headers: { 'content-type': 'application/x-ndjson' },
      body: '{"id":"x","values":[1,2,3]}\n{"id":"y","values":[1,2,3]}\n',
    });
    const { intervals } = (await service.call('GET', '/traffic')).json;
    assert.equal(sumOf(intervals, 'rows_written') - sumOf(before, 'rows_written'), 2);
  });

  it('goes back by a number of minutes, which is checked', async () => {
    assert.equal((await service.call('GET', '/traffic?minutes=5')).status, 200);
    const refuse = (minutes: string, code: ErrorCode) =>
      expectProblem(service.call('GET', `/traffic?minutes=${minutes}`), 400, code, '?minutes');
    for (const minutes of ['0', '1.5', 'x']) await refuse(minutes, 'invalid_request');
    await refuse('61', 'limit_exceeded');
  });
});

describe('the slowest queries', () => {
  it('have the breakdown of their time and no user data', async () => {
    const service = await createFilledService({ slowQueryMs: 60_000 });
    const body = { vector: [7.25, 0, 0], top_k: 2, filter: { kind: 'secret' } };
    const headers = { 'x-request-id': 'slow-1' };
    await service.call('POST', '/collections/c/query', { body, headers });
    const { json, text } = await service.call('GET', '/traffic');
    const [query, ...others] = json.slow_queries;
    assert.deepEqual(others, []);
    const { collection, request_id, kind, top_k, filter, milliseconds } = query;
    assert.deepEqual(
      { collection, request_id, kind, top_k, filter },
      { collection: 'c', request_id: 'slow-1', kind: 'vector', top_k: 2, filter: '{f1:?}' },
    );
    const names = ['parse', 'plan', 'filter', 'wait', 'search', 'assemble', 'reply', 'other'];
    const sum = names.reduce((total, name) => total + query[`${name}_ms`], 0);
    assert.ok(Math.abs(sum - milliseconds) < 0.01, `${sum} of ${milliseconds} ms`);
    assert.ok(!text.includes('7.25') && !text.includes('secret'));
    await service.close();
  });

  it('name the kind of a query, and the error of one that failed', async () => {
    const service = await createFilledService({
      limits: { ...DEFAULT_LIMITS, pageLimitDefault: 1 },
    });
    const query = async (body: object) =>
      (await service.call('POST', '/collections/c/query', { body })).json;
    await query({ id: 'a' });
    await query({ recommend: { positive: ['a'] } });
    const { next_cursor: cursor } = await query({ vector: [1, 0, 0], limit: 1 });
    await query({ cursor });
    await service.call('POST', '/collections/c/query/batch', { body: { queries: [{ id: 'a' }] } });
    await query({ id: 'none' });
    const { json } = await service.call('GET', '/traffic');
    const kinds: [string, string | undefined][] = json.slow_queries.map(
      ({ kind, code }: { kind: string; code?: string }) => [kind, code],
    );
    assert.deepEqual(kinds.sort(), [
      ['batch', undefined],
      ['continued', undefined],
      ['id', undefined],
      ['id', 'vector_not_found'],
      ['recommend', undefined],
      ['vector', undefined],
    ]);
    await service.close();
  });

  it('and the traffic name only collections that the caller has a scope for', async () => {
    const grants = {
      all: ['admin'],
      monitor: ['metrics:read'],
      other: ['metrics:read', 'vectors:read:d*'],
    };
    const authenticator = new Authenticator({
      apiKeys: {
        isInUse: true,
        verify: (token) => ({
          id: `key:${token}`,
          grants: grants[token.slice(3) as keyof typeof grants].map((text) => parseGrant(text)!),
        }),
      },
    });
    const service = await createService({ authenticator });
    const as = (name: string) => ({ headers: { authorization: `Bearer sk_${name}` } });
    const post = (url: string, body: object) => service.call('POST', url, { ...as('all'), body });
    await post('/collections', { id: 'c', dimension: 3, metric: 'dot' });
    await post('/collections/c/query', { vector: [1, 2, 3] });
    const namesFor = async (name: string) => {
      const { json } = await service.call('GET', '/traffic', as(name));
      const idsOf = (rows: { id?: string | null; collection?: string }[]) =>
        rows.map(({ id, collection }) => id ?? collection ?? null);
      return [idsOf(json.collections), idsOf(json.slow_queries)];
    };
    assert.deepEqual(await namesFor('all'), [['c'], ['c']]);
    assert.deepEqual(await namesFor('monitor'), [[null], []]);
    assert.deepEqual(await namesFor('other'), [[null], []]);
    await service.close();
  });
});
