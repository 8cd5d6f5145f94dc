// The health check of the container.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startTestServer } from '../support/server-in-process.js';

/** The compiled test is at dist/test. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

test('the health check succeeds for a ready server and fails without one', async () => {
  const script = join(ROOT, 'scripts/container/healthcheck.mjs');
  const server = await startTestServer();
  const env = { SAGITTA_HOST: '0.0.0.0', SAGITTA_PORT: new URL(server.url).port };
  const check = (more = {}) =>
    promisify(execFile)(process.execPath, [script], { env: { ...env, ...more } });
  try {
    assert.match((await check()).stdout, /returned status 200/);
    const service = { SAGITTA_PORT: 'tcp://10.96.12.7:1', SAGITTA_HOST: '127.0.0.9' };
    // Another program on this machine may be listening on the default port.
    const { stdout } = await check(service).catch((error: { stdout: string }) => error);
    assert.match(stdout, /^http:\/\/127\.0\.0\.9:8484\/readyz /);
  } finally {
    await server.close();
  }
  await assert.rejects(check(), { code: 1, stdout: /is not reachable: .*ECONNREFUSED/ });
});
