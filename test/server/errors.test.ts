import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { FastifyRequest } from 'fastify';
import {
  ERROR_TITLES,
  type ErrorCode,
  field,
  type IssueLocation,
  parameter,
  rowField,
  SagittaError,
  validationError,
} from '../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { silentLogger } from '../../src/common/logger.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { toClientError } from '../../src/server/wire/failures.js';
import {
  BODY_LAYOUT,
  type IssueLayout,
  isRetryableCode,
  PARAMETER_LAYOUT,
  problemReply,
  STATUS_OF_CODE,
  STREAM_LAYOUT,
} from '../../src/server/wire/problem.js';
import { createFilledService, createService, expectProblem, type Service } from './harness.js';

describe('problems', () => {
  it('take the end of a connection before a stream for what the client did', () => {
    const error = Object.assign(new Error('Premature close'), {
      code: 'ERR_STREAM_PREMATURE_CLOSE',
    });
    const request = { routeOptions: { config: {} } } as FastifyRequest;
    assert.equal(toClientError(error, request).code, 'deadline_exceeded');
  });

  it('exist for every code, with a status of 400 or above', () => {
    for (const code of Object.keys(ERROR_TITLES) as ErrorCode[]) {
      assert.ok(STATUS_OF_CODE[code] >= 400, code);
      const { status, headers, body } = problemReply(new SagittaError(code, 'why'), {
        requestId: 'r',
        path: '/p',
        layout: BODY_LAYOUT,
      });
      assert.deepEqual(JSON.parse(body), {
        type: `urn:sagitta:error:${code}`,
        title: ERROR_TITLES[code],
        status,
        detail: 'why',
        instance: '/p',
        code,
        request_id: 'r',
        retryable: isRetryableCode(code),
      });
      assert.equal(headers['cache-control'], 'no-store');
      assert.equal('retry-after' in headers, status === 503 || status === 429);
      const isChallenged = status === 401 || code === 'insufficient_scope';
      assert.equal('www-authenticate' in headers, isChallenged);
    }
  });

  it('have Retry-After where the error has it', () => {
    const error = new SagittaError('overloaded', 'full', { retryAfterSeconds: 7 });
    const { headers } = problemReply(error, { requestId: 'r', path: '/p', layout: BODY_LAYOUT });
    assert.equal(headers['retry-after'], '7');
  });

  const render = (location: IssueLocation, layout: IssueLayout) => {
    const error = validationError([{ location, code: 'invalid_vector', detail: 'Why.' }]);
    const { body } = problemReply(error, { requestId: 'r', path: '/p', layout });
    const { detail, errors } = JSON.parse(body);
    const [{ pointer }] = errors;
    assert.equal(detail, pointer === '' ? 'Why.' : `${pointer}: Why.`);
    return pointer;
  };

  it('point to fields and rows where the request has them', () => {
    assert.equal(render(field(), BODY_LAYOUT), '');
    assert.equal(render(field('filter', '$or', 1, 'a/b~c'), BODY_LAYOUT), '/filter/$or/1/a~1b~0c');
    assert.equal(render(rowField(0, 'id'), BODY_LAYOUT), '/id');
    assert.equal(render(rowField(0), BODY_LAYOUT), '');
    assert.equal(render(rowField(7, 'values', 2), STREAM_LAYOUT), '/rows/7/values/2');
    const queries = { ...BODY_LAYOUT, rows: 'queries' as const };
    assert.equal(render(rowField(7, 'vector'), queries), '/queries/7/vector');
  });

  it('point to parameters by their names', () => {
    assert.equal(render(parameter('limit'), BODY_LAYOUT), '?limit');
    assert.equal(render(field('filter', 'a', '$x'), PARAMETER_LAYOUT), '?filter/a/$x');
    assert.equal(render(field('limit'), { ...BODY_LAYOUT, parameters: ['limit'] }), '?limit');
    assert.equal(render(field('offset'), { ...BODY_LAYOUT, parameters: ['limit'] }), '/offset');
  });

  it('repeat no pointer in a detail that sums up all issues', () => {
    const issue = { location: rowField(3, 'id'), code: 'vector_exists', detail: 'Why.' } as const;
    const error = new SagittaError('vector_exists', '1 of 5 ids exists.', { issues: [issue] });
    const { body } = problemReply(error, { requestId: 'r', path: '/p', layout: STREAM_LAYOUT });
    assert.equal(JSON.parse(body).detail, '1 of 5 ids exists.');
  });
});

