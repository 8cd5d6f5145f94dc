// Services with a limit on the memory of bodies, and bodies of a given length.

import { type Agent, request as sendRequest } from 'node:http';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { createFilledService, type Service } from '../harness.js';
import { metricOf } from '../wire.js';

export const bytesReserved = (service: Service) =>
  metricOf(service, 'sagitta_http_body_bytes_in_flight');

export const createBounded = (bodyBytesInFlightMax: number) =>
  createFilledService({ limits: { ...DEFAULT_LIMITS, bodyBytesInFlightMax } });

export const JSON_TYPE = { 'content-type': 'application/json' };

export interface Posted {
  readonly status: number;
  readonly code: string | undefined;
  readonly retryAfter: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies freely
  readonly json: any;
  /** The port of the client, which identifies the connection. */
  readonly socketId: number | undefined;
}

export function post(
  port: number,
  agent: Agent,
  body: string,
  { isChunked }: { isChunked: boolean },
): Promise<Posted> {
  return new Promise((resolve, reject) => {
    const headers = isChunked ? JSON_TYPE : { ...JSON_TYPE, 'content-length': body.length };
    const request = sendRequest(
      { port, agent, method: 'POST', path: '/collections/c/query', headers },
      (reply) => {
        let text = '';
        const socketId = reply.socket.localPort;
        reply.on('data', (chunk) => {
          text += chunk;
        });
        reply.on('end', () => {
          const json = JSON.parse(text);
          resolve({
            status: reply.statusCode!,
            code: json.code,
            retryAfter: reply.headers['retry-after'],
            json,
            socketId,
          });
        });
      },
    );
    request.on('error', reject);
    // In several writes, so that chunked bodies have several chunks.
    for (let at = 0; at < body.length; at += 65_536) request.write(body.slice(at, at + 65_536));
    request.end();
  });
}
