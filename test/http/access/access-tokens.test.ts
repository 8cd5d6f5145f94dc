import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, before, describe, it } from 'node:test';
import {
  base64url,
  exportJWK,
  exportPKCS8,
  exportSPKI,
  generateKeyPair,
  importPKCS8,
  type JWK,
  type JWTHeaderParameters,
  SignJWT,
} from 'jose';
import type { Clock } from '../../../src/clock.js';
import { SagittaError } from '../../../src/errors.js';
import { AccessTokens } from '../../../src/http/access/access-tokens.js';
import { type KeySet, type KeySetTimes, openKeySet } from '../../../src/http/access/key-sets.js';
import { silentLogger } from '../../../src/logger.js';
import { JWT_ALGORITHMS } from '../../../src/settings.js';
import { type LogLine, recordingLogger, until } from '../secure-service.js';

const ISSUER = 'https://issuer.example';
const AUDIENCE = 'sagitta';
const NOW = Math.floor(Date.now() / 1000);

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;
interface Signer extends KeyPair {
  readonly alg: string;
  readonly jwk: JWK;
}

async function createSigner(alg: string, kid: string): Promise<Signer> {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { ...pair, alg, jwk: { ...(await exportJWK(pair.publicKey)), kid, alg, use: 'sig' } };
}

