// Streamed bodies over real connections.

import { connect } from 'node:net';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { createFilledService, type Service } from '../harness.js';
import { headOf, listen, metricOf } from '../wire.js';

export const PATH = '/collections/c/vectors';
export const STREAM = { 'content-type': 'application/x-ndjson', 'transfer-encoding': 'chunked' };

export const bytesReserved = (service: Service) =>
  metricOf(service, 'sagitta_http_body_bytes_in_flight');
export const line = (id: string) => `${JSON.stringify({ id, values: [1, 2, 3] })}\n`;
/** A chunk of the chunked transfer coding. */
export const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
export const END = '0\r\n\r\n';
/** NDJSON with `count` rows of a kilobyte. */
export const kilobytes = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, i) => {
    return `${JSON.stringify({ id: `${prefix}${i}`, values: [1, 2, 3], metadata: { t: 'x'.repeat(960) } })}\n`;
  }).join('');

export async function start(limits: Partial<typeof DEFAULT_LIMITS | Record<string, number>> = {}) {
  const all = { ...DEFAULT_LIMITS, ...limits };
  const service = await createFilledService({ limits: all });
  return { service, port: await listen(service) };
}

/** Starts a stream and collects the reply. */
export function begin(port: number, headers: Readonly<Record<string, string | number>> = STREAM) {
  const socket = connect(port, '127.0.0.1');
  const begun = { socket, text: '', isClosed: false };
  socket.on('data', (data) => {
    begun.text += data;
  });
  socket.on('close', () => {
    begun.isClosed = true;
  });
  socket.on('error', () => {});
  socket.write(headOf('POST', PATH, headers));
  return begun;
}
