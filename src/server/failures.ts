// Failures on their way to the client: what Fastify and Node throw becomes one of our errors, what
// is our fault is logged with the request id and told to nobody.

import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { type ErrorCode, SagittaError } from '../common/errors.js';
import type { Logger } from '../common/logger.js';
import { JSON_TYPE } from './media-types.js';
import { BODY_LAYOUT, internalError, problemReply, STATUS_OF_CODE } from './problem.js';

/** The error that the client shall see. */
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
        'The path is not valid: what is percent-encoded must be UTF-8.',
      );
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new SagittaError('invalid_request', 'A part of the path is too long to be an id.');
    default:
      if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
        return new SagittaError('invalid_request', 'The request could not be read.', {
          cause: error,
        });
      }
      return internalError(error);
  }
}

/** Where an error is worth a line in the log: nothing that clients cause. */
export function logFailure(logger: Logger, error: SagittaError, request: FastifyRequest): void {
  const status = STATUS_OF_CODE[error.code];
  const details = {
    ...request.telemetry.details,
    method: request.method,
    route: request.telemetry.route,
    code: error.code,
  };
  if (status === 500) logger.error({ ...details, err: error.cause }, 'request failed');
  else if (status > 500) warnOfRefusal(logger, details, error);
  else logger.debug({ ...details }, 'request refused');
}

/** On a full disk, and under too much load, every request fails alike; a line each would fill the next disk. */
const REFUSAL_LINES_EVERY_MS = 10_000;

interface RefusalLine {
  readonly code: ErrorCode;
  nextAtMs: number;
  hiddenCount: number;
}

/** By logger, since several services may live in one process. */
const lastRefusals = new WeakMap<Logger, RefusalLine[]>();

function warnOfRefusal(logger: Logger, details: object, { code, message }: SagittaError): void {
  const lines = lastRefusals.get(logger) ?? [];
  lastRefusals.set(logger, lines);
  let line = lines.find((known) => known.code === code);
  if (line === undefined) {
    line = { code, nextAtMs: 0, hiddenCount: 0 };
    lines.push(line);
  }
  const nowMs = performance.now();
  if (nowMs < line.nextAtMs) {
    line.hiddenCount++;
    logger.debug(details, 'request refused');
    return;
  }
  const others = line.hiddenCount === 0 ? {} : { refused_since_last_line: line.hiddenCount };
  logger.warn({ ...details, detail: message, ...others }, 'request refused');
  line.nextAtMs = nowMs + REFUSAL_LINES_EVERY_MS;
  line.hiddenCount = 0;
}

/** Answers what is not HTTP, or too slow or too long to become a request; with which code, if it does. */
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
  // Whoever neither takes this nor closes its side does not keep the connection by that.
  socket.setTimeout(CLOSE_MS_MAX, () => socket.destroy());
  return code;
}

/** For the last words on a connection to arrive. */
const CLOSE_MS_MAX = 5_000;

function describeClientError(code: string | undefined): [ErrorCode, string] {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return ['limit_exceeded', 'The path and the headers together are too long.'];
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return ['deadline_exceeded', 'The request did not arrive in time.'];
  }
  return ['invalid_request', 'This is not a valid HTTP request.'];
}
