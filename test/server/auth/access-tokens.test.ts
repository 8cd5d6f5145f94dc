import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, before, describe, it } from 'node:test';
import { base64url, exportPKCS8, exportSPKI, importPKCS8, type JWK } from 'jose';
import type { Clock } from '../../../src/common/clock.js';
import { SagittaError } from '../../../src/common/errors.js';
import { silentLogger } from '../../../src/common/logger.js';
import { JWT_ALGORITHMS } from '../../../src/platform/settings.js';
import { AccessTokens } from '../../../src/server/auth/access-tokens.js';
import { type KeySet, openKeySet } from '../../../src/server/auth/key-sets.js';
import { AUDIENCE, createSigner, ISSUER, NOW, type Signer, sign } from './signed-tokens.js';

function writeToken(header: object, claims: object, signature = ''): string {
  const parts = [header, claims].map((part) => base64url.encode(JSON.stringify(part)));
  return [...parts, signature].join('.');
}

describe('access tokens', () => {
  let folder: string;
  let shiftMs = 0;
  const clock: Clock = { now: () => NOW * 1000 + shiftMs };
  const signers = new Map<string, Signer>();
  const opened: KeySet[] = [];

  before(async () => {
    for (const alg of JWT_ALGORITHMS) signers.set(alg, await createSigner(alg, `key-${alg}`));
  });
  afterEach(async () => {
    shiftMs = 0;
    for (const keys of opened.splice(0)) keys.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  async function verifier(
    jwks: readonly JWK[] = [...signers.values()].map(({ jwk }) => jwk),
    algorithms: readonly string[] = JWT_ALGORITHMS,
    types: 'any' | 'at+jwt' = 'any',
  ): Promise<AccessTokens> {
    folder = await mkdtemp(join(tmpdir(), 'sagitta-jwks-'));
    const source = join(folder, 'jwks.json');
    await writeFile(source, JSON.stringify({ keys: jwks }));
    const keys = await openKeySet({ source, logger: silentLogger });
    opened.push(keys);
    const options = { keys, issuer: ISSUER, audience: AUDIENCE, algorithms, types, clock };
    return new AccessTokens(options);
  }
  const es256 = () => signers.get('ES256')!;
  const rs256 = () => signers.get('RS256')!;

  async function assertRefused(tokens: AccessTokens, token: string, detail: RegExp): Promise<void> {
    await assert.rejects(
      async () => tokens.verify(token),
      (error) => {
        assert.ok(error instanceof SagittaError, String(error));
        assert.equal(error.code, 'credentials_invalid');
        assert.match(error.message, detail);
        assert.ok(token === '' || !error.message.includes(token.slice(0, 40)), 'tells the token');
        return true;
      },
    );
  }

  it('are accepted with each configured algorithm and no other', async () => {
    const tokens = await verifier();
    for (const signer of signers.values()) {
      const principal = await tokens.verify(await sign(signer));
      assert.equal(principal.id, `token:${ISSUER}|alice`, signer.alg);
    }
    const few = await verifier(undefined, ['ES256', 'EdDSA']);
    assert.ok(await few.verify(await sign(es256())));
    await assertRefused(
      few,
      await sign(rs256()),
      /algorithm is not accepted; expected ES256, EdDSA/,
    );
  });

  it('grant their scopes, without those of other services', async () => {
    const tokens = await verifier();
    const cases: [claims: object, grants: string[]][] = [
      [{}, ['vectors:read|catalog-*']],
      [{ scope: undefined, scp: 'admin profile' }, ['admin|*']],
      [{ scope: undefined, scp: ['vectors:write', 7, 'x'] }, ['vectors:write|*']],
      [{ scope: 'admin admin', scp: ['admin'] }, ['admin|*']],
      [{ scope: '' }, []],
      [{ scope: { admin: true }, scp: [['admin']] }, []],
    ];
    for (const [claims, expected] of cases) {
      const { grants } = await tokens.verify(await sign(es256(), { ...claims }));
      assert.deepEqual(
        grants.map(({ scope, collections }) => `${scope}|${collections}`),
        expected,
      );
    }
  });

  it('identify a subject, or else a client', async () => {
    const tokens = await verifier();
    const service = await sign(es256(), { sub: undefined, client_id: 'crawler' });
    assert.equal((await tokens.verify(service)).id, `token:${ISSUER}|crawler`);
    await assertRefused(
      tokens,
      await sign(es256(), { sub: undefined }),
      /neither a sub nor a client_id/,
    );
    await assertRefused(tokens, await sign(es256(), { sub: '' }), /neither a sub nor a client_id/);
  });

  it('are refused from another issuer, for another audience, before nbf or after exp', async () => {
    const tokens = await verifier();
    const cases: [claims: object, detail: RegExp][] = [
      [{ iss: 'https://other.example' }, /issuer .* is not trusted/],
      [{ iss: undefined }, /iss/],
      [{ aud: 'other' }, /audience .* is not this service/],
      [{ aud: ['other', 'sagitta2'] }, /audience .* is not this service/],
      [{ aud: undefined }, /aud/],
      [{ exp: NOW - 31 }, /has expired/],
      [{ exp: undefined }, /no expiry \(exp\)/],
      [{ exp: '2999' }, /exp/],
      [{ nbf: NOW + 31 }, /not valid yet/],
    ];
    for (const [claims, detail] of cases) {
      await assertRefused(tokens, await sign(es256(), { ...claims }), detail);
    }
    // Within the clock tolerance.
    for (const claims of [{ exp: NOW - 29 }, { nbf: NOW + 29 }, { aud: ['x', AUDIENCE] }]) {
      assert.ok(await tokens.verify(await sign(es256(), claims)));
    }
  });

  it('are refused if their header names another type', async () => {
    const tokens = await verifier();
    for (const typ of ['JWT', 'at+jwt', 'application/at+jwt']) {
      assert.ok(await tokens.verify(await sign(es256(), {}, { typ })));
    }
    await assertRefused(tokens, await sign(es256(), {}, { typ: 'logout+jwt' }), /another type/);
    const strict = await verifier([es256().jwk], JWT_ALGORITHMS, 'at+jwt');
    for (const header of [{ typ: 'JWT' }, {}]) {
      await assertRefused(strict, await sign(es256(), {}, header), /not at\+jwt/);
    }
    for (const typ of ['at+jwt', 'application/at+jwt', 'AT+JWT']) {
      assert.ok(await strict.verify(await sign(es256(), { scope: undefined }, { typ })));
    }
  });

  it('are refused if they are ID tokens, whose header has the same type', async () => {
    const tokens = await verifier();
    for (const [claims, detail] of [
      [{ nonce: 'n' }, /ID token .*nonce/],
      [{ at_hash: 'x' }, /ID token .*at_hash/],
      [{ typ: 'ID' }, /claim typ/],
      [{ typ: 'Refresh' }, /claim typ/],
      [{ typ: 7 }, /claim typ/],
      [{ token_use: 'id' }, /claim token_use/],
      [{ scope: undefined }, /no scopes/],
    ] as const) {
      await assertRefused(tokens, await sign(es256(), claims, { typ: 'JWT' }), detail);
      await assertRefused(tokens, await sign(es256(), claims), detail);
    }
    // The access tokens of Keycloak, Cognito and Entra.
    for (const claims of [
      { typ: 'Bearer', azp: 'app', nonce: 'n', scope: undefined },
      { token_use: 'access', client_id: 'app' },
      { scope: undefined, scp: 'vectors:read', nbf: NOW },
    ]) {
      assert.ok(await tokens.verify(await sign(es256(), claims, { typ: 'JWT' })));
    }
  });

  it('with unexpected types of claims and headers are refused without an internal error', async () => {
    const tokens = await verifier();
    const odd: unknown[] = [null, true, 7, -1, 1.5, '', 'x', {}, { toString: 1 }, [], [7], [{}]];
    const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: NOW + 300, scope: '', scp: '' };
    const verdict = async (payload: object | string, header: object = {}): Promise<string> => {
      const { kid, alg } = es256().jwk;
      const [head, body] = [
        JSON.stringify({ alg, kid, ...header }),
        typeof payload === 'string' ? payload : JSON.stringify(payload),
      ].map((part) => base64url.encode(part));
      const signed = new TextEncoder().encode(`${head}.${body}`);
      const ecdsa = { name: 'ECDSA', hash: 'SHA-256' };
      const signature = await crypto.subtle.sign(ecdsa, es256().privateKey, signed);
      const token = `${head}.${body}.${base64url.encode(new Uint8Array(signature))}`;
      try {
        return (await tokens.verify(token)).id;
      } catch (error) {
        assert.ok(
          error instanceof SagittaError,
          `${JSON.stringify({ payload, header })}: ${error}`,
        );
        return error.code;
      }
    };
    const alice = `token:${ISSUER}|alice`;
    assert.equal(await verdict(claims), alice);
    for (const value of odd) {
      for (const name of ['typ', 'kid', 'alg', 'crit', 'b64', 'zip']) {
        const found = await verdict(claims, { [name]: value });
        // RFC 7797 allows b64, and zip is ignored.
        const isTaken = ['b64', 'zip'].includes(name) && found === alice;
        assert.ok(
          isTaken || found === 'credentials_invalid',
          `${name} ${JSON.stringify(value)}: ${found}`,
        );
      }
      for (const name of ['iss', 'aud', 'sub', 'exp', 'nbf', 'iat']) {
        const found = await verdict({ ...claims, [name]: value });
        const isTaken =
          (['nbf', 'iat'].includes(name) && typeof value === 'number') ||
          (name === 'sub' && value === 'x');
        if (!isTaken)
          assert.equal(found, 'credentials_invalid', `${name} ${JSON.stringify(value)}`);
      }
      for (const name of ['scope', 'scp']) {
        assert.equal(
          await verdict({ ...claims, [name]: value }),
          alice,
          `${name} ${JSON.stringify(value)}`,
        );
      }
      assert.equal(
        await verdict({ ...claims, sub: undefined, client_id: value }),
        value === 'x' ? `token:${ISSUER}|x` : 'credentials_invalid',
      );
    }
    const text = JSON.stringify(claims);
    const withTime = (name: string, value: string) =>
      verdict(
        text.replace(/"exp":\d+/, (exp) => `${name === 'exp' ? '' : `${exp},`}"${name}":${value}`),
      );
    for (const value of ['1e999', '-1e999', '-5', '0', '1.5']) {
      assert.equal(await withTime('exp', value), 'credentials_invalid', `exp ${value}`);
    }
    for (const value of ['1e300', `${NOW + 9}.25`, '9007199254740993']) {
      assert.equal(await withTime('exp', value), alice, `exp ${value}`);
    }
    for (const value of ['1e999', '1e300']) {
      assert.equal(await withTime('nbf', value), 'credentials_invalid', `nbf ${value}`);
    }
    for (const value of ['-1e999', '-5.5']) assert.equal(await withTime('nbf', value), alice);
    for (const payload of ['null', '[]', '7', '"x"', '', '{', '\uFEFF{}', '{"__proto__":{}}']) {
      assert.equal(await verdict(payload), 'credentials_invalid', payload);
    }
  });

  it('may have a subject of at most 255 characters', async () => {
    const tokens = await verifier();
    assert.ok(await tokens.verify(await sign(es256(), { sub: 'x'.repeat(255) })));
    for (const claims of [
      { sub: 'x'.repeat(256) },
      { sub: undefined, client_id: 'x'.repeat(256) },
    ]) {
      await assertRefused(tokens, await sign(es256(), claims), /at most 255 characters; found 256/);
    }
  });

  it('are refused if unsigned, modified, or signed by another issuer or an unknown key', async () => {
    const tokens = await verifier();
    const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: NOW + 300, scope: 'admin' };
    for (const alg of ['none', 'None', 'NONE']) {
      await assertRefused(
        tokens,
        writeToken({ alg }, claims),
        /algorithm is not accepted|not an access/,
      );
      await assertRefused(tokens, writeToken({ alg, kid: 'key-ES256' }, claims), /./);
    }
    const foreigner = await createSigner('ES256', 'key-ES256');
    await assertRefused(tokens, await sign(foreigner), /signature is invalid/);
    const unknownSigner = await createSigner('ES256', 'key-unknown');
    await assertRefused(tokens, await sign(unknownSigner), /not in the key set of its issuer/);

    const [head, , signature] = (await sign(es256())).split('.');
    const altered = [head, base64url.encode(JSON.stringify(claims)), signature].join('.');
    await assertRefused(tokens, altered, /signature/);

    // Keys that the token contains or links to.
    const header = {
      jwk: foreigner.jwk,
      jku: 'http://127.0.0.1:1/jwks',
      x5u: 'http://127.0.0.1:1',
    };
    await assertRefused(tokens, await sign(foreigner, {}, header as object), /signature/);
    await assertRefused(tokens, await sign(unknownSigner, {}, header as object), /key set/);
  });

  it('cannot be signed with the public key as a shared secret', async () => {
    const tokens = await verifier();
    const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: NOW + 300, scope: 'admin' };
    const pem = await exportSPKI(rs256().publicKey);
    for (const secret of [pem, pem.trim(), JSON.stringify(rs256().jwk), rs256().jwk.n!]) {
      for (const alg of ['HS256', 'RS256']) {
        const text = writeToken({ alg, kid: 'key-RS256' }, claims).slice(0, -1);
        const mac = createHmac('sha256', secret).update(text).digest('base64url');
        await assertRefused(tokens, `${text}.${mac}`, /algorithm|signature/);
      }
    }
    // A key for one algorithm does not verify another algorithm.
    const pkcs8 = await exportPKCS8(rs256().privateKey);
    const privateKey = await importPKCS8(pkcs8, 'PS256');
    const confused = await sign({ ...rs256(), privateKey, alg: 'PS256' });
    await assertRefused(tokens, confused, /key set/);
  });

  it('are refused if they are not JWTs', async () => {
    const tokens = await verifier();
    for (const text of ['', 'x', 'a.b', 'a.b.c', 'e30.e30.e30', '.'.repeat(5), 'sk_abc_def']) {
      await assertRefused(tokens, text, /not an access token/);
    }
    await assertRefused(tokens, 'a'.repeat(16_385), /at most 16384 characters; found 16385/);
  });

  it('need not name their key if one of several verifies them', async () => {
    const [one, two, three] = [
      await createSigner('ES256', 'one'),
      await createSigner('ES256', 'two'),
      await createSigner('ES256', 'three'),
    ];
    const tokens = await verifier([one.jwk, two.jwk]);
    const nameless = (signer: Signer) => sign({ ...signer, jwk: {} });
    assert.ok(await tokens.verify(await nameless(two)));
    await assertRefused(tokens, await nameless(three), /signature/);
  });

  it('are cached for a while, and never beyond their expiry', async () => {
    const tokens = await verifier();
    const long = await sign(es256());
    const short = await sign(es256(), { exp: NOW + 5 });
    assert.ok(tokens.verify(long) instanceof Promise);
    await tokens.verify(short);
    await tokens.verify(long);
    assert.equal((tokens.verify(long) as { id: string }).id, `token:${ISSUER}|alice`);
    shiftMs = 29_000;
    assert.ok(!(tokens.verify(long) instanceof Promise));
    shiftMs = 36_000;
    await assertRefused(tokens, short, /expired/);
    const again = tokens.verify(long);
    assert.ok(again instanceof Promise, 'verified anew');
    await again;
  });
});
