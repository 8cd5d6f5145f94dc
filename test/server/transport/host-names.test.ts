// The names under which a service without credentials answers.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { HostNames } from '../../../src/server/transport/host-names.js';
import { createService, expectProblem } from '../harness.js';

const REFUSED = { code: 'invalid_request', message: /SAGITTA_HOST_NAMES/ };

describe('host names', () => {
  const accepts = (names: HostNames, ...hosts: (string | undefined)[]) => {
    for (const host of hosts) assert.doesNotThrow(() => names.check(host), host);
  };
  const refuses = (names: HostNames, ...hosts: string[]) => {
    for (const host of hosts) assert.throws(() => names.check(host), REFUSED, host);
  };

  it('are those of this machine, and addresses, where no others are listed', () => {
    const names = new HostNames([], 'Box.example.net');
    accepts(names, undefined, 'localhost', 'LOCALHOST:8484', 'localhost.', '127.0.0.1:8484');
    accepts(names, '[::1]:8484', '[::1]', '10.1.2.3:8484', '[fe80::1]', '192.168.0.7');
    accepts(names, 'box.example.net', 'box.example.net:1', 'BOX.EXAMPLE.NET.:80');
    refuses(names, 'evil.example', 'evil.example:8484', 'localhost.evil.example', 'box', '');
    refuses(names, '127.0.0.1.evil.example', '[localhost]', '127.1', '::1', 'localhost:x', 'a b');
  });

  it('include those that are listed, and those below one', () => {
    const names = new HostNames(['Sagitta', '*.svc.cluster.local'], 'box');
    accepts(names, 'sagitta:8484', 'sagitta.default.svc.cluster.local:8484', 'localhost', 'box');
    refuses(names, 'svc.cluster.local', 'xsvc.cluster.local', 'sagitta.example', 'boxes');
  });

  it('are any with *', () => {
    accepts(new HostNames(['*'], 'box'), 'evil.example', '');
  });
});

describe('a service', () => {
  const ask = (host: string) => ({ headers: { host } });

  it('with credentials answers under every name', async () => {
    const apiKeys = { isInUse: true, verify: () => assert.fail('no key was sent') };
    const service = await createService({ authenticator: new Authenticator({ apiKeys }) });
    assert.equal((await service.call('GET', '/livez', ask('sagitta.example.org'))).status, 200);
    const refused = service.call('GET', '/collections', ask('sagitta.example.org'));
    await expectProblem(refused, 401, 'credentials_missing');
    await service.close();
  });
});
