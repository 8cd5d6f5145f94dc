// What the configuration says of TLS and of credentials that others issue, opened together: files
// are read and checked at the start, and watched until all is closed.

import type { Clock } from '../../common/clock.js';
import { assert } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { Config } from '../../platform/config.js';
import { openTls, type Tls } from '../transport/tls.js';
import { AccessTokens } from './access-tokens.js';
import type { AuthenticatorOptions } from './authenticator.js';
import { Certificates } from './certificates.js';
import { openKeySet } from './key-sets.js';

export interface Security extends Pick<AuthenticatorOptions, 'tokens' | 'certificates'> {
  /** Null for clear text. */
  readonly tls: Tls | null;
  close(): void;
}

/** Throws `configuration_invalid`, which names the file or the address and what is wrong there. */
export async function openSecurity(
  config: Config,
  context: { clock: Clock; logger: Logger },
): Promise<Security> {
  const closers: (() => void)[] = [];
  const close = () => {
    for (const closeOne of closers.splice(0)) closeOne();
  };
  /** Keeps what was opened, so that it is closed also when a later one fails. */
  const kept = <Opened extends { close(): void }>(opened: Opened): Opened => {
    closers.push(() => opened.close());
    return opened;
  };
  const { tlsCert: cert, tlsKey: key, tlsClientCa: clientCa, tlsPrincipals, jwks } = config;
  try {
    const hasTls = cert !== null && key !== null;
    const paths = hasTls ? { cert, key, clientCa } : null;
    const tls = paths === null ? null : kept(await openTls({ paths, ...context }));
    const certificates =
      tlsPrincipals === null
        ? null
        : kept(await Certificates.open({ path: tlsPrincipals, ...context }));
    const keys = jwks === null ? null : kept(await openKeySet({ source: jwks, ...context }));
    const tokens =
      keys === null ? null : new AccessTokens({ ...tokenTerms(config), keys, ...context });
    return { tls, certificates, tokens, close };
  } catch (error) {
    close();
    throw error;
  }
}

function tokenTerms({
  jwtIssuer: issuer,
  jwtAudience: audience,
  jwtAlgorithms: algorithms,
}: Config) {
  assert(issuer !== null && audience !== null, 'they are set together with the key set');
  return { issuer, audience, algorithms };
}
