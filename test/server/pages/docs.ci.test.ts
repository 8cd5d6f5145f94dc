// The API reference and the guide, from the files that the build has copied and rendered.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createFilledService, expectProblem, type Service } from '../harness.js';

const ROOT = 'http://sagitta.test';

describe('the API reference', () => {
  let service: Service;
  before(async () => {
    service = await createFilledService();
  });
  after(() => service.close());

  it('is a page without external resources, which caches revalidate', async () => {
    const page = await service.call('GET', '/docs/');
    assert.deepEqual(
      [page.status, page.headers['content-type'], page.headers['cache-control']],
      [200, 'text/html; charset=utf-8', 'no-cache'],
    );
    const policy = page.headers['content-security-policy'] ?? '';
    assert.match(policy, /default-src 'none'.*frame-ancestors 'none'/);
    assert.match(page.text, /<title>Sagitta: API reference<\/title>/);
    const links = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
    assert.ok(links.length >= 5);
    for (const link of links) {
      const { origin, pathname } = new URL(link, `${ROOT}/docs/`);
      assert.equal(origin, ROOT, link);
      assert.equal((await service.call('GET', pathname)).status, 200, link);
    }
    const headers = { 'if-none-match': page.headers.etag! };
    const again = await service.call('GET', '/docs/', { headers });
    assert.deepEqual([again.status, again.text], [304, '']);
  });

  it('shows the document of this service', async () => {
    const path = '/docs/initializer.js';
    const { text } = await service.call('GET', path);
    const [, url] = /new URL\('([^']+)', document\.currentScript\.src\)/.exec(text)!;
    const { pathname } = new URL(url!, ROOT + path);
    const { openapi } = (await service.app.inject(pathname)).json();
    assert.equal(openapi, '3.1.0');
  });

  it('has documents beside it whose links all lead to pages and headings', async () => {
    const pages = new Map<string, string>();
    const wanted = [new URL('/docs/api-guide.html', ROOT)];
    const anchors: URL[] = [];
    for (let url = wanted.pop(); url !== undefined; url = wanted.pop()) {
      if (pages.has(url.pathname)) continue;
      const { status, text } = await service.call('GET', url.pathname);
      assert.equal(status, 200, url.href);
      pages.set(url.pathname, text);
      if (!url.pathname.endsWith('.html')) continue;
      for (const [, link] of text.matchAll(/(?:src|href)="([^"]+)"/g)) {
        const next = new URL(link!, url);
        if (next.origin !== ROOT) continue;
        if (next.hash !== '') anchors.push(next);
        wanted.push(next);
      }
    }
    assert.ok(pages.size > 10, [...pages.keys()].join(' '));
    for (const { pathname, hash, href } of anchors) {
      assert.ok(pages.get(pathname)!.includes(` id="${hash.slice(1)}"`), href);
    }
  });

  it('is found without the slash, and has no other files', async () => {
    const { status, headers } = await service.call('GET', '/docs');
    assert.deepEqual([status, headers.location], [307, 'docs/']);
    for (const path of ['/docs/index.html', '/docs/json', '/docs/..%2f..%2fpackage.json']) {
      await expectProblem(service.call('GET', path), 404, 'route_not_found');
    }
  });
});
