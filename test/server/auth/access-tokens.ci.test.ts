// The memory of verified tokens.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, before, describe, it } from 'node:test';
import type { JWK } from 'jose';
import type { Clock } from '../../../src/common/clock.js';
import { silentLogger } from '../../../src/common/logger.js';
import { JWT_ALGORITHMS } from '../../../src/platform/settings.js';
import { AccessTokens } from '../../../src/server/auth/access-tokens.js';
import { type KeySet, openKeySet } from '../../../src/server/auth/key-sets.js';
import { AUDIENCE, createSigner, ISSUER, NOW, type Signer, sign } from './signed-tokens.js';

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
    const options = {
      issuer: ISSUER,
      audience: AUDIENCE,
      types: 'any',
      algorithms,
      clock,
    } as const;
    return new AccessTokens({ ...options, keys });
  }
  const es256 = () => signers.get('ES256')!;

  it('are cached up to a limit on their total length', async () => {
    const tokens = await verifier();
    const first = await sign(es256());
    await tokens.verify(first);
    // Each token is nearly as long as allowed.
    const scope = Array.from({ length: 1_080 }, (_, index) => `admin:${1_000 + index}`).join(' ');
    for (let index = 0; index < 1_060; index++) {
      await tokens.verify(await sign(es256(), { sub: `user-${index}`, scope }));
      // All of them fit, since otherwise older ones would have been removed.
      if (index === 900) assert.ok(!(tokens.verify(first) instanceof Promise));
    }
    const again = tokens.verify(first);
    assert.ok(again instanceof Promise, 'pushed out');
    await again;
  });
});
