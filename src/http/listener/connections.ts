// What the service puts up with on its connections, whatever is asked there: clients that do not
// take their replies, clients that wait to be told to send, and more of them than it has room for.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Server as NetServer } from 'node:net';
import type { Logger } from '../../logger.js';

/**
 * Cuts a connection of whose reply nothing has moved for so long. The time of a reply that is still
 * being worked on does not count, and every byte that the client takes begins it anew.
 */
export function watchReaders(handler: RequestListener, stalledMsMax: number): RequestListener {
  return (request, response) => {
    response.setTimeout(stalledMsMax, () => {
      if (response.headersSent && !response.writableFinished) request.socket.destroy();
    });
    handler(request, response);
  };
}

/** Requests that were not told yet that their body is welcome. */
const uninvited = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * Clients that ask (`Expect: 100-continue`) are told to send their body when it is about to be read,
 * not before: what is refused by its head costs no upload.
 */
export function deferInvitations(server: NetServer, handler: RequestListener): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    uninvited.set(request, response);
    handler(request, response);
  });
}

export function invite(request: IncomingMessage): void {
  uninvited.get(request)?.writeContinue();
  uninvited.delete(request);
}

/** Whether nobody can tell if a body follows: Node closes the connection after the reply. */
export function isUninvited(request: IncomingMessage): boolean {
  return request.headers.expect !== undefined && uninvited.has(request);
}

/**
 * Calls `onOver` once, when the reply has been sent to the last byte or cannot be any more. A reply
 * that waits for the one before it has no connection yet; when that goes, the reply never closes.
 */
export function whenOver(
  request: IncomingMessage,
  response: ServerResponse,
  onOver: () => void,
): void {
  if (response.socket !== null) {
    response.once('close', onOver);
    return;
  }
  const { socket } = request;
  const end = () => {
    response.off('close', end);
    socket.off('close', end);
    onOver();
  };
  response.once('close', end);
  // As many as a client has requests in flight on its connection.
  socket.setMaxListeners(0).once('close', end);
}

const LOG_INTERVAL_MS = 60_000;

/** Says in the log that connections were refused, but not each time: a flood shall not become two. */
export function logRefusedConnections(
  server: NetServer,
  logger: Logger,
  options: { connectionsMax: number; nowMs: () => number },
): void {
  let refusedCount = 0;
  let nextAtMs = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    refusedCount++;
    const nowMs = options.nowMs();
    if (nowMs < nextAtMs) return;
    nextAtMs = nowMs + LOG_INTERVAL_MS;
    logger.warn(
      { connections_refused: refusedCount, connections_max: options.connectionsMax },
      'connections refused: there are as many as may be',
    );
    refusedCount = 0;
  });
}
