import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { createService, expectProblem, type Service } from '../harness.js';
import { BROWSER, PAGE, SCRIPT, writeConsole } from './console-pages.js';

const SCRIPT_PATH = '/console/assets/main-Ab_3x-9Z.js';

describe('the console', () => {
  let folder: string;
  let service: Service;
  before(async () => {
    folder = await writeConsole();
    await writeFile(join(dirname(folder), 'sagitta-console-secret.txt'), 'secret');
    service = await createService({ consoleFolder: folder });
  });
  after(async () => {
    await service.close();
    await rm(folder, { recursive: true });
    await rm(join(dirname(folder), 'sagitta-console-secret.txt'));
  });

  it('is one page, which caches revalidate', async () => {
    const page = await service.call('GET', '/console/');
    assert.deepEqual([page.status, page.text], [200, PAGE]);
    assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
    assert.equal(page.headers['cache-control'], 'no-cache');
    const headers = { 'if-none-match': page.headers.etag! };
    const again = await service.call('GET', '/console/', { headers });
    assert.deepEqual([again.status, again.text], [304, '']);
    assert.deepEqual(
      [again.headers.etag, again.headers.vary],
      [page.headers.etag, 'accept-encoding'],
    );
  });

  it('has files whose names contain a hash, which caches keep', async () => {
    const script = await service.call('GET', SCRIPT_PATH);
    assert.equal(script.text, SCRIPT);
    assert.equal(script.headers['cache-control'], 'public, max-age=31536000, immutable');
    const icon = await service.call('GET', '/console/favicon.svg');
    assert.equal(icon.headers['cache-control'], 'no-cache');
  });

  it('has the content type of each kind of file, and forbids to guess another', async () => {
    for (const [path, type] of [
      [SCRIPT_PATH, 'text/javascript; charset=utf-8'],
      ['/console/assets/main-DEADBEEF.css', 'text/css; charset=utf-8'],
      ['/console/assets/inter-01234567.woff2', 'font/woff2'],
      ['/console/assets/map-01234567.wasm', 'application/wasm'],
      ['/console/assets/data-01234567.bin', 'application/octet-stream'],
      ['/console/favicon.svg', 'image/svg+xml'],
    ] as const) {
      const { headers, status } = await service.call('GET', path);
      assert.deepEqual([status, headers['content-type']], [200, type], path);
      assert.equal(headers['x-content-type-options'], 'nosniff');
    }
  });

  it('allows its own scripts and styles only, no frames and no other host', async () => {
    for (const path of ['/console/', SCRIPT_PATH]) {
      const { headers } = await service.call('GET', path);
      const policy = new Map(
        headers['content-security-policy']!.split('; ').map((directive): [string, string] => {
          const at = directive.indexOf(' ');
          return [directive.slice(0, at), directive.slice(at + 1)];
        }),
      );
      assert.equal(policy.get('default-src'), "'none'");
      assert.equal(policy.get('script-src'), "'self' 'wasm-unsafe-eval'");
      assert.equal(policy.get('connect-src'), "'self'");
      assert.equal(policy.get('frame-ancestors'), "'none'");
      assert.equal(policy.get('base-uri'), "'none'");
      assert.equal(policy.get('form-action'), "'none'");
      assert.ok(
        !/unsafe-inline|unsafe-eval'|https?:|\*/.test(
          [...policy.values()].join(' ').replaceAll("'wasm-unsafe-eval'", ''),
        ),
      );
      assert.equal(headers['referrer-policy'], 'no-referrer');
      assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
      assert.equal(headers['cross-origin-resource-policy'], 'same-origin');
    }
  });

  it('is sent in the encoding that the client prefers, each with a tag of its own', async () => {
    const tags = new Set<string>();
    for (const [accept, encoding, decode] of [
      [undefined, undefined, (bytes: Buffer) => bytes],
      ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
      ['gzip', 'gzip', gunzipSync],
      ['br;q=0.1, gzip;q=0.9', 'gzip', gunzipSync],
      ['br;q=0, gzip;q=0', undefined, (bytes: Buffer) => bytes],
      ['*', 'br', brotliDecompressSync],
      ['identity, gzip;q=0.5', undefined, (bytes: Buffer) => bytes],
      ['zstd', undefined, (bytes: Buffer) => bytes],
    ] as const) {
      const headers = accept === undefined ? {} : { 'accept-encoding': accept };
      const reply = await service.app.inject({ method: 'GET', url: SCRIPT_PATH, headers });
      assert.equal(reply.headers['content-encoding'], encoding, accept);
      assert.equal(reply.headers.vary, 'accept-encoding');
      assert.equal(Number(reply.headers['content-length']), reply.rawPayload.length);
      assert.equal(decode(reply.rawPayload).toString(), SCRIPT);
      tags.add(String(reply.headers.etag));
    }
    assert.equal(tags.size, 3);
  });

  it('answers HEAD like GET, without the body', async () => {
    for (const path of ['/console/', SCRIPT_PATH, '/']) {
      const get = await service.call('GET', path);
      const head = await service.call('HEAD', path);
      assert.deepEqual([head.status, head.text], [200, '']);
      assert.equal(head.headers['content-length'], get.headers['content-length']);
      assert.equal(head.headers.etag, get.headers.etag);
    }
  });

  it('has no other files, however their path is written', async () => {
    for (const path of [
      '/console/assets/nothing-01234567.js',
      '/console/index.html',
      '/console/index.html.br',
      `${SCRIPT_PATH}.gz`,
      '/console/assets/',
      '/console/assets',
      '/console//',
      '/console/../sagitta-console-secret.txt',
      '/console/%2e%2e/sagitta-console-secret.txt',
      '/console/..%2fsagitta-console-secret.txt',
      '/console/assets/..%2f..%2fsagitta-console-secret.txt',
      '/console/%5c..%5csagitta-console-secret.txt',
      '/v1/console/',
      '/v1/',
    ]) {
      await expectProblem(service.call('GET', path), 404, 'route_not_found');
    }
    await expectProblem(service.call('POST', '/console/', { body: {} }), 404, 'route_not_found');
  });

  it('needs no credential, as everything that it shows comes through the API', async (t) => {
    const secured = await createService({
      consoleFolder: folder,
      authenticator: new Authenticator({ apiKeys: { isInUse: true, verify: () => assert.fail() } }),
    });
    t.after(() => secured.close());
    for (const path of ['/console/', SCRIPT_PATH, '/']) {
      assert.equal((await secured.call('GET', path)).status, 200, path);
    }
    await expectProblem(secured.call('GET', '/collections'), 401, 'credentials_missing');
  });

  it('without credentials, is not shown under a name that anyone could point here', async (t) => {
    const local = await createService({ consoleFolder: folder });
    t.after(() => local.close());
    for (const path of ['/', '/console', '/console/', SCRIPT_PATH]) {
      const rebound = local.call('GET', path, { headers: { host: 'evil.example', ...BROWSER } });
      await expectProblem(rebound, 400, 'invalid_request');
      const { status } = await local.call('GET', path, { headers: { host: 'localhost:8484' } });
      assert.ok(status < 400, path);
    }
  });

  it('is found by browsers, and what the service is by programs', async () => {
    for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }]) {
      const { json, headers: found } = await service.call('GET', '/', { headers });
      assert.equal(json.name, 'Sagitta');
      assert.match(json.version, /^\d+\.\d+\.\d+/);
      assert.equal(json.console, 'console/');
      assert.equal(found.vary, 'accept');
    }
    for (const [path, vary] of [
      ['/', 'accept'],
      ['/console', undefined],
    ] as const) {
      const { status, headers } = await service.call('GET', path, { headers: BROWSER });
      assert.deepEqual([status, headers.location, headers.vary], [307, 'console/', vary]);
      assert.equal(headers['cache-control'], 'no-store');
    }
  });

  it('is null in the description of a service without one, which browsers then get', async (t) => {
    for (const consoleFolder of [null, join(folder, 'nothing')]) {
      const without = await createService({ consoleFolder });
      t.after(() => without.close());
      const { status, json } = await without.call('GET', '/', { headers: BROWSER });
      assert.deepEqual([status, json.console], [200, null]);
      const missing = await expectProblem(
        without.call('GET', '/console/', { headers: BROWSER }),
        404,
        'route_not_found',
      );
      assert.equal(/npm run build/.test(missing.json.detail), consoleFolder !== null);
    }
  });
});
