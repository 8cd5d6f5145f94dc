// The API reference.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { packageVersion } from '../../../src/common/package-files.js';
import { createFilledService, type Service } from '../harness.js';

const ICON = resolve(fileURLToPath(import.meta.url), '../../../../../src/console/icon.svg');

describe('the service', () => {
  let service: Service;
  before(async () => {
    service = await createFilledService({ limits: { ...DEFAULT_LIMITS, topKMax: 77 } });
  });
  after(() => service.close());

  it('serves the API reference without external resources', async () => {
    const page = await service.call('GET', '/docs');
    assert.equal(page.status, 200);
    assert.match(page.headers['content-security-policy'] ?? '', /default-src 'none'/);
    assert.match(page.text, /<title>Sagitta \d+\.\d+\.\d+\S*: API reference<\/title>/);
    const assets = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
    assert.ok(assets.length >= 5);
    for (const asset of assets) {
      assert.match(asset, /^\/docs\//);
      assert.equal((await service.call('GET', asset)).status, 200, asset);
    }
    const shown = (await service.call('GET', '/docs/static/theme/icon.svg')).text;
    assert.equal(shown, readFileSync(ICON, 'utf8'), 'the icon is that of the console');
    const { json } = await service.call('GET', '/docs/json');
    assert.equal(json.openapi, '3.1.0');
    assert.equal(json.info.version, packageVersion());
    const headers = { 'if-none-match': page.headers.etag! };
    const again = await service.call('GET', '/docs', { headers });
    assert.deepEqual([again.status, again.text], [304, '']);
  });
});
