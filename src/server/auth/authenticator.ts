// Who sent a request: one principal, whatever credential showed it. A bearer token is an API key or
// an access token, by its form; a connection may carry a certificate; whoever comes through the
// socket in the data directory is its operator. Without any credential configured, all are welcome.

import type { Socket } from 'node:net';
import { EVERYBODY, NOBODY, OPERATOR, type Principal } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import type { ApiKeyService } from '../../database/api.js';

/** What begins like this is an API key. */
export const API_KEY_PREFIX = 'sk_';

export interface TokenVerifier {
  /** Throws `credentials_invalid`, and `credentials_unavailable` when the keys cannot be had. */
  verify(token: string): Principal | Promise<Principal>;
}

export interface CertificateTable {
  /** Null when the connection shows no certificate. Throws `credentials_invalid`. */
  principalOf(socket: Socket): Principal | null;
}

export interface AuthenticatorOptions {
  readonly apiKeys: Pick<ApiKeyService, 'isInUse' | 'verify'> | null;
  readonly tokens: TokenVerifier | null;
  readonly certificates: CertificateTable | null;
  /** Whether the connection came through the socket in the data directory. */
  readonly isOperator: (socket: Socket) => boolean;
}

export interface Credentials {
  readonly authorization: string | undefined;
  readonly socket: Socket;
}

export class Authenticator {
  readonly #options: AuthenticatorOptions;

  constructor(options: Partial<AuthenticatorOptions> = {}) {
    this.#options = {
      apiKeys: null,
      tokens: null,
      certificates: null,
      isOperator: () => false,
      ...options,
    };
  }

  /** Whether requests need a credential. Once an API key was made they always do. */
  get isRequired(): boolean {
    const { apiKeys, tokens, certificates } = this.#options;
    return tokens !== null || certificates !== null || apiKeys?.isInUse === true;
  }

  /**
   * `NOBODY` for a request that shows nothing where something is required. A bearer token comes
   * before a certificate: who shows both means the token. Throws `credentials_invalid`.
   */
  identify({ authorization, socket }: Credentials): Principal | Promise<Principal> {
    if (this.#options.isOperator(socket)) return OPERATOR;
    if (!this.isRequired) return EVERYBODY;
    if (authorization !== undefined) return this.#identifyBearer(bearerOf(authorization));
    return this.#options.certificates?.principalOf(socket) ?? NOBODY;
  }

  #identifyBearer(token: string): Principal | Promise<Principal> {
    const { apiKeys, tokens } = this.#options;
    if (apiKeys !== null && (tokens === null || token.startsWith(API_KEY_PREFIX))) {
      return apiKeys.verify(token);
    }
    if (tokens === null) throw invalid('This service takes certificates only.');
    return tokens.verify(token);
  }
}

const BEARER = /^Bearer +([\w.~+/-]+=*)$/i;

function bearerOf(authorization: string): string {
  const token = BEARER.exec(authorization)?.[1];
  if (token === undefined) throw invalid('Expected "Authorization: Bearer" and one token.');
  return token;
}

const invalid = (detail: string) => new SagittaError('credentials_invalid', detail);
