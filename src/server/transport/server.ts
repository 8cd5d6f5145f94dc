// The server under the application: what it speaks, how long it waits for clients, and how it lets
// go of connections. Knows no routes.

import { createServer, type RequestListener, type Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Limits } from '../../common/limits.js';
import { deferContinue, withBodyTimeout, withWriteStallTimeout } from './connections.js';

/** A cursor in the query string holds the query vector: 87 KB for 16 384 dimensions. */
export const HEADER_BYTES_MAX = 128 * 1024;

export function createHttpServer(handler: RequestListener, limits: Limits): Server {
  const onLate = (socket: Socket) => {
    const error = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    server.emit('clientError', error, socket);
  };
  const listener = withBodyTimeout(
    withWriteStallTimeout(handler, limits.stalledMsMax),
    limits.arrivalMsMax,
    onLate,
  );
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: limits.headerMsMax,
      // Node knows one bound for all; a stream may take as long as it moves.
      requestTimeout: 0,
      connectionsCheckingInterval: checkingIntervalMs(limits),
      // 0 would be for ever to Node.
      keepAliveTimeout: Math.max(1, limits.keepAliveMs),
    },
    listener,
  );
  deferContinue(server, listener);
  server.maxConnections = limits.connectionsMax;
  return server;
}

/**
 * How often Node looks for heads that are late: the bound holds within a tenth, or two seconds, and
 * an idle process wakes no more often than that.
 */
function checkingIntervalMs({ headerMsMax }: Limits): number {
  return Math.min(2_000, Math.max(50, headerMsMax / 10));
}

/** Takes no new connections; those that are open stay. */
export function stopListening(server: Server): void {
  // Not the close of an HTTP server: that one cuts connections whose reply is written but has not
  // reached a slow client yet.
  NetServer.prototype.close.call(server);
}

export function cutConnections(server: Server): void {
  server.closeAllConnections();
}
