// Hints for failed connections, where the user can fix the cause: TLS on one side only, a certificate that
// is not accepted, and requests that browsers block without saying why.

import { proxyHint } from './proxy.js';

/**
 * `unknown_authority`: the server's certificate is signed by an authority that is not trusted here. `wrong_host`: the
 * certificate is for other names. `no_tls`: the server speaks plain HTTP. `perhaps_tls`: the server closed a plain
 * HTTP connection.
 */
export type ConnectionProblem = 'unknown_authority' | 'wrong_host' | 'no_tls' | 'perhaps_tls';

/** The codes that Node, Deno and Bun set on an error or its causes. */
const CODES: Readonly<Record<ConnectionProblem, readonly string[]>> = {
  unknown_authority: [
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_GET_ISSUER_CERT',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  ],
  wrong_host: ['ERR_TLS_CERT_ALTNAME_INVALID'],
  // A TLS record was expected.
  no_tls: ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'EPROTO'],
  // A TLS server closes plain HTTP connections like this.
  perhaps_tls: ['UND_ERR_SOCKET', 'ECONNRESET', 'HPE_INVALID_CONSTANT'],
};

const HINTS: Readonly<Record<ConnectionProblem, string>> = {
  unknown_authority:
    'if the certificate is your own, name its authority: NODE_EXTRA_CA_CERTS=ca.pem when Node starts',
  wrong_host: 'use a name or an address of the certificate in baseUrl',
  no_tls: 'the server speaks plain HTTP: use http:// in baseUrl',
  perhaps_tls: 'if the server uses TLS, use https:// in baseUrl',
};

export function connectionProblemOf(error: unknown, url: string): ConnectionProblem | undefined {
  const codes = codesOf(error);
  const problems = Object.keys(CODES) as ConnectionProblem[];
  const found = problems.find((problem) => codes.some((code) => CODES[problem].includes(code)));
  const isPlain = url.startsWith('http:');
  return (found === 'perhaps_tls') === isPlain ? found : undefined;
}

/** `pageOrigin` is the origin of the web page; undefined outside browsers. */
export function connectionHint(
  error: unknown,
  url: string,
  pageOrigin: string | undefined,
): string | undefined {
  const problem = connectionProblemOf(error, url);
  if (problem !== undefined) return HINTS[problem];
  const proxy = proxyHint(url);
  if (proxy !== undefined) return proxy;
  if (pageOrigin === undefined || new URL(url).origin === pageOrigin) return undefined;
  if (pageOrigin.startsWith('https:') && url.startsWith('http:')) {
    return 'a page that was loaded by https cannot send requests to http: use a server with TLS';
  }
  return (
    `browsers do not tell the reason: if the server runs, allow pages of ${pageOrigin} with ` +
    `SAGITTA_CORS_ORIGINS=${pageOrigin}, and open ${new URL('/', url)} in the browser once to see ` +
    'whether it accepts the certificate'
  );
}

/** The codes of an error, of its causes and of the attempts on each address. */
function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if ('code' in at) codes.push(String(at.code));
    if (at instanceof AggregateError) codes.push(...at.errors.flatMap(codesOf));
  }
  return codes;
}
