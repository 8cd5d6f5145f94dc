// Where the application listens: in clear text an HTTP/1.1 server, with TLS files one that speaks
// TLS 1.3 only, and in it HTTP/2 or HTTP/1.1 as the client prefers. Lets go of connections when the
// application stops.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import { Server as NetServer, type Socket } from 'node:net';
import type { Limits } from '../../common/limits.js';
import type { Logger } from '../../common/logger.js';
import { AddressLimiter } from './address-limiter.js';
import { deferContinue } from './connections.js';
import { boundSession, SESSION_OPTIONS, type SessionUse } from './http2-session.js';
import { createHttpServer, cutConnections, stopListening } from './server.js';
import { secureContextOptions, type Tls } from './tls.js';

export interface ListenerOptions {
  readonly limits: Limits;
  /** Null for clear text. */
  readonly tls: Tls | null;
  readonly logger: Logger;
  /** Addresses and CIDR blocks of gateways. */
  readonly trustedProxies: readonly string[];
}

/** For the news that we are going to reach a client that asks for nothing. */
const FAREWELL_MS = 250;

interface ProtocolServer {
  readonly server: Server;
  stopListening(): void;
  /** Resolves when what was sent has left, after `msMax` at the latest. */
  flush(msMax: number): Promise<void>;
  cutConnections(): void;
}

/** All servers of one application: a name such as localhost may mean two addresses. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #servers: ProtocolServer[] = [];
  readonly #addressBound: AddressLimiter;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#addressBound = new AddressLimiter({
      connectionsMax: options.limits.connectionsPerAddressMax,
      trustedProxies: options.trustedProxies,
    });
  }

  create(handler: RequestListener): Server {
    const { limits, tls, logger } = this.#options;
    const made =
      tls === null ? clearServer(handler, limits) : new TlsServer(handler, limits, tls, logger);
    this.#servers.push(made);
    this.#addressBound.attach(made.server);
    return made.server;
  }

  /** Takes no new connections, and over HTTP/2 no new requests; what is under way goes on. */
  stopListening(): void {
    for (const server of this.#servers) server.stopListening();
  }

  async flush(msMax: number): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.flush(msMax)));
  }

  cutConnections(): void {
    for (const server of this.#servers) server.cutConnections();
  }

  /** How many are open, for metrics. */
  async countConnections(): Promise<number> {
    const counts = await Promise.all(
      this.#servers.map(
        ({ server }) =>
          new Promise<number>((resolve) => {
            NetServer.prototype.getConnections.call(server, (_error, count) => resolve(count));
          }),
      ),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }
}

function clearServer(handler: RequestListener, limits: Limits): ProtocolServer {
  const server = createHttpServer(handler, limits);
  return {
    server,
    stopListening: () => stopListening(server),
    // A reply counts as under way until it has left, here.
    flush: () => Promise.resolve(),
    cutConnections: () => cutConnections(server),
  };
}

class TlsServer implements ProtocolServer {
  readonly server: Server;
  /** For clients that prefer it: the very server of clear text, which never listens itself. */
  readonly #http1: Server;
  readonly #sessions = new Map<ServerHttp2Session, SessionUse>();
  /** Those on which replies were under way when the server was told to stop. */
  readonly #busy = new Set<ServerHttp2Session>();
  /** Under TLS; also those whose handshake is not finished. */
  readonly #connections = new Set<Socket>();
  readonly #forgetReloads: () => void;
  #isStopping = false;

  constructor(handler: RequestListener, limits: Limits, tls: Tls, logger: Logger) {
    const server: Http2SecureServer = createSecureServer({
      ...secureContextOptions(tls.material),
      ...SESSION_OPTIONS,
      ALPNCallback: chooseProtocol,
      handshakeTimeout: limits.headerMsMax,
      noDelay: true,
      ...(tls.requestsClientCertificates ? { requestCert: true, rejectUnauthorized: false } : {}),
    });
    // Both kinds of messages have what Fastify uses.
    this.server = server as unknown as Server;
    this.server.maxConnections = limits.connectionsMax;
    this.server.on('request', handler);
    deferContinue(this.server, handler);
    this.#http1 = createHttpServer(handler, limits);
    this.#http1.on('clientError', (error, socket) => server.emit('clientError', error, socket));
    // Connections are handed to it; this is what makes it watch their time.
    this.#http1.emit('listening');
    server.on('unknownProtocol', (socket) => this.#http1.emit('connection', socket));

    server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    server.on('session', (session) => {
      this.#sessions.set(session, boundSession(session, limits));
      // Its handshake was under way when the server was told to stop.
      if (this.#isStopping) session.close();
      session.once('close', () => {
        this.#sessions.delete(session);
        this.#busy.delete(session);
      });
    });
    // Node would answer in clear text what never became TLS.
    server.removeAllListeners('tlsClientError');
    server.on('tlsClientError', (error, socket) => {
      logger.debug({ code: (error as NodeJS.ErrnoException).code }, 'TLS handshake failed');
      socket.destroy();
    });
    this.#forgetReloads = tls.onReload(() =>
      server.setSecureContext(secureContextOptions(tls.material)),
    );
  }

  stopListening(): void {
    this.#isStopping = true;
    this.#forgetReloads();
    stopListening(this.server);
    for (const [session, use] of this.#sessions) {
      if (use.streamCount > 0) this.#busy.add(session);
      // Tells the client, refuses what it begins from now on, and closes after the last reply.
      session.close();
    }
  }

  async flush(msMax: number): Promise<void> {
    // The last of a reply is still on its way when its stream ends, and would be lost if the
    // connection were cut while the client sends: it is the client that closes. One without a
    // request may be a machine that is gone; it gets the time to read that we are going.
    await Promise.all([
      allClosed([...this.#busy], msMax),
      allClosed([...this.#sessions.keys()], Math.min(msMax, FAREWELL_MS)),
    ]);
  }

  cutConnections(): void {
    this.#http1.close();
    for (const socket of this.#connections) socket.destroy();
  }
}

/** Resolves when all are closed, after `msMax` at the latest. */
async function allClosed(sessions: readonly ServerHttp2Session[], msMax: number): Promise<void> {
  if (sessions.length === 0) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, msMax);
    let openCount = sessions.length;
    for (const session of sessions) {
      session.once('close', () => {
        openCount--;
        if (openCount > 0) return;
        clearTimeout(timer);
        resolve();
      });
    }
  });
}

/** Undefined ends the handshake: the client speaks neither. */
function chooseProtocol({ protocols }: { protocols: string[] }): string | undefined {
  return ['h2', 'http/1.1'].find((protocol) => protocols.includes(protocol));
}

/**
 * The connection by which a request came, the same object for all of its requests; null when it is
 * gone.
 */
export function connectionOf(request: IncomingMessage | Http2ServerRequest): Socket | null {
  if (!('stream' in request)) return request.socket;
  const { session } = request.stream;
  return session === undefined || session.destroyed ? null : (session.socket as Socket);
}

/** Whether the reply can no longer reach the client. */
export function isReplyClosed(response: ServerResponse | Http2ServerResponse): boolean {
  return 'stream' in response ? response.stream.destroyed : response.destroyed;
}
