// Access tokens for tests, signed by keys that are generated on demand.

import { exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose';

export const ISSUER = 'https://issuer.example';
export const AUDIENCE = 'sagitta';
export const NOW = Math.floor(Date.now() / 1000);

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;
export interface Signer extends KeyPair {
  readonly alg: string;
  readonly jwk: JWK;
}

export async function createSigner(alg: string, kid: string): Promise<Signer> {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { ...pair, alg, jwk: { ...(await exportJWK(pair.publicKey)), kid, alg, use: 'sig' } };
}

/** Valid claims with the changes of a test; undefined omits a claim. */
export function sign(
  signer: Signer,
  claims: Record<string, unknown> = {},
  header: Partial<JWTHeaderParameters> = {},
): Promise<string> {
  const { kid } = signer.jwk;
  return new SignJWT({
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'alice',
    exp: NOW + 3_600,
    scope: 'vectors:read:catalog-* openid',
    ...claims,
  })
    .setProtectedHeader({ alg: signer.alg, ...(kid !== undefined && { kid }), ...header })
    .sign(signer.privateKey);
}
