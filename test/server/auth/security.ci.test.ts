// A whole server with TLS and every kind of credential, over real connections, and the client
// address behind a proxy.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { connectControlClient } from '../../../src/cli/service/control-client.js';
import { startServer } from '../../../src/main.js';
import { loadConfig } from '../../../src/platform/config.js';
import { start } from '../../cli/command.js';
import { createAuthority, issueForServer } from '../../support/certificates.js';
import { startTestServer } from '../../support/server-in-process.js';
import { createService } from '../harness.js';
import {
  type LogLine,
  openSession,
  overHttp1,
  overHttp2,
  recordingLogger,
  until,
  writeFiles,
} from '../secure-service.js';

describe('a server with TLS and every credential', () => {
  it('accepts API keys, access tokens and certificates, over HTTP/2 and HTTP/1.1', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-security-'));
    const file = (name: string) => join(folder, name);
    const authority = await createAuthority();
    const clients = await createAuthority('CN=Clients');
    await writeFiles(folder, await issueForServer(authority));
    await writeFile(file('ca.pem'), authority.cert);
    await writeFile(file('clients.pem'), clients.cert);
    const scopes = ['collections:read:shown'];
    await writeFile(
      file('principals.json'),
      JSON.stringify([{ subject: 'CN=batch', principal: 'batch', scopes }]),
    );
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' };
    await writeFile(file('jwks.json'), JSON.stringify({ keys: [jwk] }));
    const server = await startTestServer({
      SAGITTA_DATA_DIR: file('data'),
      SAGITTA_TLS_CERT: file('cert.pem'),
      SAGITTA_TLS_KEY: file('key.pem'),
      SAGITTA_TLS_CLIENT_CA: file('clients.pem'),
      SAGITTA_TLS_PRINCIPALS: file('principals.json'),
      SAGITTA_JWKS: file('jwks.json'),
      SAGITTA_JWT_ISSUER: 'https://issuer.example',
      SAGITTA_JWT_AUDIENCE: 'sagitta',
    });
    assert.match(server.url, /^https:/);
    const operator = (await connectControlClient(file('data')))!;
    const input = { dimension: 2, metric: 'dot' };
    for (const id of ['shown', 'hidden']) {
      await operator.call('POST', '/collections', { id, ...input });
    }
    const { key } = await operator.call<{ key: string }>('POST', '/keys', {
      owner: 'test',
      scopes,
    });
    await operator.close();
    const token = await new SignJWT({ sub: 'alice', scope: scopes.join(' ') })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setIssuer('https://issuer.example')
      .setAudience('sagitta')
      .setExpirationTime('5m')
      .sign(privateKey);

    const ca = authority.cert;
    const certificate = await clients.issue({ subject: 'CN=batch', purpose: 'client' });
    const port = Number(new URL(server.url).port);
    const bearer = (text: string) => ({ authorization: `Bearer ${text}` });
    const cases: [what: string, headers: Record<string, string>, tls: object, status: number][] = [
      ['an API key', bearer(key), {}, 200],
      ['an access token', bearer(token), {}, 200],
      ['a certificate', {}, certificate, 200],
      ['nothing', {}, {}, 401],
      ['a wrong API key', bearer(`${key.slice(0, -4)}AAAA`), {}, 401],
      ['a wrong token beside a right certificate', bearer(`${token}x`), certificate, 401],
      ['another scheme', { authorization: 'Basic YTpi' }, certificate, 401],
    ];
    for (const [what, headers, tls, status] of cases) {
      const asking = { path: '/v1/collections', headers };
      const one = await overHttp1(port, asking, { ca, ...tls });
      const session = await openSession(server.url, { ca, ...tls });
      const two = await overHttp2(session, asking);
      assert.deepEqual([one.status, two.status], [status, status], what);
      if (status === 200) {
        const seen = JSON.parse(two.text).collections.map(({ id }: { id: string }) => id);
        assert.deepEqual(seen, ['shown'], what);
        const lost = await overHttp2(session, { path: '/v1/collections/hidden', headers });
        assert.equal(lost.status, 404, what);
      }
      session.destroy();
    }

    // NODE_EXTRA_CA_CERTS makes the command line trust a private authority.
    const args = ['collections', 'list', '--url', server.url, '--api-key', key];
    const trusting = await start(args, { env: { NODE_EXTRA_CA_CERTS: file('ca.pem') } }).ended;
    assert.equal(trusting.code, 0, trusting.stderr);
    assert.match(trusting.stdout, /shown/);
    const distrusting = await start(args).ended;
    assert.notEqual(distrusting.code, 0);
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('does not start with invalid files, and then releases the data directory', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-security-'));
    const settings = {
      SAGITTA_PORT: '0',
      SAGITTA_DATA_DIR: join(folder, 'data'),
      SAGITTA_LOG_LEVEL: 'silent',
      SAGITTA_ENGINE: 'reference',
    };
    const key = join(folder, 'key.pem');
    const env = { ...settings, SAGITTA_TLS_CERT: join(folder, 'none.pem'), SAGITTA_TLS_KEY: key };
    await assert.rejects(startServer(loadConfig({ env })), {
      code: 'configuration_invalid',
      message: /none\.pem cannot be read: no such file/,
    });
    await (await startServer(loadConfig({ env: settings }))).stop();
    await rm(folder, { recursive: true });
  });
});

describe('the client address behind a proxy', () => {
  /** The client in the audit log for a request with X-Forwarded-For. */
  async function clientOf(trustedProxies: string[], forwardedFor: string): Promise<unknown> {
    const log: LogLine[] = [];
    const service = await createService({ trustedProxies, logger: recordingLogger(log) });
    await service.app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = service.app.server.address() as AddressInfo;
    const body = '{"dimension":2,"metric":"dot"}';
    request({
      port,
      method: 'POST',
      path: '/collections',
      agent: false,
      headers: { 'content-type': 'application/json', 'x-forwarded-for': forwardedFor },
    })
      .on('error', () => {})
      .end(body);
    const isAudit = ({ message }: LogLine) => message === 'audit';
    await until(() => log.some(isAudit));
    await service.close();
    return log.find(isAudit)?.details.client;
  }

  it('is taken from X-Forwarded-For of trusted proxies only', async () => {
    assert.equal(await clientOf([], '203.0.113.7'), '127.0.0.1');
    assert.equal(await clientOf(['10.0.0.0/8'], '203.0.113.7'), '127.0.0.1');
    assert.equal(await clientOf(['127.0.0.1'], '203.0.113.7'), '203.0.113.7');
    assert.equal(await clientOf(['127.0.0.0/8', '::1'], '2001:db8::7'), '2001:db8::7');
    // The proxy appends the address that it sees to the header of the client.
    assert.equal(await clientOf(['127.0.0.1'], '198.51.100.1, 203.0.113.7'), '203.0.113.7');
    assert.equal(
      await clientOf(['127.0.0.1', '203.0.113.0/24'], '198.51.100.1, 203.0.113.7'),
      '198.51.100.1',
    );
  });
});
