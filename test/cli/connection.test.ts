// The messages of commands that cannot talk to a server: wrong scheme, unknown authority, missing or wrong key.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, it } from 'node:test';
import { createAuthority } from '../support/certificates.js';
import { run } from './command.js';

/** The problem with which a server replies to each key. */
const PROBLEMS: Readonly<Record<string, readonly [status: number, code: string]>> = {
  none: [401, 'credentials_missing'],
  'Bearer wrong': [401, 'credentials_invalid'],
  'Bearer weak': [403, 'insufficient_scope'],
};

let plain: Server;
let secure: Server;
let authority: Awaited<ReturnType<typeof createAuthority>>;

before(async () => {
  plain = createHttpServer((request, response) => {
    const [status, code] = PROBLEMS[request.headers.authorization ?? 'none']!;
    const problem = { code, detail: 'Refused.', status, title: 'Refused' };
    response.writeHead(status, { 'content-type': 'application/problem+json' });
    response.end(JSON.stringify(problem));
  });
  authority = await createAuthority();
  const options = { subject: 'CN=server', san: [{ type: 'dns' as const, value: 'elsewhere' }] };
  secure = createTlsServer(await authority.issue(options));
  for (const server of [plain, secure]) await once(server.listen(0, '127.0.0.1'), 'listening');
});
after(() => {
  for (const server of [plain, secure]) server.close();
});

const portOf = (server: Server) => (server.address() as AddressInfo).port;

const failures: readonly [what: string, url: () => string, expected: RegExp][] = [
  [
    'https on a port without TLS',
    () => `https://127.0.0.1:${portOf(plain)}`,
    /^sagitta: cannot reach https:\S+ wrong version number\. The server speaks plain HTTP: use http:\/\/ in --url\.$/m,
  ],
  [
    'http on a port with TLS',
    () => `http://127.0.0.1:${portOf(secure)}`,
    /Is the server running.* If it uses TLS, use https:\/\/ in --url\.$/m,
  ],
  [
    'a certificate of an unknown authority',
    () => `https://127.0.0.1:${portOf(secure)}`,
    /unable to verify the first certificate.*\. If the certificate is your own, name its authority for Node: NODE_EXTRA_CA_CERTS=ca\.pem/,
  ],
];

for (const [what, url, expected] of failures) {
  it(`the message about ${what} gives advice`, async () => {
    const { code, stderr } = await run(['collections', 'list', '--url', url()]);
    assert.match(stderr, expected);
    assert.equal(code, 3);
  });
}

it('a URL with a password is refused as a wrong argument, and the password is not shown', async () => {
  const { code, stderr } = await run([
    'collections',
    'list',
    '--url',
    'http://me:secret@127.0.0.1#f',
  ]);
  assert.match(
    stderr,
    /^sagitta: --url must be an address alone, found http:\/\/127\.0\.0\.1 with a user name/,
  );
  assert.doesNotMatch(stderr, /secret/);
  assert.equal(code, 2);
});

it('the message about a missing, wrong or weak key says where keys come from', async () => {
  const list = ['collections', 'list', '--url', `http://127.0.0.1:${portOf(plain)}`];
  for (const [key, expected] of [
    [
      [],
      /Refused\. Name a key with --api-key or SAGITTA_API_KEY; sagitta keys create makes one\.$/m,
    ],
    [['--api-key', 'wrong'], /Check --api-key or SAGITTA_API_KEY; sagitta keys list shows/],
    [['--api-key', 'weak'], /Use another key, or make one with sagitta keys create --scope\.$/m],
  ] as const) {
    const { code, stderr } = await run([...list, ...key]);
    assert.match(stderr, expected);
    assert.equal(code, 1);
  }
});
