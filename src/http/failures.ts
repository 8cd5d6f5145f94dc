// Failures on their way to the client: what Fastify and Node throw becomes one of our errors, what
// is our fault is logged with the request id and told to nobody.

import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { type ErrorCode, SagittaError } from '../errors.js';
import type { Limits } from '../limits.js';
import type { Logger } from '../logger.js';
import { internalError, problemReply, STATUS_OF_CODE } from './problem.js';

/** The error that the client shall see. */
export function toClientError(
  error: unknown,
  request: FastifyRequest,
  limits: Limits,
): SagittaError {
  if (error instanceof SagittaError) {
    return STATUS_OF_CODE[error.code] === 500 ? internalError(error) : error;
  }
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return tooLarge(request, limits);
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new SagittaError(
        'unsupported_media_type',
        `Expected a body of type application/json; found ${request.headers['content-type'] ?? 'no Content-Type'}.`,
      );
    case 'FST_ERR_BAD_URL':
      return new SagittaError(
        'invalid_request',
        'The path is not valid: what is percent-encoded must be UTF-8.',
      );
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new SagittaError('invalid_request', 'A part of the path is too long to be an id.');
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new SagittaError('invalid_request', 'The body is not as long as Content-Length says.');
    default:
      // A client that breaks off in the middle of its body; nobody reads the reply.
      if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
        return new SagittaError('invalid_request', 'The request could not be read.', {
          cause: error,
        });
      }
      return internalError(error);
  }
}

function tooLarge(request: FastifyRequest, limits: Limits): SagittaError {
  const bound = limits.bodyBytesMax;
  const length = Number(request.headers['content-length']);
  // A chunked body is given up as soon as it passes the bound.
  const found = Number.isNaN(length) ? `more than ${bound}` : length;
  const detail = `A body has at most ${bound} bytes; found ${found}.`;
  return new SagittaError('payload_too_large', detail, {
    items: [{ pointer: '', code: 'payload_too_large', detail, expected: bound, actual: found }],
  });
}

/** Where an error is worth a line in the log: nothing that clients cause. */
export function logFailure(
  logger: Logger,
  error: SagittaError,
  request: { id: string; method: string; route: string },
): void {
  const status = STATUS_OF_CODE[error.code];
  const details = {
    request_id: request.id,
    method: request.method,
    route: request.route,
    code: error.code,
  };
  if (status === 500) logger.error({ ...details, err: error.cause }, 'request failed');
  else if (status > 500) logger.warn({ ...details, detail: error.message }, 'request refused');
  else logger.debug({ ...details }, 'request refused');
}

/** Answers what is not HTTP, or too slow or too long to become a request. */
export function replyToClientError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  requestId: string,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [code, detail] = describeClientError(error.code);
  const { status, headers, body } = problemReply(new SagittaError(code, detail), {
    requestId,
    path: '',
  });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `x-request-id: ${requestId}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
}

function describeClientError(code: string | undefined): [ErrorCode, string] {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return ['limit_exceeded', 'The path and the headers together are too long.'];
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return ['deadline_exceeded', 'The request did not arrive in time.'];
  }
  return ['invalid_request', 'This is not a valid HTTP request.'];
}
