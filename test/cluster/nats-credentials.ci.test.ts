// The credentials of nodes at NATS servers, and the servers that nodes refuse.

import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { nkeys, nuid } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import type { NatsLogin } from '../../src/cluster/service/nats-login.js';
import { NatsService } from '../../src/cluster/service/nats-service.js';
import type { SagittaError } from '../../src/common/errors.js';
import { silentLogger } from '../../src/common/logger.js';
import { untilAvailable } from '../../src/common/until-available.js';
import { type Config, loadConfig } from '../../src/platform/config.js';
import { type Authority, createAuthority } from '../support/certificates.js';
import { eventually } from '../support/waiting.js';
import { NatsServers, natsMissing } from './nats-servers.js';
import { startNode } from './running-cluster.js';

const NO_LOGIN: NatsLogin = {
  user: null,
  password: null,
  token: null,
  nkey: null,
  credentials: null,
  tlsCa: null,
  tlsCert: null,
  tlsKey: null,
};
const missing = natsMissing();

describe('the connection of a node to NATS', { skip: missing ?? false }, () => {
  let folder: string;
  let authority: Authority;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sagitta-login-'));
    authority = await createAuthority();
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** Connects to a server with this configuration. */
  async function withServer(
    configuration: string,
    test: (
      open: (login: Partial<NatsLogin>, isInsecure?: boolean) => Promise<void>,
    ) => Promise<void>,
    host = '127.0.0.1',
  ): Promise<void> {
    const place = { host, prefix: [], dataFolder: join(folder, nuid.next()) };
    const nats = await NatsServers.start(1, { configuration, places: [place] });
    try {
      await test(async (login, isInsecure = false) => {
        const connecting = () =>
          NatsService.connect({
            urls: nats.urls.map((url) => url.replace(/0\.0\.0\.0|127\.0\.0\.1/, 'localhost')),
            login: { ...NO_LOGIN, ...login },
            isInsecure,
            cluster: 'test',
            replicas: 1,
            logger: silentLogger,
          });
        // A busy server may not answer in time, as at the start of a node.
        const waiting = { logger: silentLogger, stopping: undefined };
        const service = await untilAvailable(connecting, waiting);
        await service.createLog('catalogue', { isStarting: true });
        await service.close();
      });
    } finally {
      await nats.stop();
    }
  }
  const refused = (opening: Promise<void>, detail: RegExp, hidden = '') =>
    assert.rejects(opening, ({ code, message }: SagittaError) => {
      assert.match(message, detail);
      assert.ok(hidden === '' || !message.includes(hidden), message);
      return code === 'configuration_invalid';
    });

  it('has a user and a password, or fails with advice', async () => {
    await withServer('authorization { user: me, password: "right one" }', async (open) => {
      await open({ user: 'me', password: 'right one' });
      await refused(
        open({ user: 'me', password: 'wrong one' }),
        /refuses the credentials of the node: compare the user "me" and the password in SAGITTA/,
        'wrong one',
      );
      await refused(
        open({}),
        /requires credentials, and none are configured: set SAGITTA_CLUSTER_/,
      );
      await refused(open({ token: 'right one' }), /compare the token in SAGITTA_CLUSTER/);
    });
  });

  it('has a token, an nkey or a file with credentials', async () => {
    await withServer('authorization { token: "one" }', async (open) => {
      await open({ token: 'one' });
      await refused(open({ token: 'two-two' }), /compare the token/, 'two-two');
    });
    const user = nkeys.createUser();
    const nkey = Buffer.from(user.getSeed()).toString();
    const users = `authorization { users: [ { nkey: ${user.getPublicKey()} } ] }`;
    await withServer(users, async (open) => {
      await open({ nkey });
      const other = Buffer.from(nkeys.createUser().getSeed()).toString();
      await refused(open({ nkey: other }), /compare the seed in SAGITTA_CLUSTER_NKEY/, other);
      const credentials = join(folder, 'absent.creds');
      await refused(
        open({ credentials }),
        /SAGITTA_CLUSTER_CREDENTIALS to name a readable .*: ENO/,
      );
      await refused(
        open({ nkey: `SU${'A'.repeat(56)}` }),
        /^Expected SAGITTA_CLUSTER_NKEY to be a seed: nk/,
      );
      await writeFile(credentials, '');
      await refused(open({ tlsCa: credentials }), /^Expected SAGITTA_CLUSTER_TLS_CA .* is empty/);
      await writeFile(credentials, 'something else');
      await refused(open({ credentials }), /_CREDENTIALS to name a \.creds file; found .*: unable/);
    });
  });

  it('is encrypted, and has a certificate', async () => {
    const pem = async (name: string, text: string) => {
      const path = join(folder, name);
      await writeFile(path, text);
      return path;
    };
    const tlsCa = await pem('ca.pem', authority.cert);
    const server = await authority.issue({
      subject: 'CN=nats',
      san: [{ type: 'dns', value: 'localhost' }],
    });
    const client = await authority.issue({ subject: 'CN=node', purpose: 'client' });
    const tlsCert = await pem('node.pem', client.cert);
    const tlsKey = await pem('node.key', client.key);
    const files = `cert_file: "${await pem('nats.pem', server.cert)}", key_file: "${await pem('nats.key', server.key)}"`;
    const tls = `tls { ${files}, ca_file: "${tlsCa}", verify: true }`;
    await withServer(tls, async (open) => {
      await open({ tlsCa, tlsCert, tlsKey });
      await refused(open({ tlsCert, tlsKey }), /cannot be reached: .*(certificate|issuer)/i);
      await refused(open({ tlsCa }), /cannot be reached/);
    });
    await withServer('', async (open) => {
      await refused(open({ tlsCa }), /cannot be reached: .*tls/i);
    });
  });

  it('is refused for servers that other machines reach without credentials', async () => {
    await withServer('', (open) => open({}));
    const open = (open: (login: Partial<NatsLogin>, isInsecure?: boolean) => Promise<void>) =>
      refused(open({}), /listens on 0\.0\.0\.0 and requires no credentials.*SAGITTA_CLUSTER_INSE/s);
    await withServer('', open, '0.0.0.0');
    await withServer('', (open) => open({}, true), '0.0.0.0');
    await withServer('authorization { token: "one" }', (open) => open({ token: 'one' }), '0.0.0.0');
    const users = (more: string) =>
      `accounts { A { users: [ { user: me, password: one }, { user: all, password: x } ], jetstream: enabled } }\n${more}`;
    const login = { user: 'me', password: 'one' };
    await withServer(users(''), (open) => open(login), '0.0.0.0');
    const toAll = users('no_auth_user: all');
    await withServer(toAll, (open) => refused(open(login), /no credentials/), '0.0.0.0');
    await withServer(toAll, (open) => open(login));
  });

  it('is refused when one of several servers requires no credentials, but not when one is down', async () => {
    const start = (host: string, configuration: string) =>
      NatsServers.start(1, {
        configuration,
        places: [{ host, prefix: [], dataFolder: join(folder, nuid.next()) }],
      });
    const closed = await start('127.0.0.1', 'authorization { token: "one" }');
    const open = await start('0.0.0.0', 'jetstream: enabled');
    try {
      const connectTo = async (...urls: string[]) => {
        const login = { ...NO_LOGIN, token: 'one' };
        const options = { urls, login, isInsecure: false, cluster: 'test', replicas: 1 };
        const service = await NatsService.connect({ ...options, logger: silentLogger });
        await service.close();
      };
      const other = open.urls[0]!.replace('0.0.0.0', 'localhost');
      await refused(connectTo(closed.urls[0]!, other), new RegExp(`^NATS at ${other} listens`));
      await open.stop();
      await connectTo(closed.urls[0]!, other);
    } finally {
      await open.stop();
      await closed.stop();
    }
  });

  it('shows its secrets nowhere: not on NATS, not in logs, not in replies', async () => {
    const secret = `secret-${nuid.next()}-of-all-nodes-of-it`;
    const password = `password-${nuid.next()}`;
    const configuration = `authorization { user: me, password: "${password}" }`;
    const place = { host: '127.0.0.1', prefix: [], dataFolder: join(folder, nuid.next()) };
    const nats = await NatsServers.start(1, { configuration, places: [place] });
    const url = nats.urls[0]!.replace('//', `//me:${password}@`);
    const read = loadConfig({
      env: {
        SAGITTA_CLUSTER: url,
        SAGITTA_CLUSTER_SECRET: secret,
        SAGITTA_CLUSTER_REPLICAS: '1',
        SAGITTA_BLOBS: join(folder, 'blobs'),
      },
    });
    const { clusterUser, clusterPassword, clusterSecret, clusterReplicas } = read;
    const config: Partial<Config> = {
      clusterUser,
      clusterPassword,
      clusterSecret,
      clusterReplicas,
    };
    const stranger = await connect({
      servers: [url.replace(/me:.*@/, '')],
      user: 'me',
      pass: password,
    });
    const heard: string[] = [];
    stranger.subscribe('>', {
      callback: (_error, { data }) => {
        heard.push(Buffer.from(data).toString('latin1'));
      },
    });
    const server = await startNode({ nats, name: 'hidden', node: 'n1', folder, config });
    try {
      const made = await fetch(`${server.url}/v1/keys`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ owner: 'me', scopes: ['admin'] }),
      });
      const { key } = (await made.json()) as { key: string };
      const headers = { authorization: `Bearer ${key}` };
      const shown = await Promise.all(
        ['/v1/cluster', '/v1/cluster/files', '/v1/limits', '/metrics', '/v1/audit'].map(
          async (path) => (await fetch(server.url + path, { headers })).text(),
        ),
      );
      await stranger.flush();
      assert.ok(
        heard.some((text) => text.includes('"owner":"me"')),
        'the stranger hears the log',
      );
      for (const text of [...heard, ...shown]) {
        for (const hidden of [secret, password, key, key.slice(-30)]) {
          assert.ok(!text.includes(hidden), text.slice(0, 200));
        }
      }
      // Also with the records at another position.
      await eventually('an archive', async () => {
        const names = await readdir(join(folder, 'blobs'), { recursive: true });
        return names.some((name) => name.includes('archive'));
      });
      // An attacker with the password of NATS, but without the secret.
      const other = { ...config, clusterSecret: ['another secret, of somebody else here'] };
      await assert.rejects(startNode({ nats, name: 'hidden', node: 'n2', folder, config: other }), {
        code: 'configuration_invalid',
        message: /^Expected the same SAGITTA_CLUSTER_SECRET on all nodes .*; found the log hidden-/,
      });
    } finally {
      await stranger.close();
      await server.stop();
      await nats.stop();
    }
  });
});
