// The server under the application: what it speaks, how long it waits for clients, and how it lets
// go of connections. Knows no routes.

import { createServer, type RequestListener, type Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import type { Limits } from '../limits.js';

/** A cursor in the query string holds the query vector: 87 KB for 16 384 dimensions. */
const HEADER_BYTES_MAX = 128 * 1024;

export function createHttpServer(handler: RequestListener, limits: Limits): Server {
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: limits.headerMsMax,
      requestTimeout: limits.arrivalMsMax,
      keepAliveTimeout: limits.keepAliveMs,
    },
    handler,
  );
  server.maxConnections = limits.connectionsMax;
  return server;
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
