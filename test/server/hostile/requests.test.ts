// Crafted requests to a real server: a request whose end is ambiguous is refused and its connection closed, an unusual
// one gets a clear error, and the server continues to answer other clients.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';

let server: TestServer;
before(async () => {
  server = await startTestServer({ SAGITTA_BODY_BYTES_MAX: '2000000' });
  const created = await json('POST', '/v1/collections', { id: 'h', dimension: 2, metric: 'dot' });
  assert.equal(created.status, 200);
  const vectors = [{ id: 'a', values: [1, 2], metadata: { n: 1 } }];
  assert.equal((await json('POST', '/v1/collections/h/vectors', { vectors })).status, 200);
});
after(() => server.close());

async function json(method: string, path: string, body?: unknown) {
  const reply = await fetch(server.url + path, {
    method,
    ...(body === undefined
      ? {}
      : {
          headers: { 'content-type': 'application/json' },
          body: typeof body === 'string' ? body : JSON.stringify(body),
        }),
  });
  const text = await reply.text();
  return { status: reply.status, text, json: () => JSON.parse(text) as Record<string, unknown> };
}

/** All bytes that the server sends until it closes the connection, or pauses after a reply. */
function exchange(text: string | Buffer, replyCount = 1): Promise<string> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(text));
    let answer = '';
    socket.setTimeout(60_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      answer += chunk;
      if (statuses(answer).length >= replyCount) socket.setTimeout(200);
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') resolve(answer);
      else reject(error);
    });
  });
}

const statuses = (answer: string) =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));

const request = (lines: readonly string[], body = '') => `${lines.join('\r\n')}\r\n\r\n${body}`;

const SMUGGLED = 'DELETE /v1/collections/h HTTP/1.1\r\nhost: localhost\r\n\r\n';
const QUERY = [
  'POST /v1/collections/h/query HTTP/1.1',
  'host: localhost',
  'content-type: application/json',
];

describe('what smuggles requests past gateways', () => {
  const attempts: Readonly<Record<string, string>> = {
    'Content-Length and Transfer-Encoding': request(
      [...QUERY, 'content-length: 4', 'transfer-encoding: chunked'],
      `0\r\n\r\n${SMUGGLED}`,
    ),
    'two different Content-Lengths': request(
      [...QUERY, 'content-length: 0', `content-length: ${SMUGGLED.length}`],
      SMUGGLED,
    ),
    'a list of Content-Lengths': request([...QUERY, 'content-length: 0, 5'], SMUGGLED),
    'a signed Content-Length': request([...QUERY, 'content-length: +0'], SMUGGLED),
    'a hexadecimal Content-Length': request([...QUERY, 'content-length: 0x0'], SMUGGLED),
    'an unknown Transfer-Encoding': request(
      [...QUERY, 'transfer-encoding: xchunked'],
      `0\r\n\r\n${SMUGGLED}`,
    ),
    'chunked that is not last': request(
      [...QUERY, 'transfer-encoding: chunked, identity'],
      `0\r\n\r\n${SMUGGLED}`,
    ),
    'a space before the colon': request(
      [...QUERY, 'transfer-encoding : chunked', 'content-length: 0'],
      SMUGGLED,
    ),
    'a folded header': request([...QUERY, 'x-a: 1', ' transfer-encoding: chunked'], SMUGGLED),
    'a bare line feed in the head': `${QUERY.join('\n')}\ntransfer-encoding: chunked\n\n0\n\n${SMUGGLED}`,
    'a bare carriage return in a header': request(
      [...QUERY, 'x-a: 1\rcontent-length: 0'],
      SMUGGLED,
    ),
    'a null byte in a header': request([...QUERY, 'x-a: \0', 'content-length: 0'], SMUGGLED),
    'a chunk size that overflows': request(
      [...QUERY, 'transfer-encoding: chunked'],
      `FFFFFFFFFFFFFFFFF\r\n${SMUGGLED}`,
    ),
    'a negative chunk size': request([...QUERY, 'transfer-encoding: chunked'], `-1\r\n${SMUGGLED}`),
  };
  for (const [name, text] of Object.entries(attempts)) {
    it(`refuses ${name}`, async () => {
      const found = statuses(await exchange(text));
      assert.ok(found.length >= 1, 'it is answered');
      // The first reply is an error; the hidden request was never read as one.
      assert.ok(found[0]! >= 400 && found[0]! < 500, `${found}`);
      assert.ok(!found.includes(200), `${found}`);
      assert.equal((await json('GET', '/v1/collections/h')).status, 200, 'the collection is there');
    });
  }

  it('answers pipelined requests in their order', async () => {
    const get = 'GET /v1/collections/h/vectors/a HTTP/1.1\r\nhost: localhost\r\n\r\n';
    const missing = 'GET /v1/collections/none HTTP/1.1\r\nhost: localhost\r\n\r\n';
    assert.deepEqual(statuses(await exchange(get + missing + get, 3)), [200, 404, 200]);
  });
});

