// The hints in errors about connections and credentials.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createAuthority, issueForServer } from '../../../test/support/certificates.js';
import { problem, startScriptedServer } from '../../../test/support/scripted-server.js';
import { createClient, SagittaClientError } from '../src/client.js';
import { connectionHint } from '../src/connection-hint.js';
import { proxyHint } from '../src/proxy.js';

let plain: Server;
let secure: Server;

before(async () => {
  plain = createServer((_, response) => response.end('{}'));
  const authority = await createAuthority();
  secure = createTlsServer(await issueForServer(authority), (_, response) => response.end('{}'));
  for (const server of [plain, secure]) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }
});
after(() => {
  plain.close();
  secure.close();
});

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

async function errorAt(
  baseUrl: string,
  options: { apiKey?: string; fetch?: typeof fetch } = {},
): Promise<SagittaClientError> {
  const client = createClient({ baseUrl, retry: { attemptsMax: 1 }, ...options });
  const error = await client
    .collection('docs')
    .count()
    .then(
      () => assert.fail('expected a failure'),
      (found: unknown) => found,
    );
  assert.ok(error instanceof SagittaClientError, String(error));
  return error;
}

it('suggests http for a port without TLS', async () => {
  const { code, message } = await errorAt(`https://127.0.0.1:${portOf(plain)}`);
  assert.equal(code, 'network_error');
  assert.match(
    message,
    /wrong version number; the server speaks plain HTTP: use http:\/\/ in baseUrl$/,
  );
});

it('suggests https for a port with TLS', async () => {
  const { message } = await errorAt(`http://127.0.0.1:${portOf(secure)}`);
  assert.match(message, /; if the server uses TLS, use https:\/\/ in baseUrl$/);
});

it('suggests how to trust the unknown authority of a certificate', async () => {
  const { message, detail } = await errorAt(`https://127.0.0.1:${portOf(secure)}`);
  assert.match(
    message,
    /; if the certificate is your own, name its authority: NODE_EXTRA_CA_CERTS=/,
  );
  assert.doesNotMatch(detail, /NODE_EXTRA/);
});

it('gives no hint about TLS if there is no server', async () => {
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
  const port = portOf(gone);
  await new Promise((resolve) => gone.close(resolve));
  const { message, detail } = await errorAt(`http://127.0.0.1:${port}`);
  assert.match(message, /ECONNREFUSED/);
  assert.equal(message, detail);
});

it('suggests apiKey for a missing key and for a rejected one', async () => {
  const server = await startScriptedServer([
    problem(401, 'credentials_missing'),
    problem(401, 'credentials_invalid'),
  ]);
  const missing = await errorAt(server.url);
  assert.match(missing.message, /^detail of credentials_missing; pass apiKey to createClient/);
  assert.equal(missing.detail, 'detail of credentials_missing');
  assert.match((await errorAt(server.url, { apiKey: 'x' })).message, /; check the apiKey/);
  await server.close();
});

it('suggests the CORS setting to a web page of another origin', async (t) => {
  const failing = async () => {
    throw new TypeError('Failed to fetch');
  };
  Object.assign(globalThis, { location: { origin: 'https://app.example.org' } });
  t.after(() => Reflect.deleteProperty(globalThis, 'location'));
  const { message } = await errorAt('https://vectors.example.org', { fetch: failing });
  assert.match(message, /^cannot reach https:.*: Failed to fetch; browsers do not tell the reason/);
  assert.match(message, /SAGITTA_CORS_ORIGINS=https:\/\/app\.example\.org/);
  const { message: mixed } = await errorAt('http://vectors.example.org', { fetch: failing });
  assert.match(mixed, /; a page that was loaded by https cannot send requests to http/);
});

it('gives no hint about CORS to a page of the same origin, or outside browsers', () => {
  const error = new TypeError('Load failed');
  assert.equal(connectionHint(error, 'http://a.example/v1/limits', 'http://a.example'), undefined);
  assert.equal(connectionHint(error, 'http://a.example/v1/limits', undefined), undefined);
});

describe('a proxy in the environment', () => {
  const URL_OF_SERVER = 'https://vectors.example.org:8484/v1';
  const hint = (environment: Record<string, string>, isUsed = true) =>
    proxyHint(URL_OF_SERVER, { environment, isUsed });
  const HTTPS_PROXY = 'http://user:secret@proxy:3128/?token=secret';

  it('is named without its password, with a way to bypass it', () => {
    assert.equal(
      hint({ HTTPS_PROXY }),
      'the request goes through the proxy http://proxy:3128/, which HTTPS_PROXY names; to reach the ' +
        'server without it, add vectors.example.org to NO_PROXY',
    );
    assert.match(
      hint({ all_proxy: 'socks5://proxy' })!,
      /the proxy socks5:\/\/proxy, which all_proxy/,
    );
  });

  it('is reported as unused if Node does not use it', () => {
    assert.match(
      hint({ HTTPS_PROXY }, false)!,
      /^fetch of Node does not use the proxy http:.*NODE_USE_ENV_PROXY=1$/,
    );
  });

  it('is not named for URLs with another scheme, or for those that NO_PROXY lists', () => {
    assert.equal(hint({ HTTP_PROXY: 'http://proxy' }), undefined);
    assert.equal(hint({ HTTPS_PROXY: '' }), undefined);
    for (const NO_PROXY of ['*', 'a, example.org', '.example.org', 'vectors.example.org:8484']) {
      assert.equal(hint({ HTTPS_PROXY, NO_PROXY }), undefined, NO_PROXY);
    }
    for (const NO_PROXY of ['ample.org', 'example.org:443', 'vectors']) {
      assert.notEqual(hint({ HTTPS_PROXY, NO_PROXY }), undefined, NO_PROXY);
    }
  });

  it('is named when it refuses', async () => {
    const before = { ...process.env };
    Object.assign(process.env, {
      http_proxy: 'http://user:secret@proxy:3128',
      NODE_USE_ENV_PROXY: '1',
    });
    try {
      for (const fetch of [
        async () => new Response('<h1>Denied</h1>', { status: 403 }),
        async () => new Response('<h1>Welcome</h1>'),
        async () => Promise.reject(new TypeError('the tunnel was refused')),
      ]) {
        const { message, detail } = await errorAt('http://vectors.example.org', { fetch });
        assert.match(
          message,
          /; the request goes through the proxy http:\/\/proxy:3128, which http_proxy/,
        );
        assert.doesNotMatch(detail, /proxy/);
      }
    } finally {
      process.env = before;
    }
  });
});

it('errors name addresses without their queries', async () => {
  const fetch = async () => Promise.reject(new TypeError('refused'));
  const client = createClient({ baseUrl: 'http://127.0.0.1:1', fetch, retry: { attemptsMax: 1 } });
  await assert.rejects(client.collection('docs').schema({ filter: { name: 'Ada' } }), {
    detail: 'cannot reach http://127.0.0.1:1/v1/collections/docs/schema: refused',
  });
});

it('no proxy is named if environment variables may not be read', () => {
  const environment = new Proxy<Record<string, string>>(
    {},
    {
      get() {
        throw new Error('Requires env access');
      },
    },
  );
  assert.equal(proxyHint('http://db.example.org', { environment, isUsed: true }), undefined);
});
