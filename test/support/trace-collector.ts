// A local trace collector for OTLP over HTTP.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[];
  readonly status: { readonly code?: number };
}
interface SentResource {
  readonly resource: { readonly attributes: SentSpan['attributes'] };
  readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[];
}

/** Records what it receives, or replies to everything with `status`. */
export async function startCollector(status = 200) {
  const bodies: string[] = [];
  const paths: string[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      paths.push(`${request.method} ${request.url} ${request.headers['content-type']}`);
      bodies.push(Buffer.concat(chunks).toString());
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paths,
    text: () => bodies.join('\n'),
    resources: () =>
      bodies.flatMap(
        (body) => (JSON.parse(body) as { resourceSpans: SentResource[] }).resourceSpans,
      ),
    spans(): SentSpan[] {
      return this.resources().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
