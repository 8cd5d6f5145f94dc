// The servers under the application: without TLS files an HTTP/1.1 server in clear text, with them a TLS 1.3 server
// that speaks HTTP/2 or HTTP/1.1, as the client prefers. Sets the timeouts and limits of connections and HTTP/2
// sessions, and closes connections when the application stops. Knows no routes.

import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  constants as http2,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { Server as NetServer, type Socket } from 'node:net';
import { endsWithin } from '../../common/ends-within.js';
import type { Limits } from '../../common/limits.js';
import type { Logger } from '../../common/logger.js';
import { AddressLimiter, RESETS_MAX, ResetCount } from './address-limiter.js';
import {
  deferContinue,
  startBodyTimeout,
  withBodyTimeout,
  withWriteStallTimeout,
} from './connections.js';
import { secureContextOptions, type Tls } from './tls.js';

/** A cursor in the query string contains the query vector: 87 KB for 16 384 dimensions. */
const HEADER_BYTES_MAX = 128 * 1024;

/** Concurrent requests per HTTP/2 connection; clients open another connection for more. */
const STREAMS_MAX = 100;
/**
 * How many bytes of one body, and of all bodies of a connection, a client may send ahead of the server. With a
 * round trip of 100 ms this allows 80 Mbit/s and 320 Mbit/s.
 */
const STREAM_WINDOW_BYTES = 1024 * 1024;
const SESSION_WINDOW_BYTES = 4 * 1024 * 1024;
/** Headers and replies in flight on one connection, beyond which new streams are refused. */
const SESSION_MEGABYTES_MAX = 64;

/** How long an idle HTTP/2 client gets to read that the connection is being closed. */
const GOAWAY_MS = 250;

