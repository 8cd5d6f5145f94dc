// Connections to the NATS servers: logging in, and saying why a server cannot be used.

import { readFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import {
  type Authenticator,
  AuthorizationError,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
  type ServerInfo,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { SagittaError } from '../../common/errors.js';
import type { NatsConfig } from '../../platform/config.js';

const RECONNECT_MS = 200;
const PING_MS = 2_000;
/** Unanswered pings after which the connection counts as lost. */
const PINGS_LOST_MAX = 2;
/** An attempt to connect, which the start of a node repeats. */
const CONNECT_MS_MAX = 3_000;
/** What is wrong with certificates does not pass, unlike what is wrong with servers that are starting. */
const TLS_FAILURE = /certificate|\b(?:ssl|tls)\b/i;
const NATS_PORT = 4222;
/** The wait for one server, short since a server that is down must not keep a node from starting. */
const GREETING_MS_MAX = 2_000;
const GREETING_CHARACTERS_MAX = 65_536;

/** How a process logs in to the NATS servers. At most one of user, token, nkey and credentials is not null. */
export interface NatsLogin {
  readonly user: string | null;
  readonly password: string | null;
  readonly token: string | null;
  /** The seed of the key. */
  readonly nkey: string | null;
  /** Path of a .creds file. */
  readonly credentials: string | null;
  /** Paths of PEM files. */
  readonly tlsCa: string | null;
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
}

export function natsLoginOf(config: NatsConfig): NatsLogin {
  return {
    user: config.clusterUser,
    password: config.clusterPassword,
    token: config.clusterToken,
    nkey: config.clusterNkey,
    credentials: config.clusterCredentials,
    tlsCa: config.clusterTlsCa,
    tlsCert: config.clusterTlsCert,
    tlsKey: config.clusterTlsKey,
  };
}

/**
 * A connection that reconnects for ever. Throws `no_leader` when no server can be reached, and `configuration_invalid` when
 * the credentials are malformed or refused.
 */
export async function connectNats(
  urls: readonly string[],
  login: NatsLogin,
): Promise<NatsConnection> {
  const authenticator = authenticatorOf(login);
  const tls = tlsOf(urls, login);
  return await connect({
    servers: [...urls],
    ...(authenticator && { authenticator }),
    ...(tls && { tls }),
    timeout: CONNECT_MS_MAX,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_MS,
    pingInterval: PING_MS,
    maxPingOut: PINGS_LOST_MAX,
  }).catch(async (cause: unknown) => {
    const refusal = refusalOf(cause, login) ?? (await missingCertificate(urls, login));
    if (refusal !== null) throw unusable(urls, refusal, cause);
    const { message } = cause as Error;
    if (TLS_FAILURE.test(message)) throw unusable(urls, `cannot be reached: ${message}`, cause);
    throw silent(`NATS at ${urls.join(', ')} cannot be reached`, cause);
  });
}

/** Undefined without credentials. Throws `configuration_invalid` for malformed ones. */
function authenticatorOf(login: NatsLogin): Authenticator | undefined {
  const { user, password, token, nkey, credentials } = login;
  if (user !== null) return usernamePasswordAuthenticator(user, password ?? '');
  if (token !== null) return tokenAuthenticator(token);
  if (nkey !== null) {
    return requireUsable(
      nkeyAuthenticator(Buffer.from(nkey)),
      'Expected SAGITTA_CLUSTER_NKEY to be a seed',
    );
  }
  if (credentials === null) return undefined;
  let last = requireFile('SAGITTA_CLUSTER_CREDENTIALS', credentials);
  // Credentials expire, and new ones are written to the same file.
  const authenticator = credsAuthenticator(() => {
    try {
      last = readFileSync(credentials);
    } catch {}
    return last;
  });
  return requireUsable(
    authenticator,
    `Expected SAGITTA_CLUSTER_CREDENTIALS to name a .creds file; found ${JSON.stringify(credentials)}`,
  );
}

/**
 * Throws `configuration_invalid` for malformed credentials, with which a connection would fail as if the servers could
 * not be reached.
 */
function requireUsable(authenticator: Authenticator, otherwise: string): Authenticator {
  try {
    authenticator('any nonce');
  } catch (cause) {
    const message = `${otherwise}: ${(cause as Error).message}.`;
    throw new SagittaError('configuration_invalid', message, { cause });
  }
  return authenticator;
}

/** Undefined to leave the choice to the servers. Throws `configuration_invalid` for a file that cannot be read. */
function tlsOf(urls: readonly string[], { tlsCa, tlsCert, tlsKey }: NatsLogin) {
  const read = (variable: string, path: string | null) =>
    path === null ? undefined : requireFile(variable, path).toString();
  const ca = read('SAGITTA_CLUSTER_TLS_CA', tlsCa);
  const cert = read('SAGITTA_CLUSTER_TLS_CERT', tlsCert);
  const key = read('SAGITTA_CLUSTER_TLS_KEY', tlsKey);
  const isRequired = urls.some((url) => url.startsWith('tls:'));
  if (!isRequired && ca === undefined && cert === undefined) return undefined;
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

function requireFile(variable: string, path: string): Buffer {
  const found = `Expected ${variable} to name a readable file; found ${JSON.stringify(path)}`;
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    const message = `${found}: ${(cause as Error).message}.`;
    throw new SagittaError('configuration_invalid', message, { cause });
  }
  // With an empty list of authorities, the connection would trust those of Node.
  if (bytes.length === 0)
    throw new SagittaError('configuration_invalid', `${found}, which is empty.`);
  return bytes;
}

/** What to report about servers that refuse the node; null for another failure. */
function refusalOf(cause: unknown, login: NatsLogin): string | null {
  const isRefused =
    cause instanceof AuthorizationError || (cause as Error).cause instanceof AuthorizationError;
  if (!isRefused) return null;
  const given = [
    [
      login.user,
      `the user ${JSON.stringify(login.user)} and the password in SAGITTA_CLUSTER or SAGITTA_CLUSTER_USER and SAGITTA_CLUSTER_PASSWORD`,
    ],
    [login.token, 'the token in SAGITTA_CLUSTER or SAGITTA_CLUSTER_TOKEN'],
    [login.nkey, 'the seed in SAGITTA_CLUSTER_NKEY'],
    [login.credentials, 'the file that SAGITTA_CLUSTER_CREDENTIALS names'],
  ].find(([value]) => value !== null);
  return given === undefined
    ? 'requires credentials, and none are configured: set SAGITTA_CLUSTER_USER and SAGITTA_CLUSTER_PASSWORD, or SAGITTA_CLUSTER_TOKEN, SAGITTA_CLUSTER_NKEY or SAGITTA_CLUSTER_CREDENTIALS'
    : `refuses the credentials of the node: compare ${given[1]} with the configuration of the servers`;
}

/** What to report about servers that close connections without a certificate, which looks like silence; null otherwise. */
async function missingCertificate(
  urls: readonly string[],
  { tlsCert }: NatsLogin,
): Promise<string | null> {
  if (tlsCert !== null) return null;
  const greetings = await Promise.all(urls.map(greetingOf));
  return greetings.some((greeting) => greeting?.tls_verify === true)
    ? 'cannot be reached without a certificate of the node: set SAGITTA_CLUSTER_TLS_CERT and SAGITTA_CLUSTER_TLS_KEY'
    : null;
}

/**
 * The greeting of a server before any login; null if it does not answer. After a login, a server says that it requires
 * credentials even if it maps clients without any to a user.
 */
export async function greetingOf(url: string): Promise<Partial<ServerInfo> | null> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const socket = connectSocket({ host, port: Number(port || NATS_PORT) });
  socket.setTimeout(GREETING_MS_MAX, () => socket.destroy());
  try {
    let text = '';
    for await (const bytes of socket) {
      text += bytes;
      if (text.length > GREETING_CHARACTERS_MAX) return null;
      const greeting = /^INFO (.*)\r\n/.exec(text)?.[1];
      if (greeting !== undefined) return JSON.parse(greeting) as Partial<ServerInfo>;
    }
  } catch {
    // The connection to the cluster reports what is wrong.
  } finally {
    socket.destroy();
  }
  return null;
}

export function silent(what: string, cause: unknown): SagittaError {
  return new SagittaError(
    'no_leader',
    `${what}: ${(cause as Error).message}. The servers are down, starting, busy or electing a leader.`,
    { cause, retryAfterSeconds: 1 },
  );
}

export function unusable(urls: readonly string[], what: string, cause?: unknown): SagittaError {
  return new SagittaError('configuration_invalid', `NATS at ${urls.join(', ')} ${what}.`, {
    cause,
  });
}
