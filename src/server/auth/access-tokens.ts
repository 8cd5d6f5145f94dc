// Verifies OAuth 2.0 access tokens (JWT): the signature by a key of the issuer's key set and with an
// allowed algorithm, issuer, audience and expiry. A token can only choose among the configured keys
// and algorithms. Tokens are never logged.

import { createHash } from 'node:crypto';
import {
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose';
import { type Grant, type Principal, parseGrant } from '../../common/access.js';
import type { Clock } from '../../common/clock.js';
import { SagittaError } from '../../common/errors.js';
import type { JwtTypes } from '../../platform/settings.js';
import type { TokenVerifier } from './authenticator.js';
import type { KeySet } from './key-sets.js';

interface AccessTokensOptions {
  readonly keys: KeySet;
  readonly issuer: string;
  readonly audience: string;
  /** Asymmetric algorithms only. */
  readonly algorithms: readonly string[];
  /** With `at+jwt` the header must name the type of RFC 9068; with `any` the claims may decide. */
  readonly types: JwtTypes;
  readonly clock: Clock;
}

/** More than clocks synchronized by NTP differ. */
const CLOCK_TOLERANCE_SECONDS = 30;
/** The key set is cached for the same time, so that a revoked key works for at most a minute. */
const CACHE_MS_MAX = 30_000;
/** The number of cached tokens, of about 500 bytes each. */
const CACHE_COUNT_MAX = 10_000;
/** The total length of cached tokens. A parsed token with many scopes takes ten times its length. */
const CACHE_CHARACTERS_MAX = 16 * 1024 * 1024;
/** The longest subject that OpenID Connect allows, which becomes part of the id of the principal. */
const NAME_CHARACTERS_MAX = 255;
/** Bounds the cost of hashing, which unauthenticated clients can cause. */
const TOKEN_CHARACTERS_MAX = 16_384;
/** Claims that only ID tokens contain (OpenID Connect Core, sections 2 and 3.3). */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash'];
/** Claims in which Keycloak and Cognito declare what a token is for. */
const PURPOSE_CLAIMS: Readonly<Record<string, readonly string[]>> = {
  typ: ['bearer', 'dpop'],
  token_use: ['access'],
};

interface VerifiedToken {
  readonly principal: Principal;
  readonly tokenCharacters: number;
  /** Unix time at which the token must be verified again. */
  readonly untilMs: number;
}

export class AccessTokens implements TokenVerifier {
  readonly #options: AccessTokensOptions;
  readonly #jwtOptions: Omit<JWTVerifyOptions, 'currentDate'>;
  /** By digest, oldest first. */
  readonly #verified = new Map<string, VerifiedToken>();
  #cachedCharacters = 0;

  constructor(options: AccessTokensOptions) {
    this.#options = options;
    this.#jwtOptions = {
      issuer: options.issuer,
      audience: options.audience,
      algorithms: [...options.algorithms],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ['exp'],
    };
  }

  /** Synchronous for a cached token. Throws `credentials_invalid` and `credentials_unavailable`. */
  verify(token: string): Principal | Promise<Principal> {
    if (token.length > TOKEN_CHARACTERS_MAX) {
      throw invalid(
        `The token is too long: expected at most ${TOKEN_CHARACTERS_MAX} characters; found ${token.length}.`,
      );
    }
    const digest = createHash('sha256').update(token).digest('base64');
    const known = this.#verified.get(digest);
    if (known !== undefined) {
      if (this.#options.clock.now() < known.untilMs) return known.principal;
      this.#forget(digest);
    }
    return this.#verify(token, digest);
  }

  async #verify(token: string, digest: string): Promise<Principal> {
    const { payload, protectedHeader } = await this.#check(token).catch((error: unknown) => {
      throw explain(error, this.#options.algorithms);
    });
    requireAccessToken(protectedHeader.typ, payload, this.#options.types);
    // A number with many digits is parsed as infinity.
    if (!Number.isFinite(payload.exp)) throw invalid(NO_EXPIRY);
    const principal = principalOf(payload);
    this.#remember(digest, {
      principal,
      tokenCharacters: token.length,
      untilMs: Math.min(
        this.#options.clock.now() + CACHE_MS_MAX,
        (payload.exp! + CLOCK_TOLERANCE_SECONDS) * 1000,
      ),
    });
    return principal;
  }

  async #check(token: string) {
    const { keys, clock } = this.#options;
    const options = { ...this.#jwtOptions, currentDate: new Date(clock.now()) };
    const getKey: JWTVerifyGetKey = (header, input) => keys.getKey(header, input);
    try {
      return await jwtVerify(token, getKey, options);
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      // The token does not name its key: any key that verifies it is accepted.
      for await (const key of error) {
        try {
          return await jwtVerify(token, key, options);
        } catch (failure) {
          if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
        }
      }
      throw new errors.JWSSignatureVerificationFailed();
    }
  }

  #remember(digest: string, verified: VerifiedToken): void {
    // Two concurrent requests may have verified the same token.
    this.#forget(digest);
    this.#verified.set(digest, verified);
    this.#cachedCharacters += verified.tokenCharacters;
    for (const oldest of this.#verified.keys()) {
      const isFull =
        this.#verified.size > CACHE_COUNT_MAX || this.#cachedCharacters > CACHE_CHARACTERS_MAX;
      if (!isFull) return;
      this.#forget(oldest);
    }
  }

  #forget(digest: string): void {
    const known = this.#verified.get(digest);
    if (known === undefined) return;
    this.#verified.delete(digest);
    this.#cachedCharacters -= known.tokenCharacters;
  }
}

