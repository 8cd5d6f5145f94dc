// Precedence among several kinds of credentials.

import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { it } from 'node:test';
import { EVERYBODY, NOBODY, OPERATOR, type Principal } from '../../../src/common/access.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';

const principalOf = (id: string): Principal => ({ id, grants: [] });
const verifier = (kind: string) => ({ verify: (token: string) => principalOf(`${kind}:${token}`) });
const apiKeys = { isInUse: true, ...verifier('key') };
const tokens = verifier('token');
const certificates = { principalOf: () => principalOf('certificate') };
const socket = new Socket();

function identify(authenticator: Authenticator, authorization?: string) {
  return authenticator.identify({ authorization, origin: undefined, socket });
}

it('an API key is told from an access token by its prefix', () => {
  const both = new Authenticator({ apiKeys, tokens });
  assert.deepEqual(identify(both, 'Bearer sk_a'), principalOf('key:sk_a'));
  assert.deepEqual(identify(both, 'Bearer eyJ.sk_a'), principalOf('token:eyJ.sk_a'));
  const keysOnly = new Authenticator({ apiKeys });
  assert.deepEqual(identify(keysOnly, 'Bearer eyJ'), principalOf('key:eyJ'));
  const tokensOnly = new Authenticator({ tokens });
  assert.deepEqual(identify(tokensOnly, 'Bearer sk_a'), principalOf('token:sk_a'));
});

it('a bearer token counts before a certificate, and the control socket before both', () => {
  const all = { apiKeys, tokens, certificates };
  assert.deepEqual(identify(new Authenticator(all), 'Bearer sk_a'), principalOf('key:sk_a'));
  assert.deepEqual(identify(new Authenticator(all)), principalOf('certificate'));
  const operator = new Authenticator({ ...all, isOperator: (found) => found === socket });
  assert.equal(identify(operator, 'Bearer sk_a'), OPERATOR);
});

it('a request without a credential comes from nobody once one is required', () => {
  assert.equal(identify(new Authenticator({ apiKeys })), NOBODY);
  const unused = { ...apiKeys, isInUse: false };
  assert.equal(identify(new Authenticator({ apiKeys: unused })), EVERYBODY);
  assert.equal(identify(new Authenticator({ apiKeys: unused, tokens })), NOBODY);
  assert.throws(() => identify(new Authenticator({ certificates }), 'Bearer sk_a'), {
    code: 'credentials_invalid',
  });
});
