// Converts the errors of Fastify and Node to our own, logs server errors with the request id, and replies to input
// that is not valid HTTP.

import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { ERROR_TITLES, type ErrorCode, SagittaError } from '../../common/errors.js';
import { LogLimiter } from '../../common/log-limiter.js';
import type { Logger } from '../../common/logger.js';
import { JSON_TYPE } from './media-types.js';
import { BODY_LAYOUT, internalError, problemReply, STATUS_OF_CODE } from './problem.js';

/** The error as the client may see it: the details of server errors go only to the log. */
export function toClientError(error: unknown, request: FastifyRequest): SagittaError {
  if (error instanceof SagittaError) {
    return STATUS_OF_CODE[error.code] === 500 ? internalError(error) : error;
  }
  const { streamTypes = [] } = request.routeOptions.config;
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  switch (code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new SagittaError(
        'unsupported_media_type',
        `Expected a body of type ${[JSON_TYPE, ...streamTypes].join(' or ')}; found ${request.headers['content-type'] ?? 'no Content-Type'}.`,
      );
    case 'FST_ERR_BAD_URL':
      return new SagittaError(
        'invalid_request',
        'The path is not valid: percent-encoded bytes must be UTF-8.',
      );
    case 'ERR_STREAM_PREMATURE_CLOSE':
      // Fastify reports this when the connection closes before the first bytes of a stream are sent.
      return new SagittaError('deadline_exceeded', 'The client disconnected.', { cause: error });
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new SagittaError('invalid_request', 'A segment of the path is too long for an id.');
    default:
      if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
        return new SagittaError('invalid_request', 'The request could not be read.', {
          cause: error,
        });
      }
      return internalError(error);
  }
}

/** Logs server errors and overload. Errors caused by clients are logged only at the level debug. */
export function logFailure(logger: Logger, error: SagittaError, request: FastifyRequest): void {
  const status = STATUS_OF_CODE[error.code];
  const details = {
    ...request.telemetry.details,
    method: request.method,
    route: request.telemetry.route,
    code: error.code,
  };
  if (status === 500) logger.error({ ...details, err: error.cause }, 'request failed');
  else if (status > 500) logRejection(logger, details, error);
  else logger.debug({ ...details }, 'request refused');
}

/** The interval of log lines about refusals, per code: under overload every request would log a line. */
const REJECTION_INTERVAL_MS = 10_000;

/** One set of limiters per logger, since a process may run several services. */
const limitersOf = new WeakMap<Logger, Map<ErrorCode, LogLimiter>>();

function logRejection(logger: Logger, details: object, { code, cause }: SagittaError): void {
  const limiters = limitersOf.get(logger) ?? new Map<ErrorCode, LogLimiter>();
  limitersOf.set(logger, limiters);
  const limiter = limiters.get(code) ?? new LogLimiter({ intervalMs: REJECTION_INTERVAL_MS });
  limiters.set(code, limiter);
  const refused = limiter.next();
  if (refused === 0) {
    logger.debug(details, 'request refused');
    return;
  }
  const others = refused === 1 ? {} : { refused_since_last_line: refused - 1 };
  // The text of the error tells the client what to do.
  const reason = cause instanceof Error ? cause.message : ERROR_TITLES[code];
  logger.warn({ ...details, reason, ...others }, 'request refused');
}

/**
 * Replies to input that did not become a request because of invalid HTTP, headers that are too long, or a timeout.
 * Returns the code of the reply, or null if the connection cannot take one.
 */
export function respondToParseError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  requestId: string,
): ErrorCode | null {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return null;
  }
  const [code, detail] = describeClientError(error.code);
  const { status, headers, body } = problemReply(new SagittaError(code, detail), {
    requestId,
    path: '',
    layout: BODY_LAYOUT,
  });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `x-request-id: ${requestId}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  // Closes the connection even if the client neither reads the reply nor closes its side.
  socket.setTimeout(CLOSE_MS_MAX, () => socket.destroy());
  return code;
}

/** How long a client may take to read the last reply of a connection. */
const CLOSE_MS_MAX = 5_000;

function describeClientError(code: string | undefined): [ErrorCode, string] {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return ['limit_exceeded', 'The request line and the headers together are too long.'];
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return ['deadline_exceeded', 'The request was not received in time.'];
  }
  return ['invalid_request', 'The request is not valid HTTP.'];
}