describe('odd heads', () => {
  const heads: Readonly<Record<string, readonly [text: string, statuses: readonly number[]]>> = {
    'no Host': [request(['GET /v1/collections/h HTTP/1.1']), [400]],
    'an absolute form': [
      request(['GET http://elsewhere/v1/collections/h HTTP/1.1', 'host: localhost']),
      [200, 404, 400],
    ],
    'a star': [request(['OPTIONS * HTTP/1.1', 'host: localhost']), [404, 405, 400]],
    CONNECT: [request(['CONNECT inside:22 HTTP/1.1', 'host: localhost']), []],
    TRACE: [request(['TRACE /v1/collections/h HTTP/1.1', 'host: localhost']), [404, 405]],
    'an unknown method': [request(['BREW /v1/collections/h HTTP/1.1', 'host: localhost']), [400]],
    'an upgrade to h2c': [
      request([
        'GET /v1/collections/h HTTP/1.1',
        'host: localhost',
        'connection: upgrade, http2-settings',
        'upgrade: h2c',
        'http2-settings: AAMAAABkAAQAAP__',
      ]),
      [200],
    ],
    'a preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400, 505]],
    'HTTP/0.9': ['GET /v1/collections/h\r\n\r\n', [400]],
    'a thousand headers': [
      request([
        'GET /v1/collections/h HTTP/1.1',
        'host: localhost',
        ...Array.from({ length: 5_000 }, (_, i) => `x-${i}: 1`),
      ]),
      [200, 400, 431],
    ],
    'a header of 200 KB': [
      request(['GET /v1/collections/h HTTP/1.1', 'host: localhost', `x-a: ${'y'.repeat(200_000)}`]),
      [400, 431],
    ],
  };
  for (const [name, [text, expected]] of Object.entries(heads)) {
    it(`takes ${name} for what it is`, async () => {
      const [first] = statuses(await exchange(text));
      if (expected.length === 0) assert.ok(first === undefined || first >= 400, `${first}`);
      else assert.ok(expected.includes(first!), `${first}`);
      assert.equal((await json('GET', '/livez')).status, 200);
    });
  }

  it('does not echo an invalid request id', async () => {
    const answer = await exchange(
      request([
        'GET /livez HTTP/1.1',
        'host: localhost',
        'x-request-id: <script>alert(1)</script>',
      ]),
    );
    assert.doesNotMatch(answer, /script/);
    assert.match(answer, /x-request-id: [\w-]{36}/i);
  });
});

describe('a page that points its own name at this machine', () => {
  const ask = (host: string) =>
    exchange(request(['GET /v1/collections HTTP/1.1', `host: ${host}`, 'origin: http://e.test']));
  for (const host of [
    'evil.example',
    'evil.example:8484',
    'localhost.evil.example',
    '127.0.0.1.evil',
  ]) {
    it(`gets no answer as ${host}`, async () => {
      const answer = await ask(host);
      assert.deepEqual(statuses(answer), [400]);
      assert.doesNotMatch(answer, /"collections"/);
    });
  }
  for (const host of ['localhost:1', '127.0.0.1:8484', '127.0.0.2', '[::1]:99', 'LOCALHOST']) {
    it(`is not taken for one as ${host}`, async () => {
      assert.deepEqual(statuses(await ask(host)), [200]);
    });
  }
});

