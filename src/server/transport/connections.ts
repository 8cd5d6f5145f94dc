// Timeouts and protocol details of connections: slow senders, slow readers, `Expect: 100-continue`, aborted
// replies, and the log line about refused connections.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type Http2ServerRequest, type Http2ServerResponse, constants as http2 } from 'node:http2';
import type { Server as NetServer, Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Limits } from '../../common/limits.js';
import { LogLimiter } from '../../common/log-limiter.js';
import type { Logger } from '../../common/logger.js';

/**
 * Cuts the connection when the reply makes no progress for `stalledMsMax`. Every byte that the client reads
 * restarts the timeout, and the time to produce the reply does not count.
 */
export function withWriteStallTimeout(
  handler: RequestListener,
  stalledMsMax: number,
): RequestListener {
  return (request, response) => {
    response.setTimeout(stalledMsMax, () => {
      // If nothing is left to write, the stream is waiting for the server and not for the client.
      const isWriting = response.writableEnded || response.writableLength > 0;
      if (response.headersSent && isWriting && !response.writableFinished) request.socket.destroy();
    });
    handler(request, response);
  };
}

/** The timer of a body being received: a member of the readable, since V8 takes microseconds to extend a WeakMap. */
const BODY_TIMER = Symbol('body timer');

/** A request (HTTP/1) or stream (HTTP/2). */
type TimedBody = Readable & { [BODY_TIMER]?: NodeJS.Timeout };

/** Calls `onTimeout` if the body has not been received within `msMax`. Replaces an earlier timeout. */
export function startBodyTimeout(body: TimedBody, msMax: number, onTimeout: () => void): void {
  clearTimeout(body[BODY_TIMER]);
  const timer = setTimeout(onTimeout, msMax).unref();
  body[BODY_TIMER] = timer;
  const stop = () => clearTimeout(timer);
  body.once('end', stop).once('close', stop);
}

/** Cancels the timeout of a streamed body, whose reader has its own. */
export function clearBodyTimeout(request: IncomingMessage | Http2ServerRequest): void {
  clearTimeout(bodyReadable(request)[BODY_TIMER]);
}

/** How long the rest of a refused body is read, so that its sender can receive the error. */
const DISCARD_MS_MAX = 5_000;

/** Aborts the reply if the rest of a refused body, which is being discarded, does not end soon. */
export function limitRestOfBody(
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
): void {
  startBodyTimeout(bodyReadable(request), DISCARD_MS_MAX, () => abortReply(response));
}

/** The readable that ends with the body. */
function bodyReadable(request: IncomingMessage | Http2ServerRequest): TimedBody {
  return 'stream' in request ? request.stream : request;
}

/** Applies the timeout for whole bodies to every request of an HTTP/1.1 server. */
export function withBodyTimeout(
  handler: RequestListener,
  msMax: number,
  onTimeout: (socket: Socket) => void,
): RequestListener {
  return (request, response) => {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
    if (encoding !== undefined || Number(length ?? 0) > 0) {
      startBodyTimeout(request, msMax, () => {
        // After the reply has begun, an error can no longer be sent.
        if (response.headersSent) request.socket.destroy();
        else onTimeout(request.socket);
      });
    }
    handler(request, response);
  };
}

/** A rate that any phone exceeds. A client that reads more slowly occupies memory on purpose. */
const READ_BYTES_PER_SECOND_MIN = 64 * 1024;

/**
 * Aborts the reply unless the client reads all of it in time. Called when the whole reply has been written. For a
 * pipelined reply the time starts when the previous reply has been sent.
 */
