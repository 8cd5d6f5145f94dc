import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { inspect } from 'node:util';
import { exportJWK, type JWK } from 'jose';
import type { Clock } from '../../../src/common/clock.js';
import { SagittaError } from '../../../src/common/errors.js';
import { silentLogger } from '../../../src/common/logger.js';
import { AccessTokens } from '../../../src/server/auth/access-tokens.js';
import { type KeySet, type KeySetTimes, openKeySet } from '../../../src/server/auth/key-sets.js';
import { type LogLine, recordingLogger, until } from '../secure-service.js';
import { AUDIENCE, createSigner, ISSUER, NOW, type Signer, sign } from './signed-tokens.js';

describe('a key set', () => {
  let server: Server;
  let fetchCount = 0;
  let answer: { status: number; body: unknown };
  const opened: KeySet[] = [];
  let nowMs = 0;
  const clock: Clock = { now: () => NOW * 1000 };

  async function serve(keys: readonly JWK[]): Promise<string> {
    fetchCount = 0;
    nowMs = 0;
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
    const keys = await openKeySet({ source, logger, times, nowMs: () => nowMs });
    opened.push(keys);
    return new AccessTokens({
      types: 'any',
      keys,
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithms: ['ES256'],
      clock,
    });
  }

  it('is fetched once for many tokens, and not again for each unknown key', async () => {
    const signer = await createSigner('ES256', 'one');
    const unknownSigner = await createSigner('ES256', 'none');
    const tokens = await tokensOf(await serve([signer.jwk]));
    const many = await Promise.all(
      Array.from({ length: 200 }, (_, index) => sign(signer, { sub: `user-${index}` })),
    );
    for (let round = 0; round < 5; round++) {
      await Promise.all(many.map((token) => tokens.verify(token)));
    }
    assert.equal(fetchCount, 1);
    for (let index = 0; index < 50; index++) {
      const token = await sign(unknownSigner, { sub: `user-${index}` });
      await assert.rejects(async () => tokens.verify(token), { code: 'credentials_invalid' });
    }
    assert.equal(fetchCount, 1);
  });

  it('adopts new keys and drops removed ones', async () => {
    const [old, fresh] = [await createSigner('ES256', 'old'), await createSigner('ES256', 'new')];
    const tokens = await tokensOf(await serve([old.jwk]), { refetchMsMin: 0, cacheMsMax: 100 });
    assert.ok(await tokens.verify(await sign(old)));
    answer = { status: 200, body: { keys: [fresh.jwk] } };
    assert.ok(await tokens.verify(await sign(fresh)), 'an unknown key makes it look again');
    await assert.rejects(async () => tokens.verify(await sign(old, { sub: 'bob' })), {
      message: /not in the key set of its issuer/,
    });
  });

  it('that cannot be fetched is 503 rather than 401, and is retried at intervals', async () => {
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
      nowMs += 200;
      try {
        return (await tokens.verify(token)).id.endsWith('alice');
      } catch {
        return false;
      }
    });
  });

  it('stays in use during an outage of the issuer for a limited time', async () => {
    const signer = await createSigner('ES256', 'one');
    const unknownSigner = await createSigner('ES256', 'none');
    const log: LogLine[] = [];
    const times = { cacheMsMax: 100, staleMsMax: 1_500, refetchMsMin: 50, retryMsMin: 200 };
    const tokens = await tokensOf(await serve([signer.jwk]), times, recordingLogger(log));
    let number = 0;
    const ask = async (by: Signer) => tokens.verify(await sign(by, { sub: `user-${number++}` }));
    assert.ok(await ask(signer));
    answer.status = 500;
    for (nowMs = 120; nowMs < 1_000; nowMs += 40) {
      assert.ok(await ask(signer));
      await assert.rejects(ask(unknownSigner), { code: 'credentials_unavailable' });
    }
    // The first fetch, and one every 200 ms during the outage.
    assert.equal(fetchCount, 6);
    nowMs = 1_600;
    await assert.rejects(ask(signer), { code: 'credentials_unavailable' });
    assert.equal(log.filter(({ level }) => level === 'warn').length, 1);
    answer.status = 200;
    nowMs = 1_850;
    assert.ok(await ask(signer));
    await assert.rejects(ask(unknownSigner), { code: 'credentials_invalid' });
  });

  it('that hangs after a failure delays no token whose key is known', async () => {
    const signer = await createSigner('ES256', 'one');
    // A verification that waited for a fetch would wait for an hour.
    const times = { cacheMsMax: 300, retryMsMin: 10, fetchMsMax: 3_600_000 };
    const tokens = await tokensOf(await serve([signer.jwk]), times);
    await tokens.verify(await sign(signer));
    nowMs = 320;
    answer.status = 500;
    await tokens.verify(await sign(signer, { sub: 'bob' }));
    server.removeAllListeners('request');
    let hangingCount = 0;
    server.on('request', () => hangingCount++);
    for (let index = 0; index < 15; index++) {
      nowMs += 15;
      await tokens.verify(await sign(signer, { sub: `user-${index}` }));
    }
    await until(() => hangingCount === 1);
  });

  it('is refused with a password in its URL, and its query is not disclosed', async () => {
    const secret = /s3cret|t0ken/;
    for (const source of [
      'https://user:s3cret@issuer.example/jwks?token=t0ken',
      'https://t0ken@issuer.example/jwks',
      'https:/user:s3cret@issuer.example/jwks',
      'HTTPS:user:s3cret@issuer.example/jwks',
      'https://user:s3cret@issuer example/',
      'http://issuer.example/jwks?token=t0ken#s3cret',
      'ftp://user:s3cret@issuer.example/jwks?token=t0ken',
    ]) {
      await assert.rejects(openKeySet({ source, logger: silentLogger }), (error) => {
        assert.ok(error instanceof SagittaError);
        assert.equal(error.code, 'configuration_invalid');
        assert.match(error.message, /expected https|expected an https URL|expected none/);
        assert.doesNotMatch(inspect(error), secret, source);
        return true;
      });
    }
    const signer = await createSigner('ES256', 'one');
    const url = await serve([]);
    for (const body of ['t0ken', '{"keys":"s3cret"}', null]) {
      const log: LogLine[] = [];
      if (body === null) server.close();
      answer = { status: 200, body };
      const tokens = await tokensOf(`${url}?token=t0ken#s3cret`, {}, recordingLogger(log));
      const token = await sign(signer);
      await assert.rejects(
        async () => tokens.verify(token),
        (error) => {
          assert.doesNotMatch(String((error as Error).message), secret);
          return true;
        },
      );
      assert.equal(log.length, 1);
      assert.equal(log[0]!.details.url, url);
      assert.doesNotMatch(JSON.stringify(log), secret);
    }
  });

  it('that is not valid is 503 as well, and is retried at intervals', async () => {
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

  it('is refused from URLs without TLS, except on loopback', async () => {
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

  it('in a file is reloaded when it changes, and refused if it is invalid', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-jwks-'));
    const source = join(folder, 'jwks.json');
    const [old, fresh] = [await createSigner('ES256', 'old'), await createSigner('ES256', 'new')];
    const { d } = await exportJWK(fresh.privateKey);
    const cases: [content: string, message: RegExp][] = [
      ['{', /jwks\.json is not valid JSON/],
      ['{}', /not valid at \/keys/],
      ['{"keys":[]}', /not valid at \/keys; expected .* at least one/],
      [JSON.stringify({ keys: [{ ...fresh.jwk, d }] }), /contains a secret key at \/keys\/0\/d/],
      [
        JSON.stringify({ keys: [{ kty: 'oct', k: 'AAAA' }] }),
        /contains a secret key at \/keys\/0\/k/,
      ],
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