/** Good but for what a test changes; undefined leaves a claim out. */
function sign(
  signer: Signer,
  claims: Record<string, unknown> = {},
  header: Partial<JWTHeaderParameters> = {},
): Promise<string> {
  const { kid } = signer.jwk;
  return new SignJWT({
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'alice',
    exp: NOW + 300,
    scope: 'vectors:read:catalog-* openid',
    ...claims,
  })
    .setProtectedHeader({ alg: signer.alg, ...(kid !== undefined && { kid }), ...header })
    .sign(signer.privateKey);
}

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
  ): Promise<AccessTokens> {
    folder = await mkdtemp(join(tmpdir(), 'sagitta-jwks-'));
    const source = join(folder, 'jwks.json');
    await writeFile(source, JSON.stringify({ keys: jwks }));
    const keys = await openKeySet({ source, logger: silentLogger });
    opened.push(keys);
    return new AccessTokens({ keys, issuer: ISSUER, audience: AUDIENCE, algorithms, clock });
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

  it('are taken by each algorithm of the list, and no other', async () => {
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
      /another algorithm than is taken; expected ES256, EdDSA/,
    );
  });

  it('carry their scopes, of which those of others are left out', async () => {
    const tokens = await verifier();
    const cases: [claims: object, grants: string[]][] = [
      [{}, ['vectors:read|catalog-*']],
      [{ scope: undefined, scp: 'admin profile' }, ['admin|*']],
      [{ scope: undefined, scp: ['vectors:write', 7, 'x'] }, ['vectors:write|*']],
      [{ scope: 'admin admin', scp: ['admin'] }, ['admin|*']],
      [{ scope: undefined }, []],
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

  it('name a subject, or a client that speaks for itself', async () => {
    const tokens = await verifier();
    const service = await sign(es256(), { sub: undefined, client_id: 'crawler' });
    assert.equal((await tokens.verify(service)).id, `token:${ISSUER}|crawler`);
    await assertRefused(tokens, await sign(es256(), { sub: undefined }), /names nobody/);
    await assertRefused(tokens, await sign(es256(), { sub: '' }), /names nobody/);
  });

  it('are refused from another issuer, for another audience, or outside their time', async () => {
    const tokens = await verifier();
    const cases: [claims: object, detail: RegExp][] = [
      [{ iss: 'https://other.example' }, /another issuer/],
      [{ iss: undefined }, /iss/],
      [{ aud: 'other' }, /another audience/],
      [{ aud: ['other', 'sagitta2'] }, /another audience/],
      [{ aud: undefined }, /aud/],
      [{ exp: NOW - 31 }, /has expired/],
      [{ exp: undefined }, /when it expires \(exp\)/],
      [{ exp: '2999' }, /exp/],
      [{ nbf: NOW + 31 }, /not valid yet/],
    ];
    for (const [claims, detail] of cases) {
      await assertRefused(tokens, await sign(es256(), { ...claims }), detail);
    }
    // Clocks differ by a little.
    for (const claims of [{ exp: NOW - 29 }, { nbf: NOW + 29 }, { aud: ['x', AUDIENCE] }]) {
      assert.ok(await tokens.verify(await sign(es256(), claims)));
    }
  });

  it('are refused when their header says that they are something else', async () => {
    const tokens = await verifier();
    for (const typ of ['JWT', 'at+jwt', 'application/at+jwt']) {
      assert.ok(await tokens.verify(await sign(es256(), {}, { typ })));
    }
    await assertRefused(tokens, await sign(es256(), {}, { typ: 'logout+jwt' }), /another type/);
  });

  it('are refused unsigned, signed by a foreigner, altered, or by a made-up key', async () => {
    const tokens = await verifier();
    const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: NOW + 300, scope: 'admin' };
    for (const alg of ['none', 'None', 'NONE']) {
      await assertRefused(tokens, writeToken({ alg }, claims), /another algorithm|not an access/);
      await assertRefused(tokens, writeToken({ alg, kid: 'key-ES256' }, claims), /./);
    }
    const foreigner = await createSigner('ES256', 'key-ES256');
    await assertRefused(tokens, await sign(foreigner), /signature .* does not fit/);
    const stranger = await createSigner('ES256', 'key-unknown');
    await assertRefused(tokens, await sign(stranger), /not in its issuer's key set/);

    const [head, , signature] = (await sign(es256())).split('.');
    const altered = [head, base64url.encode(JSON.stringify(claims)), signature].join('.');
    await assertRefused(tokens, altered, /signature/);

    // Keys that the token brings along, or tells where to get.
    const header = {
      jwk: foreigner.jwk,
      jku: 'http://127.0.0.1:1/jwks',
      x5u: 'http://127.0.0.1:1',
    };
    await assertRefused(tokens, await sign(foreigner, {}, header as object), /signature/);
    await assertRefused(tokens, await sign(stranger, {}, header as object), /key set/);
  });

  it('cannot be signed by what everybody knows: the public key as a shared secret', async () => {
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
    // The key of one algorithm does not verify another.
    const pkcs8 = await exportPKCS8(rs256().privateKey);
    const privateKey = await importPKCS8(pkcs8, 'PS256');
    const confused = await sign({ ...rs256(), privateKey, alg: 'PS256' });
    await assertRefused(tokens, confused, /key set/);
  });

  it('are refused when they are no tokens at all', async () => {
    const tokens = await verifier();
    for (const text of ['', 'x', 'a.b', 'a.b.c', 'e30.e30.e30', '.'.repeat(5), 'sk_abc_def']) {
      await assertRefused(tokens, text, /not an access token/);
    }
    await assertRefused(tokens, 'a'.repeat(16_385), /at most 16384 characters; found 16385/);
  });

  it('need not name their key when one of several fits', async () => {
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

  it('are remembered for a while, and never beyond their end', async () => {
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

describe('a key set', () => {
  let server: Server;
  let fetchCount = 0;
  let answer: { status: number; body: unknown };
  const opened: KeySet[] = [];
  const clock: Clock = { now: () => Date.now() };

  async function serve(keys: readonly JWK[]): Promise<string> {
    fetchCount = 0;
    answer = { status: 200, body: { keys } };
    server = createServer((_request, response) => {
      fetchCount++;
      response.statusCode = answer.status;
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
  }
  afterEach(() => {
    for (const keys of opened.splice(0)) keys.close();
    server?.closeAllConnections();
    server?.close();
  });
  async function tokensOf(
    source: string,
    times: Partial<KeySetTimes> = {},
    logger = silentLogger,
  ): Promise<AccessTokens> {
    const keys = await openKeySet({ source, logger, times });
    opened.push(keys);
    return new AccessTokens({
      keys,
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithms: ['ES256'],
      clock,
    });
  }

  it('is fetched once for many tokens, and not again for each key that nobody has', async () => {
    const signer = await createSigner('ES256', 'one');
    const stranger = await createSigner('ES256', 'none');
    const tokens = await tokensOf(await serve([signer.jwk]));
    const many = await Promise.all(
      Array.from({ length: 200 }, (_, index) => sign(signer, { sub: `user-${index}` })),
    );
    for (let round = 0; round < 5; round++) {
      await Promise.all(many.map((token) => tokens.verify(token)));
    }
    assert.equal(fetchCount, 1);
    for (let index = 0; index < 50; index++) {
      const token = await sign(stranger, { sub: `user-${index}` });
      await assert.rejects(async () => tokens.verify(token), { code: 'credentials_invalid' });
    }
    assert.equal(fetchCount, 1);
  });

  it('takes up a new key, and lets go of one that is removed', async () => {
    const [old, fresh] = [await createSigner('ES256', 'old'), await createSigner('ES256', 'new')];
    const tokens = await tokensOf(await serve([old.jwk]), { refetchMsMin: 0, cacheMsMax: 100 });
    assert.ok(await tokens.verify(await sign(old)));
    answer = { status: 200, body: { keys: [fresh.jwk] } };
    assert.ok(await tokens.verify(await sign(fresh)), 'an unknown key makes it look again');
    await assert.rejects(async () => tokens.verify(await sign(old, { sub: 'bob' })), {
      message: /not in its issuer's key set/,
    });
  });

  it('that cannot be had is 503 and not 401, asked for seldom, and had again', async () => {
    const signer = await createSigner('ES256', 'one');
    const log: LogLine[] = [];
    const url = await serve([signer.jwk]);
    const { port } = server.address() as AddressInfo;
    server.close();
    const tokens = await tokensOf(url, { retryMsMin: 200 }, recordingLogger(log));
    const token = await sign(signer);
    for (let index = 0; index < 20; index++) {
      await assert.rejects(async () => tokens.verify(token), {
        code: 'credentials_unavailable',
        retryAfterSeconds: 1,
      });
    }
    assert.equal(log.filter(({ level }) => level === 'warn').length, 1);
    assert.ok(!JSON.stringify(log).includes(token));
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    await until(async () => {
      try {
        return (await tokens.verify(token)).id.endsWith('alice');
      } catch {
        return false;
      }
    });
  });

  it('that answers something else is 503 as well, and asked for seldom', async () => {
    const signer = await createSigner('ES256', 'one');
    for (const [status, body] of [
      [500, ''],
      [302, ''],
      [200, 'not JSON'],
      [200, {}],
    ] as const) {
      const tokens = await tokensOf(await serve([]));
      answer = { status, body };
      for (let index = 0; index < 5; index++) {
        const token = await sign(signer);
        await assert.rejects(async () => tokens.verify(token), { code: 'credentials_unavailable' });
      }
      assert.equal(fetchCount, 1, `${status} ${body}`);
      server.close();
    }
  });

  it('is refused where others could change it on its way', async () => {
    for (const source of [
      'http://issuer.example/jwks',
      'ftp://issuer.example/jwks',
      'http://127.0.0.1.issuer.example/jwks',
      'https://',
    ]) {
      await assert.rejects(openKeySet({ source, logger: silentLogger }), {
        code: 'configuration_invalid',
        message: /https/,
      });
    }
    for (const source of ['https://issuer.example/jwks', 'http://[::1]:8080/jwks']) {
      (await openKeySet({ source, logger: silentLogger })).close();
    }
  });

  it('in a file is read again when it changes, and refused by what is wrong with it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-jwks-'));
    const source = join(folder, 'jwks.json');
    const [old, fresh] = [await createSigner('ES256', 'old'), await createSigner('ES256', 'new')];
    const { d } = await exportJWK(fresh.privateKey);
    const cases: [content: string, message: RegExp][] = [
      ['{', /jwks\.json is not JSON/],
      ['{}', /not one at \/keys/],
      ['{"keys":[]}', /not one at \/keys; expected .* at least one/],
      [JSON.stringify({ keys: [{ ...fresh.jwk, d }] }), /holds a secret at \/keys\/0\/d/],
      [JSON.stringify({ keys: [{ kty: 'oct', k: 'AAAA' }] }), /holds a secret at \/keys\/0\/k/],
    ];
    await assert.rejects(openKeySet({ source, logger: silentLogger }), { message: /no such file/ });
    for (const [content, message] of cases) {
      await writeFile(source, content);
      await assert.rejects(openKeySet({ source, logger: silentLogger }), { message });
    }
    await writeFile(source, JSON.stringify({ keys: [old.jwk] }));
    const log: LogLine[] = [];
    const tokens = await tokensOf(source, {}, recordingLogger(log));
    assert.ok(await tokens.verify(await sign(old)));
    await writeFile(source, 'broken');
    await until(() => log.some(({ level }) => level === 'error'));
    assert.ok(await tokens.verify(await sign(old, { sub: 'bob' })));
    await writeFile(source, JSON.stringify({ keys: [fresh.jwk] }));
    await until(() => log.some(({ message }) => message === 'key set reloaded'));
    assert.ok(await tokens.verify(await sign(fresh)));
    await assert.rejects(async () => tokens.verify(await sign(old, { sub: 'carol' })));
    await rm(folder, { recursive: true });
  });
});