export function startSlowReaderTimeout(
  response: ServerResponse | Http2ServerResponse,
  byteCount: number,
  stalledMsMax: number,
): void {
  const isHttp2 = 'stream' in response;
  // The kernel has buffered the whole reply, which is the normal case.
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

/** How long a client may take to read `byteCount` bytes. */
export function slowReaderMsMax(byteCount: number, stalledMsMax: number): number {
  // Whole seconds: timers of the same length share a list.
  return stalledMsMax + Math.ceil(byteCount / READ_BYTES_PER_SECOND_MIN) * 1000;
}

/** Aborts a reply: closes the connection (HTTP/1) or cancels the stream (HTTP/2). */
export function abortReply(response: ServerResponse | Http2ServerResponse): void {
  if ('stream' in response) response.stream.close(http2.NGHTTP2_CANCEL);
  else response.socket?.destroy();
}

/**
 * Flushes an incomplete reply and, with HTTP/2, ends its stream with an error: if the stream were destroyed at
 * once, the reply would look complete. With HTTP/1 the caller destroys the connection.
 */
export async function abortAfterFlush(
  response: ServerResponse | Http2ServerResponse,
): Promise<void> {
  if (response.destroyed) return;
  await new Promise<void>((resolve) => {
    response.once('close', resolve);
    // The two types declare the same method differently.
    const write = response.write as (chunk: string, onWritten: () => void) => boolean;
    write.call(response, '', resolve);
  });
  if ('stream' in response) response.stream.close(http2.NGHTTP2_INTERNAL_ERROR);
}

/** Requests with `Expect: 100-continue` that have not been answered yet. */
const awaitingContinue = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * Defers `100 Continue` until the body is about to be read, so that a request that is refused by its headers costs no
 * upload. Other expectations are ignored (RFC 9110, section 10.1.1): Node would reply 417 without a problem document.
 */
export function deferContinue(server: NetServer, handler: RequestListener): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    awaitingContinue.set(request, response);
    handler(request, response);
  });
  server.on('checkExpectation', handler);
}

/** Sends the deferred `100 Continue`, if the client waits for one. */
export function sendContinue(request: IncomingMessage): void {
  awaitingContinue.get(request)?.writeContinue();
  awaitingContinue.delete(request);
}

/** Reads and discards the rest of a body, which may be piped to a `BodyVerifier`. */
export function discardBody({ raw }: { readonly raw: IncomingMessage | Http2ServerRequest }): void {
  raw.unpipe();
  raw.resume();
}

/** Whether the client waits for `100 Continue`. After a refusal it may or may not send the body. */
export function isAwaitingContinue(request: IncomingMessage): boolean {
  return request.headers.expect !== undefined && awaitingContinue.has(request);
}

/** Whether the reply can no longer reach the client. */
export function isReplyClosed(response: ServerResponse | Http2ServerResponse): boolean {
  return 'stream' in response ? response.stream.destroyed : response.destroyed;
}

/**
 * Calls `onClosed` once, when the reply has been sent or can no longer be sent; at once if the client has
 * disconnected. A pipelined reply has no socket yet, and emits no `close` if the connection closes before its turn.
 */
export function onReplyClosed(
  request: IncomingMessage,
  response: ServerResponse,
  onClosed: () => void,
): void {
  if (isReplyClosed(response) || request.socket?.destroyed === true) {
    onClosed();
    return;
  }
  if (response.socket !== null) {
    response.once('close', onClosed);
    return;
  }
  const { socket } = request;
  const end = () => {
    response.off('close', end);
    socket.off('close', end);
    onClosed();
  };
  response.once('close', end);
  // There may be one listener per pipelined request.
  socket.setMaxListeners(0).once('close', end);
}

const LOG_INTERVAL_MS = 60_000;

/** Logs refused connections, at most one line per interval, so that a flood does not flood the log. */
export function logRefusedConnections(
  server: NetServer,
  logger: Logger,
  options: {
    limits: Pick<Limits, 'connectionsMax' | 'connectionsPerAddressMax'>;
    nowMs: () => number;
  },
): void {
  const { connectionsMax, connectionsPerAddressMax } = options.limits;
  const limiter = new LogLimiter({ intervalMs: LOG_INTERVAL_MS, nowMs: options.nowMs });
  server.on('drop', () => {
    const refusedCount = limiter.next();
    if (refusedCount === 0) return;
    logger.warn(
      {
        connections_refused: refusedCount,
        connections_max: connectionsMax,
        connections_per_address_max: connectionsPerAddressMax,
      },
      'connections refused: the limit of connections, in total or per address, is reached',
    );
  });
}