describe('odd paths', () => {
  const paths: Readonly<Record<string, number>> = {
    '/v1/collections/h/../../metrics': 404,
    '/v1/../metrics': 404,
    '/v1/collections/%2e%2e': 404,
    '/v1/collections/h%2Fvectors%2Fa': 404,
    '/v1/collections/h%00': 404,
    '/v1/collections/%ff': 400,
    '/v1/collections/%': 400,
    '//v1/collections/h': 404,
    '/v1//collections/h': 404,
    '/V1/collections/h': 404,
    '/v1/v1/collections/h': 404,
    '/v1/livez': 404,
    '/v1/collections/h;a=b': 404,
    '/v1/collections/__proto__': 404,
    '/v1/collections/constructor/vectors/toString': 404,
    [`/v1/collections/${'x'.repeat(5_000)}`]: 400,
  };
  for (const [path, status] of Object.entries(paths)) {
    it(`answers ${status} to ${path.slice(0, 60)}`, async () => {
      const answer = await exchange(request([`GET ${path} HTTP/1.1`, 'host: localhost']));
      assert.deepEqual(statuses(answer), [status], answer);
      const body = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as { code: string };
      assert.equal(typeof body.code, 'string');
    });
  }
});

describe('bodies that cost more to read than to send', () => {
  const deep = (open: string, close: string, depth: number) =>
    open.repeat(depth) + close.repeat(depth);
  const bodies: Readonly<Record<string, string>> = {
    'a million nested arrays': `{"vector":${deep('[', ']', 900_000)}}`,
    'half a million open objects': '{"a":'.repeat(300_000),
    'a filter nested 20 000 deep': `{"vector":[1,2],"filter":${'{"$not":'.repeat(20_000)}{}${'}'.repeat(20_000)}}`,
    'metadata nested 50 000 deep': `{"vectors":[{"id":"d","values":[1,2],"metadata":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}]}`,
    'a hundred thousand conditions': `{"vector":[1,2],"filter":{"$and":[${new Array(100_000).fill('{"n":1}').join(',')}]}}`,
    'a number of a million digits': `{"vector":[1,${'9'.repeat(1_000_000)}]}`,
    'a top_k beyond all numbers': '{"vector":[1,2],"top_k":1e400}',
    '__proto__ as a member': '{"vector":[1,2],"__proto__":{"top_k":1}}',
    'the same member twice': '{"vector":[1,2],"top_k":1,"top_k":-1}',
    'bytes that are not UTF-8': '{"vector":[1,2],"id":"\udc00"}',
    'nothing but spaces': ' '.repeat(1_000_000),
  };
  for (const [name, body] of Object.entries(bodies)) {
    it(`refuses ${name} quickly`, async () => {
      const path = body.startsWith('{"vectors"') ? 'vectors' : 'query';
      const startMs = performance.now();
      const reply = await json('POST', `/v1/collections/h/${path}`, body);
      const tookMs = performance.now() - startMs;
      assert.equal(reply.status, 400, reply.text.slice(0, 200));
      assert.ok(reply.text.length < 100_000, `the reply has ${reply.text.length} characters`);
      assert.ok(tookMs < 60_000, `${tookMs} ms`);
    });
  }

  it('prototypes stay as they are', async () => {
    const vectors = [{ id: 'p', values: [1, 2], metadata: JSON.parse('{"__proto__":{"x":1}}') }];
    await json('POST', '/v1/collections/h/vectors', { vectors });
    assert.equal(({} as Record<string, unknown>).x, undefined);
  });
});

describe('a target or Host that is read in several ways', () => {
  const attempts: Readonly<Record<string, readonly [string, string]>> = {
    'no Host': ['GET /livez HTTP/1.1\r\n\r\n', 'Host is missing'],
    'two headers Host': [
      'GET /livez HTTP/1.1\r\nhost: localhost\r\nHost: localhost\r\n\r\n',
      '2 headers Host',
    ],
    'two headers Host of HTTP/1.0': [
      'GET /livez HTTP/1.0\r\nhost: localhost\r\nHost: elsewhere\r\n\r\n',
      '2 headers Host',
    ],
    'the target *': ['GET * HTTP/1.1\r\nhost: localhost\r\n\r\n', 'for OPTIONS only'],
  };
  for (const [what, [text, detail]] of Object.entries(attempts)) {
    it(`is refused with a problem: ${what}`, async () => {
      const answer = await exchange(text);
      assert.deepEqual(statuses(answer), [400]);
      assert.match(answer, /content-type: application\/problem\+json/i);
      const problem = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')));
      assert.equal(problem.code, 'invalid_request');
      assert.ok(problem.detail.includes(detail), problem.detail);
    });
  }

  it('is not the target * of OPTIONS, which no route has', async () => {
    const answer = await exchange('OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n');
    assert.deepEqual(statuses(answer), [404]);
    assert.doesNotMatch(answer, /for OPTIONS only/);
  });

  it('is not an absent Host of HTTP/1.0', async () => {
    assert.match(await exchange('GET /livez HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /);
  });
});
