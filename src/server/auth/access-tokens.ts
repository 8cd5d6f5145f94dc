// OAuth 2.0 access tokens: signed by a key of the issuer's set, by an algorithm that is allowed,
// for us, and in time. Nothing in a token says by which key or how it is to be verified beyond
// choosing among those. Tokens never reach a log.

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
import type { TokenVerifier } from './authenticator.js';
import type { KeySet } from './key-sets.js';

export interface AccessTokensOptions {
  readonly keys: KeySet;
  readonly issuer: string;
  readonly audience: string;
  /** Signatures by private keys only. */
  readonly algorithms: readonly string[];
  readonly clock: Clock;
}

/** Clocks of machines that are looked after differ by less. */
const CLOCK_TOLERANCE_SECONDS = 30;
/** With as long for the key set itself, a key that its issuer removes works for a minute at most. */
const CACHE_MS_MAX = 30_000;
/** Tokens that are remembered, at some 500 bytes each. */
const CACHE_COUNT_MAX = 10_000;
/** Of all of them: a token that is full of scopes takes some ten times its length when it is read. */
const CACHE_CHARACTERS_MAX = 16 * 1024 * 1024;
/** The longest subject that OpenID Connect allows; names are kept with what their bearers may do. */
const NAME_CHARACTERS_MAX = 255;
/** Hashing a token costs its length, of everybody who sends one. */
const TOKEN_CHARACTERS_MAX = 16_384;
/** Of headers that name one. An ID token has none, or `JWT`; those of logouts, say, are no access. */
const TOKEN_TYPES = ['jwt', 'at+jwt'];

interface Verified {
  readonly principal: Principal;
  readonly tokenCharacters: number;
  readonly untilMs: number;
}

export class AccessTokens implements TokenVerifier {
  readonly #options: AccessTokensOptions;
  readonly #jwtOptions: Omit<JWTVerifyOptions, 'currentDate'>;
  /** By digest, oldest first. */
  readonly #verified = new Map<string, Verified>();
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

  /** At once for a token that was verified lately. */
  verify(token: string): Principal | Promise<Principal> {
    if (token.length > TOKEN_CHARACTERS_MAX) {
      throw invalid(
        `A token has at most ${TOKEN_CHARACTERS_MAX} characters; found ${token.length}.`,
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
    if (!isTokenType(protectedHeader.typ)) {
      throw invalid('The token is not an access token: its header says another type.');
    }
    // Digits enough are read as infinity.
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
      // A token that does not name its key: whichever fits.
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

  #remember(digest: string, verified: Verified): void {
    // Two requests may have brought it at once.
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

/** Whatever the sender wrote there: it need not be a text. */
function isTokenType(type: unknown): boolean {
  if (type === undefined) return true;
  return (
    typeof type === 'string' &&
    TOKEN_TYPES.includes(type.toLowerCase().replace(/^application\//, ''))
  );
}

function principalOf(payload: JWTPayload): Principal {
  // Without a subject a client speaks for itself.
  const name = [payload.sub, payload.client_id].find(
    (claim): claim is string => typeof claim === 'string' && claim !== '',
  );
  if (name === undefined)
    throw invalid('The token names nobody: it has neither sub nor client_id.');
  if (name.length > NAME_CHARACTERS_MAX) {
    throw invalid(
      `The token names somebody by ${name.length} characters; expected ${NAME_CHARACTERS_MAX} at most in sub or client_id.`,
    );
  }
  return { id: `token:${payload.iss}|${name}`, grants: grantsOf(payload) };
}

/** Scopes that are not ours belong to other services that take the same token. */
function grantsOf({ scope, scp }: JWTPayload): Grant[] {
  const names = [scope, scp].flatMap((claim) => {
    if (typeof claim === 'string') return claim.split(' ');
    return Array.isArray(claim) ? claim.filter((name) => typeof name === 'string') : [];
  });
  return [...new Set(names)].flatMap((name) => parseGrant(name) ?? []);
}

/** What the sender may know of why, by which nobody learns how to make a better one. */
function explain(error: unknown, algorithms: readonly string[]): unknown {
  if (error instanceof SagittaError) return error;
  if (error instanceof errors.JWTExpired) return invalid('The token has expired.');
  if (error instanceof errors.JWTClaimValidationFailed) {
    return invalid(CLAIM_FAILURES[error.claim] ?? `The claim ${error.claim} is not valid.`);
  }
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return invalid(
      `The token is signed by another algorithm than is taken; expected ${algorithms.join(', ')}.`,
    );
  }
  if (error instanceof errors.JWKSNoMatchingKey) {
    return invalid("The token is signed by a key that is not in its issuer's key set.");
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return invalid('The signature of the token does not fit.');
  }
  // Whatever cannot be verified is not verified, also by a key that is damaged.
  return new SagittaError('credentials_invalid', 'This is not an access token (a signed JWT).', {
    cause: error,
  });
}

const NO_EXPIRY = 'The token does not say when it expires (exp).';
const CLAIM_FAILURES: Readonly<Record<string, string>> = {
  iss: 'The token comes from another issuer (iss) than this service trusts.',
  aud: 'The token is meant for another audience (aud) than this service.',
  exp: NO_EXPIRY,
  nbf: 'The token is not valid yet (nbf).',
};

const invalid = (detail: string) => new SagittaError('credentials_invalid', detail);