describe('errors over HTTP', () => {
  let service: Service;
  const logged: { details: object; message: string }[] = [];
  before(async () => {
    const logger = {
      ...silentLogger,
      error: (details: object, message: string) => logged.push({ details, message }),
    };
    service = await createFilledService({
      limits: { ...DEFAULT_LIMITS, bodyBytesMax: 200_000 },
      logger,
    });
  });
  after(() => service.close());

  it('are 404 for unknown routes', async () => {
    for (const url of [
      '//',
      '/v1',
      '/v2/collections',
      '/v1/v1/collections',
      '/collections/',
      '/v1/livez',
      '/x',
    ]) {
      await expectProblem(service.call('GET', url), 404, 'route_not_found');
    }
    // A body of an unknown content type or length is refused without being read.
    const posted = service.call('POST', '/nope', {
      body: 'x'.repeat(300_000),
      headers: { 'content-type': 'text/csv' },
    });
    await expectProblem(posted, 404, 'route_not_found');
  });

  it('are 405 with the supported methods of a path', async () => {
    for (const [method, url, allow] of [
      ['PUT', '/v1/collections', 'POST, GET, HEAD'],
      ['POST', '/collections/c', 'GET, HEAD, PATCH, DELETE'],
      ['GET', '/vectors/a', 'PUT'],
      ['OPTIONS', '/query', 'POST'],
      ['GET', '/collections/c/query', 'POST'],
      ['POST', '/livez', 'GET, HEAD'],
      ['DELETE', '/collections/c/vectors', 'POST, GET, HEAD'],
    ] as const) {
      const reply = await expectProblem(service.call(method, url), 405, 'method_not_allowed');
      assert.equal(reply.headers.allow, allow, `${method} ${url}`);
    }
    // The id of a vector may equal the name of a route.
    const read = service.call('GET', '/collections/c/vectors/fetch');
    await expectProblem(read, 404, 'vector_not_found');
  });

  it('are 400 for paths that are not UTF-8', async () => {
    for (const part of ['%', '%zz', '%ff', '%c3%28', '%ed%a0%80']) {
      const calling = service.call('GET', `/collections/c/vectors/${part}`);
      await expectProblem(calling, 400, 'invalid_request');
    }
    const long = service.call('GET', `/collections/c/vectors/${'x'.repeat(5000)}`);
    const { json } = await expectProblem(long, 400, 'invalid_request');
    assert.match(json.detail, /too long for an id/);
  });

  it('are 415 for bodies that are not plain JSON', async () => {
    const post = (body: unknown, headers: Record<string, string>) =>
      service.call('POST', '/collections/c/query', { body, headers });
    const body = { vector: [1, 2, 3] };
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/merge-patch+json',
      'application/jsonx',
      'x',
      'application/json; charset=latin1',
      'application/json;charset="utf-16"',
    ]) {
      const calling = post(body, { 'content-type': type });
      await expectProblem(calling, 415, 'unsupported_media_type');
    }
    await expectProblem(post(body, { 'content-encoding': 'br' }), 415, 'unsupported_media_type');
    for (const type of [
      'application/json; charset=UTF-8',
      'Application/JSON',
      'application/json;x=y',
    ]) {
      assert.equal((await post(body, { 'content-type': type })).status, 200, type);
    }
    for (const text of ['', '{', '{"vector":[1,2,3],}', "{'vector':[1]}", '{"vector":[1,2,3]} x']) {
      await expectProblem(post(text, {}), 400, 'invalid_json', '');
    }
    await expectProblem(post(Buffer.from([0x22, 0xc3, 0x28, 0x22]), {}), 400, 'invalid_json');
    await expectProblem(service.call('POST', '/collections/c/query'), 400, 'invalid_json');
  });

  it('name the size limit of a body and the size found', async () => {
    const calling = service.call('POST', '/collections/c/query', { body: ' '.repeat(200_001) });
    const { json } = await expectProblem(calling, 413, 'payload_too_large');
    assert.deepEqual([json.errors[0].expected, json.errors[0].actual], [200_000, 200_001]);
  });

  it('are 406 for clients that do not accept JSON', async () => {
    const get = (accept: string) => service.call('GET', '/limits', { headers: { accept } });
    for (const accept of [
      'text/html',
      'application/xml, text/*',
      'application/json;q=0',
      '*/*;q=0',
    ]) {
      await expectProblem(get(accept), 406, 'not_acceptable');
    }
    for (const accept of [
      '*/*',
      'application/*',
      'text/html, application/json;q=0.1',
      'application/JSON; charset=utf-8',
      'application/json, */*;q=0',
      'text/html;q=0, */*',
    ]) {
      assert.equal((await get(accept)).status, 200, accept);
    }
    assert.equal(
      (await service.call('GET', '/livez', { headers: { accept: 'text/html' } })).status,
      200,
    );
  });

  it('of the server contain only a request id, under which the log has the details', async () => {
    for (const error of [
      new Error('secret path'),
      new SagittaError('internal', 'secret path'),
      new SagittaError('data_corrupt', 'secret path'),
      'secret path',
    ]) {
      service.hooks.beforeSearch = () => Promise.reject(error);
      const calling = service.call('POST', '/collections/c/query', { body: { vector: [1, 2, 3] } });
      const { json, text } = await expectProblem(calling, 500, 'internal');
      assert.doesNotMatch(text, /secret/);
      const { details } = logged.at(-1)!;
      assert.equal((details as { request_id: string }).request_id, json.request_id);
      assert.match(String((details as { err: unknown }).err), /secret path/);
    }
    service.hooks.beforeSearch = async () => {};
  });

  it('of the database keep their code', async () => {
    service.hooks.beforeSearch = () =>
      Promise.reject(new SagittaError('overloaded', 'Full.', { retryAfterSeconds: 3 }));
    const calling = service.call('POST', '/collections/c/query', { body: { vector: [1, 2, 3] } });
    const { headers } = await expectProblem(calling, 503, 'overloaded');
    assert.equal(headers['retry-after'], '3');
    service.hooks.beforeSearch = async () => {};
  });

  it('contain the request id of the client if it is valid', async () => {
    const get = async (id: string) =>
      (await service.call('GET', '/nope', { headers: { 'x-request-id': id } })).json.request_id;
    assert.equal(await get('trace-1/2:3'), 'trace-1/2:3');
    for (const id of ['', 'a b', 'x'.repeat(129), 'a"b', '{"a":1}']) {
      assert.match(await get(id), /^[0-9a-f-]{36}$/);
    }
  });
});