interface ListenerOptions {
  readonly limits: Limits;
  /** Null for clear text. */
  readonly tls: Tls | null;
  readonly logger: Logger;
  /** Addresses and CIDR blocks of trusted proxies. */
  readonly trustedProxies: readonly string[];
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

interface ProtocolServer {
  readonly server: Server;
  stopListening(): void;
  /** Resolves when all replies have been sent, after `msMax` at the latest. */
  flush(msMax: number): Promise<void>;
  cutConnections(): void;
}

/** All servers of one application, since a name such as localhost may have two addresses. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #servers: ProtocolServer[] = [];
  readonly #addressLimiter: AddressLimiter;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#addressLimiter = new AddressLimiter({
      connectionsMax: options.limits.connectionsPerAddressMax,
      trustedProxies: options.trustedProxies,
      nowMs: options.nowMs,
    });
  }

  create(handler: RequestListener): Server {
    const { limits, tls } = this.#options;
    const created =
      tls === null
        ? createClearTextServer(handler, limits)
        : new TlsServer(handler, tls, { ...this.#options, addressLimiter: this.#addressLimiter });
    this.#servers.push(created);
    this.#addressLimiter.attach(created.server);
    return created.server;
  }

  /** Accepts neither new connections nor new requests over HTTP/2; requests in progress continue. */
  stopListening(): void {
    for (const server of this.#servers) server.stopListening();
  }

  async flush(msMax: number): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.flush(msMax)));
  }

  cutConnections(): void {
    for (const server of this.#servers) server.cutConnections();
  }

  /** The number of open connections, for metrics. */
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

function createClearTextServer(handler: RequestListener, limits: Limits): ProtocolServer {
  const server = createHttp1Server(handler, limits);
  return {
    server,
    stopListening: () => stopListening(server),
    // The application counts a request as in flight until its reply has been sent.
    flush: () => Promise.resolve(),
    cutConnections: () => server.closeAllConnections(),
  };
}

function createHttp1Server(handler: RequestListener, limits: Limits): Server {
  const onTimeout = (socket: Socket) => {
    const error = Object.assign(new Error('timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    server.emit('clientError', error, socket);
  };
  const listener = withBodyTimeout(
    withWriteStallTimeout(handler, limits.stalledMsMax),
    limits.arrivalMsMax,
    onTimeout,
  );
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: limits.headerMsMax,
      // The pipeline refuses such requests with a problem document.
      requireHostHeader: false,
      // Node has a single timeout for all requests, but a stream may last as long as it makes progress.
      requestTimeout: 0,
      connectionsCheckingInterval: headersCheckIntervalMs(limits),
      // 0 means no timeout to Node.
      keepAliveTimeout: Math.max(1, limits.keepAliveMs),
    },
    listener,
  );
  deferContinue(server, listener);
  server.maxConnections = limits.connectionsMax;
  return server;
}

/** How often Node looks for late headers: often enough to keep the timeout within a tenth of it or two seconds. */
function headersCheckIntervalMs({ headerMsMax }: Limits): number {
  return Math.min(2_000, Math.max(50, headerMsMax / 10));
}

/** Accepts no new connections; open ones stay. */
function stopListening(server: Server): void {
  // `Server.close` of node:http would cut connections whose reply has been written but has not reached a slow client.
  NetServer.prototype.close.call(server);
}

class TlsServer implements ProtocolServer {
  readonly server: Server;
  /** Serves clients that choose HTTP/1.1 on connections that are handed to it; never listens itself. */
  readonly #http1: Server;
  readonly #sessions = new Map<ServerHttp2Session, SessionUse>();
  /** Sessions with requests in progress when the server was stopped. */
  readonly #busySessions = new Set<ServerHttp2Session>();
  /** All connections, including those whose TLS handshake has not finished. */
  readonly #connections = new Set<Socket>();
  readonly #unsubscribeReload: () => void;
  #isStopping = false;

  constructor(
    handler: RequestListener,
    tls: Tls,
    {
      limits,
      logger,
      nowMs,
      addressLimiter,
    }: ListenerOptions & { readonly addressLimiter: AddressLimiter },
  ) {
    const server: Http2SecureServer = createSecureServer({
      ...secureContextOptions(tls.material),
      settings: {
        maxHeaderListSize: HEADER_BYTES_MAX,
        maxConcurrentStreams: STREAMS_MAX,
        initialWindowSize: STREAM_WINDOW_BYTES,
        enablePush: false,
      },
      maxSessionMemory: SESSION_MEGABYTES_MAX,
      ALPNCallback: chooseProtocol,
      handshakeTimeout: limits.headerMsMax,
      noDelay: true,
      ...(tls.requestsClientCertificates ? { requestCert: true, rejectUnauthorized: false } : {}),
    });
    // Requests and responses of both protocols have all members that Fastify uses.
    this.server = server as unknown as Server;
    this.server.maxConnections = limits.connectionsMax;
    this.server.on(
      'request',
      withoutResetStreams(handler, (session) => {
        return this.#sessions.get(session)?.isResetting === true;
      }),
    );
    deferContinue(this.server, handler);
    this.#http1 = createHttp1Server(handler, limits);
    this.#http1.on('clientError', (error, socket) => server.emit('clientError', error, socket));
    // This event starts its checks of timeouts.
    this.#http1.emit('listening');
    server.on('unknownProtocol', (socket) => this.#http1.emit('connection', socket));
    server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    server.on('session', (session) => {
      this.#addSession(session, limitSession(session, { limits, nowMs, addressLimiter }));
    });
    // Node would send a clear text reply to a client that never completed the handshake.
    server.removeAllListeners('tlsClientError');
    server.on('tlsClientError', (error, socket) => {
      logger.debug({ code: (error as NodeJS.ErrnoException).code }, 'TLS handshake failed');
      socket.destroy();
    });
    this.#unsubscribeReload = tls.onReload(() => {
      server.setSecureContext(secureContextOptions(tls.material));
    });
  }

  stopListening(): void {
    this.#isStopping = true;
    this.#unsubscribeReload();
    stopListening(this.server);
    for (const [session, use] of this.#sessions) {
      if (use.streamCount > 0) this.#busySessions.add(session);
      // Sends GOAWAY, refuses new requests, and closes after the last reply.
      session.close();
    }
  }

  async flush(msMax: number): Promise<void> {
    // When a stream ends, the last bytes of its reply are still in transit, and cutting the connection while the
    // client is sending would lose them; so the client closes the connection. An idle client, which may be
    // unreachable, only gets time to read the GOAWAY.
    await Promise.all([
      allClosed([...this.#busySessions], msMax),
      allClosed([...this.#sessions.keys()], Math.min(msMax, GOAWAY_MS)),
    ]);
  }

  cutConnections(): void {
    this.#http1.close();
    for (const socket of this.#connections) socket.destroy();
  }

  #addSession(session: ServerHttp2Session, use: SessionUse): void {
    this.#sessions.set(session, use);
    // Its handshake was in progress when the server was stopped.
    if (this.#isStopping) session.close();
    session.once('close', () => {
      this.#sessions.delete(session);
      this.#busySessions.delete(session);
    });
  }
}

/** Resolves when all sessions are closed, after `msMax` at the latest. */
async function allClosed(sessions: readonly ServerHttp2Session[], msMax: number): Promise<void> {
  const closed = sessions.map(
    (session) => new Promise<void>((resolve) => session.once('close', resolve)),
  );
  await endsWithin(Promise.all(closed), msMax);
}

/** Undefined aborts the handshake of a client that speaks neither protocol. */
function chooseProtocol({ protocols }: { protocols: string[] }): string | undefined {
  return ['h2', 'http/1.1'].find((protocol) => protocols.includes(protocol));
}

type SessionLimits = Pick<Limits, 'headerMsMax' | 'arrivalMsMax' | 'stalledMsMax' | 'keepAliveMs'>;

interface SessionUse {
  /** Requests in progress. */
  readonly streamCount: number;
  /** Whether the client has recently reset more streams than occasional cancellations explain. */
  readonly isResetting: boolean;
}

/** With more resets, a stream is served only after the frames that arrived with it have been processed. */
const RESETS_TRUSTED_MAX = 10;

/** Skips HTTP/2 requests that have already been cancelled, for clients that cancel often. */
function withoutResetStreams(
  handler: RequestListener,
  isResetting: (session: ServerHttp2Session) => boolean,
): RequestListener {
  return (request, response) => {
    const { stream } = request as unknown as Partial<Http2ServerRequest>;
    const session = stream?.session as ServerHttp2Session | undefined;
    if (stream === undefined || session === undefined || !isResetting(session)) {
      handler(request, response);
      return;
    }
    setImmediate(() => {
      if (!stream.destroyed) handler(request, response);
    });
  };
}

/**
 * Gives an HTTP/2 session the timeouts that are built into Node's HTTP/1.1 server. A session without a stream is idle,
 * whatever other frames arrive.
 */
function limitSession(
  session: ServerHttp2Session,
  {
    limits,
    nowMs,
    addressLimiter,
  }: {
    readonly limits: SessionLimits;
    readonly nowMs: () => number;
    readonly addressLimiter: AddressLimiter;
  },
): SessionUse {
  session.setLocalWindowSize(SESSION_WINDOW_BYTES);
  const client = addressLimiter.clientOf(session.socket as Socket);
  const resets = new ResetCount(nowMs);
  const use = {
    streamCount: 0,
    get isResetting() {
      return resets.current > RESETS_TRUSTED_MAX;
    },
  };
  let idleTimer: NodeJS.Timeout | undefined;
  const startIdleTimer = (msMax: number) => {
    // Sends GOAWAY and closes the connection.
    idleTimer = setTimeout(() => session.destroy(), msMax).unref();
  };
  startIdleTimer(limits.headerMsMax);
  session.on('stream', (stream) => {
    use.streamCount++;
    clearTimeout(idleTimer);
    limitStream(stream, session, limits);
    stream.once('close', () => {
      use.streamCount--;
      if (stream.rstCode !== http2.NGHTTP2_NO_ERROR) {
        resets.add();
        if (client !== null) addressLimiter.addResets(client, 1);
      }
      const isAttacking =
        resets.current > RESETS_MAX || (client !== null && addressLimiter.isResetting(client));
      if (isAttacking && !session.destroyed) {
        if (client !== null) addressLimiter.addResets(client, RESETS_MAX);
        session.goaway(http2.NGHTTP2_ENHANCE_YOUR_CALM);
        session.destroy();
      }
      if (use.streamCount === 0 && !session.destroyed) startIdleTimer(limits.keepAliveMs);
    });
  });
  session.once('close', () => clearTimeout(idleTimer));
  return use;
}

function limitStream(
  stream: ServerHttp2Stream,
  session: ServerHttp2Session,
  limits: SessionLimits,
): void {
  const cancel = () => stream.close(http2.NGHTTP2_CANCEL);
  if (!stream.endAfterHeaders) startBodyTimeout(stream, limits.arrivalMsMax, cancel);
  startWriteStallTimeout(stream, session, limits.stalledMsMax, cancel);
}

/** Checks per timeout: a stalled stream is cancelled at most an eighth of the timeout too late. */
const STALL_CHECKS = 8;

/**
 * Cancels a stream whose reply makes no progress. Node's own timeout of a stream takes twice as long, since it mistakes
 * the first expiry for progress.
 */
function startWriteStallTimeout(
  stream: ServerHttp2Stream,
  session: ServerHttp2Session,
  stalledMsMax: number,
  cancel: () => void,
): void {
  let bytesSent = 0;
  let lastProgressAtMs = 0;
  const timer = setInterval(() => {
    if (session.destroyed) return;
    const nowMs = performance.now();
    const { bytesWritten } = session.socket;
    // The time before the reply begins is bounded by the deadline of the request.
    if (!stream.headersSent || bytesWritten !== bytesSent) {
      bytesSent = bytesWritten;
      lastProgressAtMs = nowMs;
    } else if (nowMs - lastProgressAtMs >= stalledMsMax) cancel();
  }, stalledMsMax / STALL_CHECKS).unref();
  stream.once('close', () => clearInterval(timer));
}

/** The connection of a request, the same object for all of its requests; null when it is closed. */
export function connectionOf(request: IncomingMessage | Http2ServerRequest): Socket | null {
  if (!('stream' in request)) return request.socket;
  const { session } = request.stream;
  return session === undefined || session.destroyed ? null : (session.socket as Socket);
}
