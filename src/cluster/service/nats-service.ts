// The shared service on NATS: a stream of JetStream for each log, and announcements as plain messages.

import { readFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { JetStreamApiError, jetstream, jetstreamManager } from '@nats-io/jetstream';
import {
  type Authenticator,
  AuthorizationError,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
  RequestError,
  type ServerInfo,
  TimeoutError,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { isLoopback, isLoopbackUrl } from '../../platform/config.js';
import { CATALOGUE } from '../logs/store-entries.js';
import { type JetStreamConnection, JetStreamStream } from './jetstream-stream.js';
import { NatsMonitor } from './nats-monitor.js';
import type { ServiceState, SharedService } from './shared-service.js';

/** The limit of a server that does not announce one. */
const MESSAGE_BYTES_MAX = 1_000_000;
/** The first level of JetStream's API with atomic batches. */
export const API_LEVEL_MIN = 2;
const RECONNECT_MS = 200;
const PING_MS = 2_000;
/** Unanswered pings after which the connection counts as lost. */
const PINGS_LOST_MAX = 2;
/** An attempt to connect, which the start of a node repeats. */
const CONNECT_MS_MAX = 3_000;
/** The log of the catalogue, or that of an incarnation, which is a UUID. */
const LOG_NAME = /^(catalogue|[\da-f]{8}-[\da-f]{4}-.*)$/;
/** How long the request for a new log, of five seconds, is repeated while other changes of the catalogue wait. */
const CREATE_MS_MAX = 3_000;
const CREATE_PAUSE_MS = 500;
/** What is wrong with certificates does not pass, unlike what is wrong with servers that are starting. */
const TLS_FAILURE = /certificate|\b(?:ssl|tls)\b/i;
const NATS_PORT = 4222;
/** The wait for one server, short since a server that is down must not keep a node from starting. */
const GREETING_MS_MAX = 2_000;
const GREETING_CHARACTERS_MAX = 65_536;
/** JetStream's errors: no suitable peers for placement, temporarily unavailable, stream not found. */
const PASSING_ERRORS = [10005, 10008, 10059];

/** How the node logs in to the NATS servers. At most one of user, token, nkey and credentials is not null. */
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

export interface NatsServiceOptions {
  /** The servers, without credentials. */
  readonly urls: readonly string[];
  readonly login: NatsLogin;
  /** Whether servers may be used that accept connections from other machines without credentials. */
  readonly isInsecure: boolean;
  /** The name of the cluster; several clusters can share the servers. */
  readonly cluster: string;
  /** Replicas of every log: three with three or more servers, one with a single server for trying things out. */
  readonly replicas: number;
  readonly logger: Logger;
}

export class NatsService implements SharedService {
  readonly #connection: NatsConnection;
  readonly #jetStream: JetStreamConnection;
  readonly #cluster: string;
  readonly #replicas: number;
  readonly #monitor: NatsMonitor;

  private constructor(
    jetStream: JetStreamConnection,
    { cluster, replicas, logger }: Pick<NatsServiceOptions, 'cluster' | 'replicas' | 'logger'>,
  ) {
    const { connection } = jetStream;
    this.#jetStream = jetStream;
    this.#connection = connection;
    this.#cluster = cluster;
    this.#replicas = replicas;
    this.#monitor = new NatsMonitor(connection, `${cluster}-${CATALOGUE}`, logger);
    void watchConnection(connection, this.#monitor, logger);
  }

  /**
   * Throws `no_leader` when no server can be reached, or does not answer because it is starting or electing a leader, and
   * `configuration_invalid` when one cannot be used, refuses the credentials, or requires none although other machines
   * reach it.
   */
  static async connect(options: NatsServiceOptions): Promise<NatsService> {
    const { urls, login } = options;
    const authenticator = authenticatorOf(login);
    const tls = tlsOf(urls, login);
    const connection = await connect({
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
    try {
      if (!options.isInsecure) await requireClosed(connection, urls);
      const manager = await jetstreamManager(connection, { checkAPI: false });
      const { api } = await manager.getAccountInfo();
      // The types of the client lack this member.
      const { level = 0 } = api as { level?: number };
      if (level < API_LEVEL_MIN) {
        throw unusable(
          urls,
          `has JetStream with API level ${level}; expected ${API_LEVEL_MIN} or later, as in NATS 2.12`,
        );
      }
      return new NatsService({ connection, manager, client: jetstream(connection) }, options);
    } catch (error) {
      await connection.close();
      if (error instanceof SagittaError) throw error;
      // A server without JetStream says so immediately.
      if (error instanceof TimeoutError || isStarting(error)) {
        throw silent(`JetStream at ${urls.join(', ')} did not answer in time`, error);
      }
      throw unusable(urls, `has no JetStream: ${(error as Error).message}`, error);
    }
  }

  get state(): ServiceState {
    return this.#monitor.state;
  }

  /** The server that this process is connected to. */
  get serverId(): string | undefined {
    return this.#connection.info?.server_id;
  }

  /** Does a step of the start of a node, and throws `no_leader` when the servers do not answer in time. */
  async whileItAnswers<Result>(start: () => Promise<Result>): Promise<Result> {
    try {
      return await start();
    } catch (cause) {
      const isPassing =
        cause instanceof TimeoutError || cause instanceof RequestError || isStarting(cause);
      if (!isPassing) throw cause;
      throw silent('The NATS servers (SAGITTA_CLUSTER) did not answer in time', cause);
    }
  }

  /** Throws `configuration_invalid` for logs that were created with fewer replicas than configured now. */
  async requireReplicas(): Promise<void> {
    const found: { name: string; replicas: number }[] = [];
    for await (const { config } of this.#jetStream.manager.streams.list()) {
      if (config.num_replicas >= this.#replicas || !this.#isLog(config.name)) continue;
      found.push({ name: config.name, replicas: config.num_replicas });
    }
    const [first] = found;
    if (first === undefined) return;
    const others = found.length === 1 ? '' : ` and ${found.length - 1} other logs`;
    throw new SagittaError(
      'configuration_invalid',
      `The log ${first.name}${others} in JetStream: found ${first.replicas} replicas, expected ${this.#replicas} (SAGITTA_CLUSTER_REPLICAS). Add them with: nats stream edit ${first.name} --replicas ${this.#replicas}${others === '' ? '' : ', likewise for the others (nats stream ls)'}.`,
    );
  }

  openStream(name: string): JetStreamStream {
    return new JetStreamStream(this.#jetStream, `${this.#cluster}-${name}`);
  }

  async createLog(name: string, { isStarting: isFirst = false } = {}): Promise<void> {
    const stream = this.openStream(name);
    const messageBytesMax = this.#connection.info?.max_payload ?? MESSAGE_BYTES_MAX;
    const startedAtMs = performance.now();
    for (;;) {
      try {
        await stream.create({ replicas: this.#replicas, messageBytesMax });
        // If another node has just created it, this server may not know it yet.
        if (isFirst) await stream.firstPosition();
        return;
      } catch (cause) {
        const lastedMs = performance.now() - startedAtMs;
        const mayPass = cause instanceof TimeoutError || isStarting(cause);
        if (mayPass && lastedMs < CREATE_MS_MAX) {
          await sleep(CREATE_PAUSE_MS);
          continue;
        }
        throw new SagittaError(
          'no_leader',
          `NATS did not create the log ${stream.name} with ${this.#replicas} replicas (SAGITTA_CLUSTER_REPLICAS): ${(cause as Error).message}. It needs as many servers with JetStream and free space.`,
          { cause, retryAfterSeconds: 1 },
        );
      }
    }
  }

  announce(bytes: Uint8Array): void {
    // Without a connection, no node would receive it.
    if (!this.#connection.isClosed()) this.#connection.publish(this.#announcements, bytes);
  }

  onAnnouncement(listener: (bytes: Uint8Array) => void): void {
    this.#connection.subscribe(this.#announcements, {
      callback: (error, message) => {
        if (error === null) listener(message.data);
      },
    });
  }

  close(): Promise<void> {
    this.#monitor.close();
    return this.#connection.close();
  }

  get #announcements(): string {
    return `${this.#cluster}-nodes`;
  }

  /** Whether a stream is a log of this cluster, and not of one whose name has this one's as a prefix. */
  #isLog(stream: string): boolean {
    const prefix = `${this.#cluster}-`;
    return stream.startsWith(prefix) && LOG_NAME.test(stream.slice(prefix.length));
  }
}

/** Whether JetStream servers that have just started may be the cause. */
function isStarting(error: unknown): boolean {
  return error instanceof JetStreamApiError && PASSING_ERRORS.includes(error.code);
}

async function watchConnection(
  connection: NatsConnection,
  monitor: NatsMonitor,
  logger: Logger,
): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type === 'disconnect') {
      monitor.setDisconnected();
    } else if (status.type === 'error')
      logger.warn({ err: status.error }, 'NATS reported an error');
    else if (status.type === 'reconnect') {
      logger.info({ server: connection.getServer() }, 'connected to NATS again');
    }
  }
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

/** Throws `configuration_invalid` for servers that accept connections from other machines without credentials. */
async function requireClosed(connection: NatsConnection, urls: readonly string[]): Promise<void> {
  const checked = urls.map(async (url) => [url, await greetingOf(url)] as const);
  const connected = `nats://${connection.getServer()}`;
  // A server behind a proxy, say, has sent its greeting on the connection.
  const own = [connected, (await greetingOf(connected)) ?? connection.info] as const;
  for (const [url, greeting] of [own, ...(await Promise.all(checked))]) {
    if (greeting == null) continue;
    const { auth_required: isLoginRequired, tls_verify: isCertificateRequired, host } = greeting;
    if (isLoginRequired === true || isCertificateRequired === true) continue;
    const isLocal = isLoopbackUrl(url);
    if (isLocal && (host === undefined || isLoopback(host))) continue;
    const where = isLocal ? `listens on ${host}` : 'is not on loopback';
    throw unusable(
      [url],
      `${where} and requires no credentials, so anyone who reaches it can read all data and stop the cluster. Add users to its configuration (authorization { users: [ { user: sagitta, password: … } ] }, without no_auth_user) and set SAGITTA_CLUSTER_USER and SAGITTA_CLUSTER_PASSWORD; or let it listen on 127.0.0.1 only. SAGITTA_CLUSTER_INSECURE=yes accepts the server as it is`,
    );
  }
}

/**
 * The greeting of a server before any login; null if it does not answer. After a login, a server says that it requires
 * credentials even if it maps clients without any to a user.
 */
async function greetingOf(url: string): Promise<Partial<ServerInfo> | null> {
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

function silent(what: string, cause: unknown): SagittaError {
  return new SagittaError(
    'no_leader',
    `${what}: ${(cause as Error).message}. The servers are down, starting, busy or electing a leader.`,
    { cause, retryAfterSeconds: 1 },
  );
}

function unusable(urls: readonly string[], what: string, cause?: unknown): SagittaError {
  return new SagittaError('configuration_invalid', `NATS at ${urls.join(', ')} ${what}.`, {
    cause,
  });
}
