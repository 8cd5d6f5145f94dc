// Opens TLS, client certificates and access tokens as configured. The files are validated at startup,
// and watched until `close`.

import type { Clock } from '../../common/clock.js';
import { assert } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { Config } from '../../platform/config.js';
import { openTls, type Tls } from '../transport/tls.js';
import { AccessTokens } from './access-tokens.js';
import type { AuthenticatorOptions } from './authenticator.js';
import { openCertificateTable } from './certificates.js';
import { openKeySet } from './key-sets.js';

export interface Security extends Pick<AuthenticatorOptions, 'tokens' | 'certificates'> {
  /** Null for clear text. */
  readonly tls: Tls | null;
  close(): void;
}

/** Throws `configuration_invalid`, which names the file or URL and the problem. */
export async function openSecurity(
  config: Config,
  context: { clock: Clock; logger: Logger },
): Promise<Security> {
  const closers: (() => void)[] = [];
  const close = () => {
    for (const closeOne of closers.splice(0)) closeOne();
  };
  /** Registers what was opened, so that it is closed if a later step fails. */
  const closeLater = <Opened extends { close(): void }>(opened: Opened): Opened => {
    closers.push(() => opened.close());
    return opened;
  };
  const { tlsCert: cert, tlsKey: key, tlsClientCa: clientCa, tlsPrincipals, jwks } = config;
  try {
    const hasTls = cert !== null && key !== null;
    const paths = hasTls ? { cert, key, clientCa } : null;
    const tls = paths === null ? null : closeLater(await openTls({ paths, ...context }));
    const certificates =
      tlsPrincipals === null
        ? null
        : closeLater(await openCertificateTable({ path: tlsPrincipals, ...context }));
    const keys = jwks === null ? null : closeLater(await openKeySet({ source: jwks, ...context }));
    const tokens =
      keys === null ? null : new AccessTokens({ ...tokenOptions(config), keys, ...context });
    return { tls, certificates, tokens, close };
  } catch (error) {
    close();
    throw error;
  }
}

function tokenOptions({
  jwtIssuer: issuer,
  jwtAudience: audience,
  jwtAlgorithms: algorithms,
  jwtTypes: types,
}: Config) {
  assert(issuer !== null && audience !== null, 'the configuration requires both with the key set');
  return { issuer, audience, algorithms, types };
}
