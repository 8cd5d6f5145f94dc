// Finds out within three seconds whether the NATS servers accept messages. The leader of the catalogue's log is asked how
// long ago it heard from each replica, which costs the servers no write: a leader without a majority notices that only
// after ten seconds, and a connection that is cut off takes longer.

import { setTimeout as sleep } from 'node:timers/promises';
import { type NatsConnection, RequestError } from '@nats-io/nats-core';
import { endsWithin } from '../../common/ends-within.js';
import type { Logger } from '../../common/logger.js';
import { toSeconds } from '../../common/problems.js';
import { isSilent, type NatsReplica, silentMsOf } from './nats-replica.js';
import type { LogServer, ServiceState } from './shared-service.js';

/** The pause between two requests. */
const PAUSE_MS = 400;
const ANSWER_MS_MAX = 1_000;
/** How long the server gets to answer a ping after a request was not answered. */
const PING_MS_MAX = 400;
/** A leader hears from an idle replica at least every two seconds. */
const SILENT_MS_MAX = 2_300;
/** JetStream's error for a stream that does not exist, as before the first start of a node. */
const STREAM_NOT_FOUND = 10059;

/** The members of the reply to `STREAM.INFO` that matter here. */
export interface StreamInfo {
  readonly error?: { readonly err_code?: number; readonly description?: string };
  /** Absent for a server that is not part of a cluster. */
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly (NatsReplica & { readonly lag?: number })[];
  };
}

type Found = Omit<ServiceState, 'sinceMs'>;

const CONNECTED: Found = { kind: 'connected', detail: '', servers: [] };

export interface NatsMonitorOptions {
  readonly connection: NatsConnection;
  /** That of the catalogue. */
  readonly stream: string;
  /** Called when a server has gone, or no longer leads the stream. */
  readonly onServerGone: () => void;
  readonly logger: Logger;
}

export class NatsMonitor {
  readonly #connection: NatsConnection;
  readonly #onServerGone: () => void;
  readonly #logger: Logger;
  readonly #subject: string;
  /** The addresses of the servers, as the one of this connection knows them, and the leader of the stream. */
  #addresses: readonly string[] = [];
  #leader: string | undefined;
  readonly #closing = new AbortController();
  #state: ServiceState = { ...CONNECTED, sinceMs: performance.now() };
  /** Since when servers have been silent, by name; a new leader does not know it. */
  readonly #silentSinceMs = new Map<string, number>();

  constructor({ connection, stream, onServerGone, logger }: NatsMonitorOptions) {
    this.#connection = connection;
    this.#onServerGone = onServerGone;
    this.#logger = logger;
    this.#subject = `$JS.API.STREAM.INFO.${stream}`;
    void this.#run();
  }

  get state(): ServiceState {
    return this.#state;
  }

  /** The client has noticed that the connection is lost. */
  setDisconnected(): void {
    this.#set(disconnected());
  }

  close(): void {
    this.#closing.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const found = await this.#ask();
      if (signal.aborted) return;
      this.#set(found);
      this.#notice(found);
      await sleep(PAUSE_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  async #ask(): Promise<Found> {
    const connection = this.#connection;
    try {
      const reply = await connection.request(this.#subject, '', { timeout: ANSWER_MS_MAX });
      return stateOf(reply.json<StreamInfo>());
    } catch (error) {
      if (error instanceof RequestError && error.isNoResponders()) {
        return noQuorum('JetStream is not available on the NATS server of this node.');
      }
      const pinged = connection.isClosed() ? Promise.reject(error) : connection.rtt();
      let hasAnswered = false;
      const asked = pinged.then(
        () => {
          hasAnswered = true;
        },
        () => {},
      );
      await endsWithin(asked, PING_MS_MAX);
      return hasAnswered
        ? noQuorum('The NATS server answers, but the log of the catalogue has no leader.')
        : disconnected();
    }
  }

  #notice({ servers }: Found): void {
    const addresses = this.#connection.info?.connect_urls ?? [];
    const leader = servers.find(({ isLeader }) => isLeader)?.name;
    const isGone = this.#addresses.some((address) => !addresses.includes(address));
    const isOther = leader !== undefined && this.#leader !== undefined && leader !== this.#leader;
    this.#addresses = addresses;
    this.#leader = leader ?? this.#leader;
    if (isGone || isOther) this.#onServerGone();
  }

  #withSilence(server: LogServer, nowMs: number): LogServer {
    const { name, isSilent, silentMs } = server;
    if (!isSilent) {
      this.#silentSinceMs.delete(name);
      return server;
    }
    const sinceMs = this.#silentSinceMs.get(name) ?? nowMs - silentMs;
    this.#silentSinceMs.set(name, sinceMs);
    return { ...server, silentMs: Math.round(Math.max(silentMs, nowMs - sinceMs)) };
  }

  /** One line says what otherwise concerns every log. */
  #set(found: Found): void {
    const { kind, sinceMs } = this.#state;
    const nowMs = performance.now();
    const servers = found.servers.map((server) => this.#withSilence(server, nowMs));
    this.#state = { ...found, servers, sinceMs: found.kind === kind ? sinceMs : nowMs };
    if (found.kind === kind) return;
    if (found.kind === 'connected') {
      const seconds = toSeconds(nowMs - sinceMs);
      this.#logger.info({ seconds }, 'the NATS servers accept messages again');
    } else {
      this.#logger.warn({ problem: `nats_${found.kind}` }, found.detail);
    }
  }
}

/** What the reply about the stream of the catalogue says. */
export function stateOf({ error, cluster }: StreamInfo): Found {
  if (error !== undefined) {
    return error.err_code === STREAM_NOT_FOUND
      ? CONNECTED
      : noQuorum(
          `The NATS server answers: ${error.description ?? 'an error without a description'}.`,
        );
  }
  if (cluster?.replicas === undefined) return CONNECTED;
  const { leader = '', replicas } = cluster;
  const servers: LogServer[] = [
    ...(leader === ''
      ? []
      : [{ name: leader, isLeader: true, isSilent: false, silentMs: 0, lag: 0 }]),
    ...replicas.map(
      (replica): LogServer => ({
        name: replica.name,
        isLeader: false,
        isSilent: isSilent(replica, SILENT_MS_MAX),
        silentMs: Math.round(silentMsOf(replica)),
        lag: replica.lag ?? 0,
      }),
    ),
  ];
  const silent = servers.filter(({ isSilent }) => isSilent);
  if (leader === '')
    return {
      ...noQuorum('The log of the catalogue has no leader among its NATS servers.'),
      servers,
    };
  if (2 * silent.length < servers.length) return { kind: 'connected', detail: '', servers };
  const names = silent.map(({ name }) => name).join(' and ');
  return {
    ...noQuorum(
      `${silent.length} of the ${servers.length} NATS servers that store the log of the catalogue do not answer: ${names}.`,
    ),
    servers,
  };
}

function noQuorum(found: string): Found {
  return {
    kind: 'no_quorum',
    detail: `${found} Writes wait until most of the servers are back: see sagitta cluster nats.`,
    servers: [],
  };
}

function disconnected(): Found {
  return {
    kind: 'disconnected',
    detail:
      'No NATS server of SAGITTA_CLUSTER answers this node. Writes through it wait: check the servers, and the network between them and this node.',
    servers: [],
  };
}
