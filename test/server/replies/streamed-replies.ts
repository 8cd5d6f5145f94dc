// Replies that are produced while they are sent, with batches of queries as an example.

import { connect, type Socket } from 'node:net';
import { SagittaError } from '../../../src/common/errors.js';
import { createMetrics } from '../../../src/platform/metrics.js';
import { countPins, createFilledService, type Service } from '../harness.js';
import { headOf, listen, metricOf } from '../wire.js';

export const pins = countPins();

export const PATH = '/collections/c/query/batch';
export const NDJSON = 'application/x-ndjson';
/** Queries that form three groups of 256, 256 and 88. */
export const BODY = JSON.stringify({ queries: new Array(600).fill({ vector: [1, 0.5, 0] }) });

export const bytesReserved = (service: Service) =>
  metricOf(service, 'sagitta_http_reply_bytes_in_flight');
/** The reading of it is one. */
export const underWay = (service: Service) => metricOf(service, 'sagitta_http_requests_in_flight');

/** Makes this group and all later ones fail. */
export function failFrom(service: Service, number: number): void {
  let count = 0;
  service.hooks.beforeSearch = async () => {
    if (count++ >= number) throw new SagittaError('collection_not_found', 'It was deleted.');
  };
}

/** 40 MB of replies, in four groups. */
export async function createLarge(
  options: Parameters<typeof createFilledService>[0] = {},
): Promise<{ service: Service; port: number; body: string }> {
  const service = await createFilledService({ metrics: createMetrics(), ...options });
  const metadata = { text: 'x'.repeat(40_000) };
  const vectors = [{ id: 'large', values: [9, 9, 9], metadata }];
  await service.call('POST', '/collections/c/vectors', { body: { vectors } });
  const query = { vector: [1, 2, 3], top_k: 1, include_metadata: true };
  const body = JSON.stringify({ queries: new Array(1_024).fill(query) });
  return { service, port: await listen(service), body };
}

export function openLarge(port: number, body: string): Socket {
  const socket = connect(port, '127.0.0.1', () => {
    const head = { 'content-type': 'application/json', 'content-length': body.length };
    socket.write(headOf('POST', PATH, head) + body);
  });
  socket.on('error', () => {});
  return socket;
}
