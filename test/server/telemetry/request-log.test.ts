// The audit log and the slow query log, neither of which contains user data.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Principal, parseGrant } from '../../../src/common/access.js';
import { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import type { Database } from '../../../src/database/database.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { openDatabase } from '../../database/harness.js';
import { eventually, withResolvers } from '../../support/waiting.js';
import { createFilledService, createService, type Service } from '../harness.js';
import { captureLog } from '../log.js';

const PRINCIPALS: Readonly<Record<string, Principal>> = {
  sk_admin: { id: 'key:admin', grants: [parseGrant('admin')!] },
  sk_reader: { id: 'key:reader', grants: [parseGrant('vectors:read:c')!] },
};

const authenticator = new Authenticator({
  apiKeys: {
    isInUse: true,
    verify(token) {
      const principal = PRINCIPALS[token];
      if (principal === undefined) throw new SagittaError('credentials_invalid', 'No.');
      return principal;
    },
  },
});

const as = (token: string, headers = {}) => ({ authorization: `Bearer ${token}`, ...headers });

describe('the audit log', () => {
  const log = captureLog('info');
  let service: Service;
  before(async () => {
    service = await createService({ logger: log.logger, authenticator });
  });
  beforeEach(() => log.clear());
  after(() => service.close());

  const admin = (method: string, url: string, body?: unknown) =>
    service.call(method, url, { body, headers: as('sk_admin', { 'x-request-id': 'r1' }) });

  it('has a line for each change of a collection with principal, client, target and status', async () => {
    await admin('POST', '/v1/collections', { id: 'c', dimension: 3, metric: 'dot' });
    await admin('PATCH', '/v1/collections/c', { description: 'secret plans' });
    await admin('DELETE', '/collections/c');
    const line = (audit: string) => ({
      level: 30,
      audit,
      principal: 'key:admin',
      client: '127.0.0.1',
      target: 'c',
      status: 200,
      request_id: 'r1',
      msg: 'audit',
    });
    assert.deepEqual(log.lines('audit'), [
      line('collection.create'),
      line('collection.update'),
      line('collection.delete'),
    ]);
    assert.ok(!log.text.includes('secret plans'));
  });

  it('has the generated id of a new collection', async () => {
    const { json } = await admin('POST', '/v1/collections', { dimension: 3, metric: 'dot' });
    assert.equal(log.lines('audit')[0]?.target, json.id);
  });

  it('has refused attempts, also unauthenticated ones', async () => {
    const attempt = async (token: string | null, method: string, url: string, body?: unknown) => {
      log.clear();
      const headers = token === null ? {} : as(token);
      await service.call(method, url, { body, headers });
      const lines = log.lines('audit');
      assert.equal(lines.length, 1, log.text);
      const { audit, principal, target, status } = lines[0]!;
      return [audit, principal, target, status];
    };
    const input = { id: 'taken', dimension: 3, metric: 'dot' };
    assert.deepEqual(await attempt('sk_admin', 'POST', '/collections', input), [
      ...['collection.create', 'key:admin', 'taken', 200],
    ]);
    for (const [token, url, input, expected] of [
      [null, '/collections/c', undefined, ['collection.delete', 'anonymous', 'c', 401]],
      ['sk_no', '/collections/c', undefined, ['collection.delete', 'anonymous', 'c', 401]],
      ['sk_reader', '/collections/c', undefined, ['collection.delete', 'key:reader', 'c', 403]],
      ['sk_reader', '/collections/x', undefined, ['collection.delete', 'key:reader', 'x', 404]],
      ['sk_admin', '/collections/gone', undefined, ['collection.delete', 'key:admin', 'gone', 404]],
    ] as const) {
      assert.deepEqual(await attempt(token, 'DELETE', url, input), expected);
    }
    assert.deepEqual(await attempt('sk_admin', 'POST', '/collections', input), [
      ...['collection.create', 'key:admin', 'taken', 409],
    ]);
    assert.deepEqual(await attempt('sk_reader', 'POST', '/collections', input), [
      ...['collection.create', 'key:reader', null, 403],
    ]);
    assert.deepEqual(await attempt('sk_admin', 'POST', '/collections', '{"id":'), [
      ...['collection.create', 'key:admin', null, 400],
    ]);
  });

  it('limits unauthenticated attempts to ten lines in ten seconds, and counts the rest', async () => {
    let nowMs = 0;
    const flooded = await createService({ logger: log.logger, authenticator, nowMs: () => nowMs });
    const attempt = (headers: Record<string, string>) =>
      flooded.call('DELETE', '/collections/none', { headers });
    const told = () => log.lines('audit').map(({ principal, unlogged }) => [principal, unlogged]);
    for (let i = 0; i < 25; i++) await attempt(i % 2 === 0 ? {} : as('sk_no'));
    // The content type is checked before authentication.
    await attempt({ accept: 'text/html' });
    assert.deepEqual(told(), new Array(10).fill(['anonymous', undefined]));
    log.clear();
    for (let i = 0; i < 15; i++) await attempt(as('sk_admin'));
    assert.deepEqual(told(), new Array(15).fill(['key:admin', undefined]));
    log.clear();
    nowMs = 10_001;
    await attempt({});
    await attempt({});
    assert.deepEqual(told(), [
      ['anonymous', 16],
      ['anonymous', undefined],
    ]);
    await flooded.close();
  });

  it('has the outcome of work that continued after its deadline', async () => {
    const slow = await createService({
      logger: log.logger,
      limits: { ...DEFAULT_LIMITS, requestMsMax: 20 },
    });
    await slow.call('POST', '/collections', { body: { id: 'c', dimension: 3, metric: 'dot' } });
    log.clear();
    const { promise: gate, resolve: finish } = withResolvers();
    slow.hooks.beforeCommit = () => gate;
    const { status } = await slow.call('DELETE', '/collections/c');
    assert.deepEqual([status, log.lines('audit')], [504, []]);
    finish();
    await eventually('the audit log has a line', () => log.lines('audit').length > 0);
    assert.deepEqual(
      log.lines('audit').map(({ audit, status }) => [audit, status]),
      [['collection.delete', 200]],
    );
    await slow.close();
  });

  it('has no lines for reads and for writes of vectors', async () => {
    await admin('GET', '/collections');
    await admin('PUT', '/collections/taken/vectors/v', { values: [1, 2, 3] });
    await admin('POST', '/collections/taken/query', { vector: [1, 2, 3] });
    assert.deepEqual(log.lines('audit'), []);
  });
});

describe('the slow query log', () => {
  it('has one line per query with the time of each phase and without user data', async () => {
    const log = captureLog('info');
    const service = await createFilledService({ logger: log.logger, slowQueryMs: 0 });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const query = { vector: [7.25, 0, 0], top_k: 2, filter: { kind: 'x' } };
    const headers = { traceparent, 'x-request-id': 'slow-1' };
    await service.call('POST', '/collections/c/query', { body: query, headers });
    const [line, ...others] = log.lines('slow query');
    assert.deepEqual(others, []);
    const { milliseconds, receive_ms, ...members } = line!;
    const times = Object.entries(members).filter(([name]) => name.endsWith('_ms'));
    const rest = Object.fromEntries(
      Object.entries(members).filter(([name]) => !name.endsWith('_ms')),
    );
    const names = ['parse', 'other', 'plan', 'filter', 'wait', 'search', 'assemble', 'reply'];
    assert.deepEqual(
      times.map(([name]) => name),
      names.map((name) => `${name}_ms`),
    );
    for (const [name, time] of [...times, ['receive_ms', receive_ms]] as [string, number][]) {
      assert.ok(time >= 0, name);
    }
    // Each is rounded to a microsecond.
    const sum = times.reduce((total, [, time]) => total + (time as number), 0);
    assert.ok(Math.abs(sum - (milliseconds as number)) < 0.01, `${sum} of ${milliseconds} ms`);
    assert.deepEqual(rest, {
      level: 40,
      request_id: 'slow-1',
      trace_id: '0af7651916cd43dd8448eb211c80319c',
      principal: 'anonymous',
      collection: 'c',
      kind: 'vector',
      top_k: 2,
      filter: '{f1:?}',
      is_continued: false,
      filter_conditions: 1,
      segments: 1,
      rows_scanned: 2,
      rows_passed: 2,
      rows_rescored: 2,
      msg: 'slow query',
    });
    log.clear();
    service.hooks.beforeSearch = async () => {
      throw new SagittaError('overloaded', 'Full.');
    };
    await service.call('POST', '/collections/c/query', { body: query });
    const failed = log.lines('slow query');
    assert.deepEqual(
      failed.map(({ code, filter }) => [code, filter]),
      [['overloaded', '{f1:?}']],
    );
    await service.close();
  });

  it('has one line per batch of queries, also for a batch that fails', async () => {
    const log = captureLog('info');
    const service = await createFilledService({ logger: log.logger, slowQueryMs: 0 });
    // Three groups, which are executed one after another.
    const queries = new Array(600).fill({ vector: [7.251953125, 0, 0], top_k: 2 });
    const batch = (options: { accept?: string } = {}) =>
      service.call('POST', '/collections/c/query/batch', { body: { queries }, headers: options });
    await batch();
    const lines = log.lines('slow query');
    assert.deepEqual(
      lines.map(({ query_count, collection, rows_scanned, code, top_k }) => ({
        top_k,
        query_count,
        collection,
        rows_scanned,
        code,
      })),
      [{ top_k: 2, query_count: 600, collection: 'c', rows_scanned: 1_800, code: undefined }],
    );
    assert.ok(!log.text.includes('7.251953125'));
    log.clear();
    let count = 0;
    service.hooks.beforeSearch = async () => {
      if (count++ >= 1) throw new SagittaError('overloaded', 'Full.');
    };
    await batch().catch(() => {});
    const failed = log.lines('slow query');
    assert.deepEqual(
      failed.map(({ query_count, code }) => [query_count, code]),
      [[256, 'overloaded']],
    );
    await service.close();
  });

  it('has no lines for fast queries', async () => {
    const log = captureLog('info');
    const service = await createFilledService({ logger: log.logger, slowQueryMs: 60_000 });
    await service.call('POST', '/collections/c/query', { body: { vector: [1, 0, 0] } });
    assert.deepEqual(log.lines('slow query'), []);
    await service.close();
  });
});

describe('the log', () => {
  it('has the trace id in every line of a request that has one', async () => {
    const log = captureLog('debug');
    const service = await createService({ logger: log.logger });
    const trace_id = '0af7651916cd43dd8448eb211c80319c';
    const headers = { traceparent: `00-${trace_id}-b7ad6b7169203331-00` };
    log.clear();
    await service.call('DELETE', '/collections/none', { headers });
    await logged(log, 1);
    const lines = ['request', 'request refused', 'audit'].flatMap((name) => log.lines(name));
    assert.deepEqual(
      lines.map((line) => line.trace_id),
      [trace_id, trace_id, trace_id],
    );
    log.clear();
    await service.call('DELETE', '/collections/none', { headers: { traceparent: 'nonsense' } });
    await logged(log, 1);
    assert.equal(log.lines('request').length, 1);
    assert.ok(!log.text.includes('trace_id') && !log.text.includes('nonsense'), log.text);
    await service.close();
  });

  it('never contains bodies, query strings or credentials', async () => {
    const log = captureLog('debug');
    const database: Database = await openDatabase({ limits: { idempotencyKeyCharactersMax: 200 } });
    const service = await createService({
      // A real database, for real searches and errors.
      database,
      logger: log.logger,
      authenticator,
      slowQueryMs: 0,
    });
    const urls = await sendEverything(service);
    await logged(log, urls);
    assert.ok(log.lines('slow query').length >= 4);
    assert.ok(log.lines('audit').length >= 4);
    assert.deepEqual(log.text.match(/\S*(marker|1234\.5)\S*/gi), null);
    await service.close();
    await database.close();
  });
});

/** Waits for the lines of `count` requests, which are logged when the replies are closed. */
function logged(log: ReturnType<typeof captureLog>, count: number): Promise<void> {
  return eventually(`${count} requests are logged`, () => log.lines('request').length >= count);
}

/** Sends every kind of request with markers in all user data. Returns the number of requests. */
async function sendEverything(service: Service): Promise<number> {
  let count = 0;
  const send = async (method: string, url: string, body?: unknown, headers = {}) => {
    count++;
    const reply = await service.call(method, url, {
      body,
      headers: as('sk_admin', { cookie: 'marker-cookie', ...headers }),
    });
    return reply;
  };
  const input = {
    id: 'c',
    dimension: 2,
    metric: 'dot',
    description: 'marker',
    labels: { a: 'marker' },
  };
  await send('POST', '/collections', input);
  await send('PATCH', '/collections/c', { description: 'marker-2' });
  await send('PATCH', '/collections/c', { marker: 1 });
  const vector = (id: string) => ({ id, values: [1234.5, 1], metadata: { marker: 'marker' } });
  const vectors = ['marker-1', 'marker-2', 'marker-3'].map(vector);
  const key = { 'idempotency-key': 'marker-key' };
  for (const mode of ['upsert', 'upsert', 'insert']) {
    await send('POST', '/collections/c/vectors', { vectors, mode }, key);
  }
  await send('POST', '/collections/c/vectors', '{"vectors": [{"id": "marker", "values": [1234.5,');
  await send('POST', '/collections/c/vectors', { vectors: [vector('marker'), vector('marker')] });
  await send('PUT', '/collections/c/vectors/marker-4', { values: [1234.5] });
  await send('PUT', '/vectors/marker-4?collection=c', {
    values: [1234.5, 2],
    metadata: { x: 'marker' },
  });
  await send('PATCH', '/collections/c/vectors/marker-4', { metadata: { x: 'marker' } });
  await send('PATCH', '/collections/c/vectors/marker-9', { metadata: { x: 'marker' } });
  await send('GET', '/collections/c/vectors/marker-1?include_values=true');
  await send('GET', '/collections/c/vectors/marker-9');
  await send('GET', '/collections/c/vectors?marker=marker');
  const filter = { marker: { $in: ['marker', 1234.5] } };
  const search = encodeURIComponent(JSON.stringify(filter));
  const page = await send('GET', `/collections/c/vectors?limit=1&filter=${search}`);
  assert.equal(page.status, 200);
  await send('GET', `/collections/c/vectors?cursor=${page.json.next_cursor}`);
  await send('GET', '/collections/c/vectors?cursor=marker-cursor');
  await send('POST', '/collections/c/vectors/fetch', { ids: ['marker-1', 'marker-9'] });
  await send('POST', '/collections/c/count', { filter });
  const query = { vector: [1234.5, 1], filter, limit: 1, include_metadata: true };
  const found = await send('POST', '/collections/c/query', query);
  assert.equal(found.json.matches.length, 1);
  await send('POST', '/collections/c/query', { cursor: found.json.next_cursor });
  await send('POST', '/collections/c/query', { cursor: 'marker-cursor' });
  await send('POST', '/collections/c/query', { id: 'marker-9' });
  await send('POST', '/query?collection=c', {
    id: 'marker-1',
    filter: { marker: { $bad: 'marker' } },
  });
  await send('POST', '/collections/c/vectors/delete', { ids: ['marker-1'] });
  await send('POST', '/collections/c/vectors/delete', { filter });
  await send('DELETE', '/collections/c/vectors/marker-9');
  await send('DELETE', '/collections/c');
  await send('DELETE', '/collections/c');
  await send('GET', '/marker-path?marker');
  await send('GET', '/collections', undefined, { authorization: 'Bearer sk_marker' });
  await send('GET', '/collections', undefined, { authorization: 'marker' });
  await send('GET', '/collections', undefined, { accept: 'text/marker' });
  await send('POST', '/collections', 'marker', { 'content-type': 'text/marker' });
  return count;
}
