// Determines the principal of a request. The prefix of a bearer token tells an API key from an access token; a
// connection may have a client certificate; requests on the control socket come from the operator. If no
// credentials are configured, every request has the same principal.

import type { Socket } from 'node:net';
import { EVERYBODY, NOBODY, OPERATOR, type Principal } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import type { ApiKeys } from '../../database/admin/api-keys.js';

/** The prefix of API keys; other bearer tokens are access tokens. */
const API_KEY_PREFIX = 'sk_';

export interface TokenVerifier {
  /** Throws `credentials_invalid`, and `credentials_unavailable` if the keys cannot be fetched. */
  verify(token: string): Principal | Promise<Principal>;
}

export interface CertificateTable {
  /** Null if the client sent no certificate. Throws `credentials_invalid`. */
  principalOf(socket: Socket): Principal | null;
}

export interface AuthenticatorOptions {
  readonly apiKeys: Pick<ApiKeys, 'isInUse' | 'verify'> | null;
  readonly tokens: TokenVerifier | null;
  readonly certificates: CertificateTable | null;
  /** Whether the connection is on the control socket. */
  readonly isOperator: (socket: Socket) => boolean;
}

export interface Credentials {
  readonly authorization: string | undefined;
  /** The header Origin, in which a browser names the origin of the page. */
  readonly origin: string | undefined;
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

  /** Whether requests need a credential: always, once an API key has been created. */
  get isRequired(): boolean {
    return this.acceptsOthers || this.#options.apiKeys?.isInUse === true;
  }

  /** Whether credentials other than API keys are accepted, which may grant the right to manage keys. */
  get acceptsOthers(): boolean {
    return this.#options.tokens !== null || this.#options.certificates !== null;
  }

  /**
   * `NOBODY` for a request without a required credential. A bearer token takes precedence over a
   * client certificate. Throws `credentials_invalid`, `credentials_unavailable` and
   * `origin_not_allowed`.
   */
  identify({ authorization, origin, socket }: Credentials): Principal | Promise<Principal> {
    if (this.#options.isOperator(socket)) return OPERATOR;
    if (!this.isRequired) return EVERYBODY;
    if (authorization !== undefined) return this.#identifyBearer(bearerOf(authorization), origin);
    return this.#options.certificates?.principalOf(socket) ?? NOBODY;
  }

  #identifyBearer(token: string, origin: string | undefined): Principal | Promise<Principal> {
    const { apiKeys, tokens } = this.#options;
    if (apiKeys !== null && (tokens === null || token.startsWith(API_KEY_PREFIX))) {
      const principal = apiKeys.verify(token);
      requireOrigin(principal, origin);
      return principal;
    }
    if (tokens === null) throw invalid('This service accepts client certificates only.');
    return tokens.verify(token);
  }
}

/** Restricts a key to the pages that it was created for. Programs can send any origin; pages cannot. */
function requireOrigin({ allowedOrigins }: Principal, origin: string | undefined): void {
  if (allowedOrigins == null || (origin !== undefined && allowedOrigins.includes(origin))) return;
  const found = origin === undefined ? 'no header Origin' : JSON.stringify(origin);
  throw new SagittaError(
    'origin_not_allowed',
    `The API key is for web pages of ${allowedOrigins.join(', ')} only; found ${found}.`,
  );
}

const BEARER = /^Bearer +([\w.~+/-]+=*)$/i;

function bearerOf(authorization: string): string {
  const token = BEARER.exec(authorization)?.[1];
  if (token === undefined) throw invalid('Expected "Authorization: Bearer <token>".');
  return token;
}

const invalid = (detail: string) => new SagittaError('credentials_invalid', detail);