/**
 * Refuses ID tokens, which tell an application who has logged in but grant no access to a service. Most identity
 * providers give both kinds the type `JWT` (Keycloak, Entra and Auth0 by default) or none (Cognito); then the claims
 * decide. The claims are unvalidated input. Throws `credentials_invalid`.
 */
function requireAccessToken(type: unknown, payload: JWTPayload, types: JwtTypes): void {
  const name = typeof type === 'string' ? type.toLowerCase().replace(/^application\//, '') : type;
  if (name === 'at+jwt') return;
  if (name !== 'jwt' && name !== undefined) {
    throw invalid('The token is not an access token: the header typ names another type.');
  }
  if (types === 'at+jwt') {
    throw invalid('The token is not an access token: the header typ is not at+jwt.');
  }
  for (const [claim, expected] of Object.entries(PURPOSE_CLAIMS)) {
    const found = payload[claim];
    if (found === undefined) continue;
    if (typeof found === 'string' && expected.includes(found.toLowerCase())) return;
    throw invalid(`The token is not an access token: the claim ${claim} says otherwise.`);
  }
  const mark = ID_TOKEN_CLAIMS.find((claim) => payload[claim] !== undefined);
  if (mark !== undefined) {
    throw invalid(`This is an ID token (it has the claim ${mark}); send an access token.`);
  }
  if (payload.scope === undefined && payload.scp === undefined) {
    throw invalid(
      'The token has no scopes (scope or scp), so that it may be an ID token; send an access token.',
    );
  }
}

function principalOf(payload: JWTPayload): Principal {
  // A token without a subject represents the client itself.
  const name = [payload.sub, payload.client_id].find(
    (claim): claim is string => typeof claim === 'string' && claim !== '',
  );
  if (name === undefined) throw invalid('The token has neither a sub nor a client_id claim.');
  if (name.length > NAME_CHARACTERS_MAX) {
    throw invalid(
      `The claim sub or client_id is too long: expected at most ${NAME_CHARACTERS_MAX} characters; found ${name.length}.`,
    );
  }
  return { id: `token:${payload.iss}|${name}`, grants: grantsOf(payload) };
}

/** Unknown scopes are ignored: they belong to other services that accept the same token. */
function grantsOf({ scope, scp }: JWTPayload): Grant[] {
  const names = [scope, scp].flatMap((claim) => {
    if (typeof claim === 'string') return claim.split(' ');
    return Array.isArray(claim) ? claim.filter((name) => typeof name === 'string') : [];
  });
  return [...new Set(names)].flatMap((name) => parseGrant(name) ?? []);
}

/** The reason for the client. None of these helps to forge a token. */
function explain(error: unknown, algorithms: readonly string[]): unknown {
  if (error instanceof SagittaError) return error;
  if (error instanceof errors.JWTExpired) return invalid('The token has expired.');
  if (error instanceof errors.JWTClaimValidationFailed) {
    return invalid(CLAIM_FAILURES[error.claim] ?? `The claim ${error.claim} is not valid.`);
  }
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return invalid(
      `The token's signature algorithm is not accepted; expected ${algorithms.join(', ')}.`,
    );
  }
  if (error instanceof errors.JWKSNoMatchingKey) {
    return invalid("The token's signing key is not in the key set of its issuer.");
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return invalid("The token's signature is invalid.");
  }
  // Any other error, such as a corrupt key, means that the token could not be verified.
  return new SagittaError(
    'credentials_invalid',
    'The token is not an access token (a signed JWT).',
    {
      cause: error,
    },
  );
}

const NO_EXPIRY = 'The token has no expiry (exp).';
const CLAIM_FAILURES: Readonly<Record<string, string>> = {
  iss: "The token's issuer (iss) is not trusted by this service.",
  aud: "The token's audience (aud) is not this service.",
  exp: NO_EXPIRY,
  nbf: 'The token is not valid yet (nbf).',
};

const invalid = (detail: string) => new SagittaError('credentials_invalid', detail);
