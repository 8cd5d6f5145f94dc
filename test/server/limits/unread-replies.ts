// Services with large replies, which clients do not read.

import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import type { Service } from '../harness.js';
import { metricOf } from '../wire.js';

export const bytesReserved = (service: Service) =>
  metricOf(service, 'sagitta_http_reply_bytes_in_flight');

export const MATCHES = '{"vector":[1,2,3],"top_k":1000,"include_metadata":true}';

/** The approximate size of the reply to a query, in megabytes. */
export async function fillWith(service: Service, megabytes: number): Promise<void> {
  const metadata = { text: 'x'.repeat(40_000) };
  const vectors = new Array(megabytes * 25).fill({ values: [1, 2, 3], metadata });
  await service.call('POST', '/collections/c/vectors', { body: { vectors } });
}

/** An HTTP/2 client with a flow control window of 0. */
export async function openWithoutWindow(url: string, ca: string): Promise<ClientHttp2Session> {
  const session = connectHttp2(url, { ca, settings: { initialWindowSize: 0 } });
  session.on('error', () => {});
  await once(session, 'connect');
  return session;
}
