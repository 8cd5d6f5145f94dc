// The shared service on NATS: a stream of JetStream for each log, and announcements as plain messages.

import { setTimeout as sleep } from 'node:timers/promises';
import { JetStreamApiError, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { type NatsConnection, RequestError, TimeoutError } from '@nats-io/nats-core';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { isLoopback, isLoopbackUrl } from '../../platform/config.js';
import { CATALOGUE } from '../logs/store-entries.js';
import { type JetStreamConnection, JetStreamStream, Readers } from './jetstream-stream.js';
import { connectNats, greetingOf, type NatsLogin, silent, unusable } from './nats-login.js';
import { NatsMonitor } from './nats-monitor.js';
import type { ServiceState, SharedService } from './shared-service.js';

/** The limit of a server that does not announce one. */
const MESSAGE_BYTES_MAX = 1_000_000;
/** The first level of JetStream's API with atomic batches. */
export const API_LEVEL_MIN = 2;
/** The log of the catalogue, or that of an incarnation, which is a UUID. */
const LOG_NAME = /^(catalogue|[\da-f]{8}-[\da-f]{4}-.*)$/;
/** How long the request for a new log, of five seconds, is repeated while other changes of the catalogue wait. */
const CREATE_MS_MAX = 3_000;
const CREATE_PAUSE_MS = 500;
/** JetStream's errors: no suitable peers for placement, temporarily unavailable, stream not found. */
const PASSING_ERRORS = [10005, 10008, 10059];

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
    const onServerGone = () => jetStream.readers.restart();
    const stream = `${cluster}-${CATALOGUE}`;
    this.#monitor = new NatsMonitor({ connection, stream, onServerGone, logger });
    void watchConnection(jetStream, this.#monitor, logger);
  }

  /**
   * Throws `no_leader` when no server can be reached, or does not answer because it is starting or electing a leader, and
   * `configuration_invalid` when one cannot be used, refuses the credentials, or requires none although other machines
   * reach it.
   */
  static async connect(options: NatsServiceOptions): Promise<NatsService> {
    const { urls, login } = options;
    const connection = await connectNats(urls, login);
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
      const client = jetstream(connection);
      return new NatsService({ connection, manager, client, readers: new Readers() }, options);
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
        if (cause instanceof SagittaError) throw cause;
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
  { connection, readers }: JetStreamConnection,
  monitor: NatsMonitor,
  logger: Logger,
): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type === 'disconnect') {
      monitor.setDisconnected();
    } else if (status.type === 'error')
      logger.warn({ err: status.error }, 'NATS reported an error');
    else if (status.type === 'reconnect') {
      readers.restart();
      logger.info({ server: connection.getServer() }, 'connected to NATS again');
    }
  }
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
