// An HTTP server that answers from a script and records what it was asked: for what a client does
// when a service refuses, dies or speaks nonsense.

import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ScriptedReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | object;
  /** Cuts the connection in place of a reply. */
  readonly isLost?: boolean;
  /** Never replies. */
  readonly isSilent?: boolean;
}

export interface RecordedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly atMs: number;
}

export interface ScriptedServer {
  readonly url: string;
  readonly requests: RecordedRequest[];
  close(): Promise<void>;
}

/** The last reply is given again and again. */
export async function startScriptedServer(
  replies: readonly ScriptedReply[],
): Promise<ScriptedServer> {
  const requests: RecordedRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const reply = replies[Math.min(requests.length, replies.length - 1)]!;
      requests.push({
        method: incoming.method!,
        url: incoming.url!,
        headers: incoming.headers,
        body: Buffer.concat(chunks).toString(),
        atMs: performance.now(),
      });
      if (reply.isSilent) return;
      if (reply.isLost) {
        incoming.socket.destroy();
        return;
      }
      outgoing.writeHead(reply.status ?? 200, reply.headers);
      const { body = {} } = reply;
      outgoing.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function problem(
  status: number,
  code: string,
  rest: Readonly<Record<string, unknown>> = {},
): ScriptedReply {
  return {
    status,
    headers: { 'content-type': 'application/problem+json' },
    body: {
      type: 'about:blank',
      title: code,
      status,
      detail: `what ${code} means`,
      code,
      retryable: false,
      ...rest,
    },
  };
}
