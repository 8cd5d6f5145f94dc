// What the service puts up with on its connections, whatever is asked there: clients that do not
// take their replies, clients that wait to be told to send, and more of them than it has room for.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type Http2ServerRequest, type Http2ServerResponse, constants as http2 } from 'node:http2';
import type { Server as NetServer, Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Limits } from '../../common/limits.js';
import type { Logger } from '../../common/logger.js';

/**
 * Cuts a connection of whose reply nothing has moved for so long. The time of a reply that is still
 * being worked on does not count, and every byte that the client takes begins it anew.
 */
export function withWriteStallTimeout(
  handler: RequestListener,
  stalledMsMax: number,
): RequestListener {
  return (request, response) => {
    response.setTimeout(stalledMsMax, () => {
      // What waits for us, in the middle of a stream, is not the client's fault.
      const isTheirs = response.writableEnded || response.writableLength > 0;
      if (response.headersSent && isTheirs && !response.writableFinished) request.socket.destroy();
    });
    handler(request, response);
  };
}

/** Of requests whose body is on its way; by request of HTTP/1, by stream of HTTP/2. */
const arrivals = new WeakMap<object, NodeJS.Timeout>();

/** Calls `onLate` unless all of the body has arrived by then. */
export function startBodyTimeout(body: Readable, msMax: number, onLate: () => void): void {
  clearTimeout(arrivals.get(body));
  const timer = setTimeout(onLate, msMax).unref();
  arrivals.set(body, timer);
  const stop = () => clearTimeout(timer);
  body.once('end', stop).once('close', stop);
}

/** For bodies whose reader bounds their arrival itself. */
export function clearBodyTimeout(request: IncomingMessage | Http2ServerRequest): void {
  clearTimeout(arrivals.get(bodyReadable(request)));
}

/** What ends when all of the body is there. */
export function bodyReadable(request: IncomingMessage | Http2ServerRequest): Readable {
  return 'stream' in request ? request.stream : request;
}

/** Gives every body so long to arrive. */
export function withBodyTimeout(
  handler: RequestListener,
  msMax: number,
  onLate: (socket: Socket) => void,
): RequestListener {
  return (request, response) => {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
    if (encoding !== undefined || Number(length ?? 0) > 0) {
      startBodyTimeout(request, msMax, () => {
        // Whoever has the reply already reads no other.
        if (response.headersSent) request.socket.destroy();
        else onLate(request.socket);
      });
    }
    handler(request, response);
  };
}

/**
 * What a line of a phone carries with ease. Who takes less than that on the whole holds the memory of
 * a reply on purpose, however often a byte of it moves.
 */
const READ_BYTES_PER_SECOND_MIN = 64 * 1024;

/**
 * Cuts off who has not taken the whole reply in time: the connection of HTTP/1, the stream of HTTP/2.
 * Called when the reply has been handed over. The time of a reply that waits for the one before it
 * begins when that has left.
 */
export function startSlowReaderTimeout(
  response: ServerResponse | Http2ServerResponse,
  byteCount: number,
  stalledMsMax: number,
): void {
  const isHttp2 = 'stream' in response;
  // The system has taken all of it already, as it does of nearly every reply.
  if (!isHttp2 && response.writableEnded && response.writableLength === 0) return;
  if (!isHttp2 && response.socket === null) {
    response.once('socket', () => startSlowReaderTimeout(response, byteCount, stalledMsMax));
    return;
  }
  const timer = setTimeout(
    () => abortReply(response),
    slowReaderMsMax(byteCount, stalledMsMax),
  ).unref();
  response.once('close', () => clearTimeout(timer));
}

/** How long a client may take over so many bytes. */
export function slowReaderMsMax(byteCount: number, stalledMsMax: number): number {
  // Whole seconds: timers of the same length share a list.
  return stalledMsMax + Math.ceil(byteCount / READ_BYTES_PER_SECOND_MIN) * 1000;
}

/** Ends a reply that cannot be finished: the connection of HTTP/1, the stream of HTTP/2. */
export function abortReply(response: ServerResponse | Http2ServerResponse): void {
  if ('stream' in response) response.stream.close(http2.NGHTTP2_CANCEL);
  else response.socket?.destroy();
}

/**
 * Makes ready to end a reply before its end: what was said of it has left, and the stream of HTTP/2
 * ends with an error. Destroyed as it is, it would end like one that is whole. The connection of
 * HTTP/1 is the caller's to destroy.
 */
export async function abortAfterFlush(
  response: ServerResponse | Http2ServerResponse,
): Promise<void> {
  if (response.destroyed) return;
  await new Promise<void>((resolve) => {
    response.once('close', resolve);
    // The same for both, but declared apart.
    const write = response.write as (chunk: string, onWritten: () => void) => boolean;
    write.call(response, '', resolve);
  });
  if ('stream' in response) response.stream.close(http2.NGHTTP2_INTERNAL_ERROR);
}

/** Requests that were not told yet that their body is welcome. */
const awaitingContinue = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * Clients that ask (`Expect: 100-continue`) are told to send their body when it is about to be read,
 * not before: what is refused by its head costs no upload.
 */
export function deferContinue(server: NetServer, handler: RequestListener): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    awaitingContinue.set(request, response);
    handler(request, response);
  });
}

export function sendContinue(request: IncomingMessage): void {
  awaitingContinue.get(request)?.writeContinue();
  awaitingContinue.delete(request);
}

/** Whether nobody can tell if a body follows: Node closes the connection after the reply. */
export function isAwaitingContinue(request: IncomingMessage): boolean {
  return request.headers.expect !== undefined && awaitingContinue.has(request);
}

/**
 * Calls `onOver` once, when the reply has been sent to the last byte or cannot be any more. A reply
 * that waits for the one before it has no connection yet; when that goes, the reply never closes.
 */
export function onReplyClosed(
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
  options: {
    limits: Pick<Limits, 'connectionsMax' | 'connectionsPerAddressMax'>;
    nowMs: () => number;
  },
): void {
  const { connectionsMax, connectionsPerAddressMax } = options.limits;
  let refusedCount = 0;
  let nextAtMs = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    refusedCount++;
    const nowMs = options.nowMs();
    if (nowMs < nextAtMs) return;
    nextAtMs = nowMs + LOG_INTERVAL_MS;
    logger.warn(
      {
        connections_refused: refusedCount,
        connections_max: connectionsMax,
        connections_per_address_max: connectionsPerAddressMax,
      },
      'connections refused: there are as many as may be, in all or of one address',
    );
    refusedCount = 0;
  });
}
