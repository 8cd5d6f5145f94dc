// The console behind a proxy.

import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createService, type Service } from '../harness.js';
import { listen } from '../wire.js';
import { BROWSER, PAGE, writeConsole } from './console-pages.js';

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

  it('works under a prefix that a proxy removes', async (t) => {
    const proxy = createPrefixProxy('/vectors', await listen(service));
    t.after(() => proxy.close().closeAllConnections());
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/vectors/`;
    const info = (await (await fetch(base)).json()) as Record<string, string>;
    for (const name of ['console', 'docs', 'openapi', 'ready']) {
      const linked = await fetch(new URL(info[name]!, base));
      assert.equal(linked.status, 200, linked.url);
    }
    for (const path of ['', 'console']) {
      const page = await fetch(new URL(path, base), { headers: BROWSER });
      assert.deepEqual([page.url, await page.text()], [`${base}console/`, PAGE]);
    }
  });
});

/** Passes requests below the prefix on without it, as reverse proxies are configured to. */
function createPrefixProxy(prefix: string, port: number): Server {
  return createServer((incoming, outgoing) => {
    const { url = '', headers } = incoming;
    assert.ok(url.startsWith(`${prefix}/`), url);
    const path = url.slice(prefix.length);
    const upstream = request({ port, path, headers, agent: false }, (reply) => {
      outgoing.writeHead(reply.statusCode!, reply.headers);
      reply.pipe(outgoing);
    });
    upstream.end();
  });
}
