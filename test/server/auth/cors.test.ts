// Cross-origin requests as browsers send them: preflights, replies, errors and streams, over both
// protocols.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { loadConfig } from '../../../src/platform/config.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { Cors, type CorsSettings } from '../../../src/server/auth/cors.js';
import { RequestTurns } from '../../../src/server/limits/request-turns.js';
import { createFilledService, createService, type OpenApi, type Service } from '../harness.js';
import { openSession, overHttp1, overHttp2, startSecureService } from '../secure-service.js';

const PAGE = 'https://app.example.org';
const OTHER = 'https://other.example.org';

function settingsOf(origins: string): CorsSettings {
  return loadConfig({ env: { SAGITTA_CORS_ORIGINS: origins } });
}

const preflight = (origin: string) => ({
  origin,
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type',
});

const varyOf = (headers: Readonly<Record<string, unknown>>) =>
  String(headers.vary ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

function assertReadable(headers: Readonly<Record<string, unknown>>, place: string): void {
  assert.equal(headers['access-control-allow-origin'], PAGE, place);
  assert.match(String(headers['access-control-expose-headers']), /Retry-After/, place);
  assert.ok(varyOf(headers).includes('origin'), place);
  assert.equal(headers['access-control-allow-credentials'], undefined, place);
}

it('a page is told of sessions only if it may send them', () => {
  const settings = settingsOf(PAGE);
  const exposed = (corsHeaders: readonly string[]) =>
    new Cors({ ...settings, corsHeaders }).replyHeaders(PAGE)['access-control-expose-headers']!;
  assert.match(exposed(settings.corsHeaders), /Sagitta-Session/);
  assert.match(exposed(['sagitta-session']), /Sagitta-Session/);
  assert.doesNotMatch(exposed(['Authorization']), /Sagitta-Session/);
  assert.match(exposed(['Authorization']), /Sagitta-Sequence/);
});

describe('a page of an allowed origin', () => {
  let service: Service;
  before(async () => {
    const limits = { ...DEFAULT_LIMITS, bodyBytesMax: 1_024, writeRateMax: 1, writeBurstMax: 6 };
    service = await createFilledService({ cors: settingsOf(PAGE), limits });
  });
  after(() => service.close());

  const send = (method: 'GET' | 'POST' | 'OPTIONS', url: string, headers = {}, payload?: string) =>
    service.app.inject({
      method,
      url,
      headers: { origin: PAGE, 'content-type': 'application/json', ...headers },
      ...(payload === undefined ? {} : { payload }),
    });

  it('is told what it may send, whether or not the path exists', async () => {
    for (const path of ['/v1/collections/c/query', '/collections', '/none']) {
      const { statusCode, headers, body } = await send('OPTIONS', path, preflight(PAGE));
      assert.equal(statusCode, 204);
      assert.equal(body, '');
      assert.equal(headers['access-control-allow-methods'], 'GET, HEAD, POST, PUT, PATCH, DELETE');
      const allowed = String(headers['access-control-allow-headers']).toLowerCase().split(', ');
      for (const name of ['authorization', 'content-type', 'idempotency-key', 'if-match']) {
        assert.ok(allowed.includes(name), name);
      }
      assert.equal(headers['access-control-max-age'], '7200');
      assertReadable(headers, path);
    }
  });

  it('can read replies, streams and replies without a body', async () => {
    const found = await send('POST', '/collections/c/query', {}, '{"vector":[1,0,0]}');
    assert.equal(found.statusCode, 200);
    assertReadable(found.headers, 'query');
    const stream = await send('GET', '/collections/c/export');
    assert.equal(stream.statusCode, 200);
    assertReadable(stream.headers, 'export');
    const { etag } = (await send('GET', '/collections/c')).headers;
    const unchanged = await send('GET', '/collections/c', { 'if-none-match': etag });
    assert.equal(unchanged.statusCode, 304);
    assertReadable(unchanged.headers, '304');
    const info = await send('GET', '/');
    assert.deepEqual(varyOf(info.headers).sort(), ['accept', 'origin']);
  });

  it('can read errors, also those before the body and before the routes', async () => {
    for (const [status, method, url, payload] of [
      [400, 'GET', '/collections/%ff'],
      [400, 'GET', `/collections/${'x'.repeat(5_000)}`],
      [400, 'GET', '/collections?nothing=1'],
      [404, 'GET', '/none'],
      [404, 'GET', '/collections/none'],
      [405, 'POST', '/limits'],
      [413, 'POST', '/collections/c/query', `{"vector":[${'1,'.repeat(1_000)}1]}`],
      [429, 'POST', '/collections/c/vectors/delete', '{"ids":["1","2","3","4","5","6","7"]}'],
    ] as const) {
      const reply = await send(method, url, {}, payload);
      assert.equal(reply.statusCode, status, reply.body);
      assertReadable(reply.headers, `${method} ${url}`);
    }
    const exposed = String((await send('GET', '/none')).headers['access-control-expose-headers']);
    const document = (await send('GET', '/openapi.json')).json() as OpenApi & {
      readonly components: { readonly headers: object };
    };
    const described = [
      ...JSON.stringify(document.paths).matchAll(/"([\w-]+)":\{"\$ref":"#\/components\/headers/g),
    ];
    assert.ok(described.length > 100);
    for (const [, name] of described) assert.ok(exposed.split(', ').includes(name!), name);
  });

  it('can read that its credential is missing, for which the preflight needs none', async () => {
    const apiKeys = { isInUse: true, verify: () => assert.fail('no key was sent') };
    const authenticator = new Authenticator({ apiKeys });
    const locked = await createFilledService({
      database: service.database,
      cors: settingsOf(PAGE),
      authenticator,
    });
    const url = '/collections/c/query';
    const asked = await locked.app.inject({ method: 'OPTIONS', url, headers: preflight(PAGE) });
    assert.equal(asked.statusCode, 204);
    const refused = await locked.app.inject({ method: 'POST', url, headers: { origin: PAGE } });
    assert.equal(refused.statusCode, 401);
    assertReadable(refused.headers, '401');
    await locked.app.close();
  });

  it('can read that the service is overloaded, which a preflight does not wait for', async () => {
    const { database } = service;
    const turns = new RequestTurns({ waitingMax: 0 });
    const busy = await createService({ database, cors: settingsOf(PAGE), turns });
    const url = '/collections/c/query';
    const asked = await busy.app.inject({ method: 'OPTIONS', url, headers: preflight(PAGE) });
    assert.equal(asked.statusCode, 204);
    const refused = await busy.app.inject({ method: 'POST', url, headers: { origin: PAGE } });
    assert.equal(refused.statusCode, 503);
    assertReadable(refused.headers, '503');
    await busy.app.close();
  });

  it('gets the same answers over HTTP/1.1 and HTTP/2', async () => {
    const secure = await startSecureService({ cors: settingsOf(PAGE) });
    const tls = { ca: secure.authority.cert };
    const session = await openSession(secure.url, tls);
    try {
      const asks = { method: 'OPTIONS', path: '/v1/collections/c/query', headers: preflight(PAGE) };
      const fails = { path: '/v1/collections/none', headers: { origin: PAGE } };
      const exports = { path: '/v1/collections/c/export', headers: { origin: PAGE } };
      for (const [request, status] of [
        [asks, 204],
        [fails, 404],
        [exports, 200],
      ] as const) {
        for (const reply of [
          await overHttp1(secure.port, request, tls),
          await overHttp2(session, request),
        ]) {
          assert.equal(reply.status, status);
          assertReadable(reply.headers, request.path);
        }
      }
    } finally {
      session.close();
      await secure.close();
    }
  });

  it('is not mistaken for another one by a cache', async () => {
    const { headers } = await service.app.inject({ url: '/collections/c' });
    assert.equal(headers['access-control-allow-origin'], undefined);
    assert.ok(varyOf(headers).includes('origin'));
  });

  it('does not allow other origins, nor requests that are no preflight', async () => {
    for (const origin of [OTHER, 'null', `${PAGE}.evil.example`, PAGE.toUpperCase(), '']) {
      const asked = await send('OPTIONS', '/collections', preflight(origin));
      assert.equal(asked.statusCode, 403, origin);
      assert.equal(asked.json().code, 'origin_not_allowed');
      assert.match(asked.json().detail, /SAGITTA_CORS_ORIGINS/);
      const reply = await send('GET', '/collections', { origin });
      assert.equal(reply.statusCode, 200);
      for (const { headers } of [asked, reply]) {
        const names = Object.keys(headers).filter((name) => name.startsWith('access-control-'));
        assert.deepEqual(names, [], origin);
      }
    }
    const asked = await send('OPTIONS', '/collections');
    assert.equal(asked.json().code, 'method_not_allowed');
    assertReadable(asked.headers, 'OPTIONS without a method');
  });
});

describe('pages of all origins', () => {
  it('are allowed by one header that caches may keep', async () => {
    const service = await createFilledService({ cors: settingsOf('*') });
    const headers = { origin: OTHER };
    const reply = await service.app.inject({ url: '/collections/c', headers });
    assert.equal(reply.headers['access-control-allow-origin'], '*');
    assert.equal(reply.headers.vary, undefined);
    const asked = await service.app.inject({
      method: 'OPTIONS',
      url: '/collections',
      headers: preflight(OTHER),
    });
    assert.equal(asked.statusCode, 204);
    assert.equal(asked.headers['access-control-allow-origin'], '*');
    await service.close();
  });
});