describe('large bodies', () => {
  it('are not written to a new collection of the same name', async () => {
    const inline = createInlinePool();
    const service = await createService({
      pool: {
        ...inline,
        async run(task, input) {
          const output = await inline.run(task, input);
          await service.call('DELETE', '/collections/c');
          await service.call('POST', '/collections', { body: { id: 'c', dimension: 2 } });
          return output;
        },
      },
    });
    await service.call('POST', '/collections', { body: { id: 'c', dimension: 1 } });
    const body = { vectors: new Array(5000).fill({ values: [1] }) };
    const calling = service.call('POST', '/collections/c/vectors', { body });
    await expectProblem(calling, 404, 'collection_not_found');
    await service.close();
  });

  it('are parsed in the pool, unlike small ones', async () => {
    const tasks: string[] = [];
    const inline = createInlinePool();
    const service = await createService({
      pool: {
        ...inline,
        run: (task, input) => {
          tasks.push(task.name);
          return inline.run(task, input);
        },
      },
    });
    await service.call('POST', '/collections', { body: { id: 'c', dimension: 1, metric: 'dot' } });
    const vectors = Array.from({ length: 3000 }, (_, i) => ({ id: `id-${i}`, values: [i] }));
    const write = (count: number) =>
      service.call('POST', '/collections/c/vectors', {
        body: { vectors: vectors.slice(0, count) },
      });
    assert.equal((await write(3)).json.upserted_count, 3);
    assert.deepEqual(tasks, []);
    assert.equal((await write(3000)).json.upserted_count, 3000);
    const ids = vectors.flatMap(({ id }) => [id, `${id}-not-there`]);
    await service.call('POST', '/collections/c/vectors/delete', { body: { ids } });
    assert.deepEqual(tasks, ['ingest.parseVectors', 'ingest.parseJson']);
    await expectProblem(
      service.call('POST', '/collections/c/vectors', {
        body: { vectors: [...vectors, { values: 'x' }] },
      }),
      400,
      'invalid_vector',
      '/vectors/3000/values',
    );
    await service.close();
  });
});
