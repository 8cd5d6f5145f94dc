// An HTTP server that sends scripted replies and records the requests: for tests of the client against
// a server that rejects requests, fails or sends invalid replies.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ScriptedReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | object;
  /** In place of `body`: sent one after another, without a content length. */
  readonly chunks?: readonly (string | Uint8Array)[];
  /** Breaks the connection after the chunks. */
  readonly isCut?: boolean;
  /** Sends nothing after the chunks and keeps the connection open. */
  readonly isStalled?: boolean;
  /** Replies once this many bytes of the body have arrived, and reads no further. */
  readonly afterBytes?: number;
  /** Breaks the connection instead of replying. */
  readonly isLost?: boolean;
  /** Never replies. */
  readonly isSilent?: boolean;
}

interface RecordedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly bytes: Uint8Array;
}

export interface ScriptedServer {
  readonly url: string;
  readonly requests: RecordedRequest[];
  /** Resolves once the server has received this many requests. */
  received(count: number): Promise<void>;
  /** Resolves once the last request has ended, in whatever way. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

/** The last reply is repeated for all further requests. */
export async function startScriptedServer(
  replies: readonly ScriptedReply[],
): Promise<ScriptedServer> {
  const requests: RecordedRequest[] = [];
  const waiting = new Set<() => void>();
  let ended = Promise.resolve();
  const server = createServer((incoming, outgoing) => {
    ended = new Promise((resolve) => {
      outgoing.on('close', resolve);
    });
    const chunks: Buffer[] = [];
    let byteCount = 0;
    let isAnswered = false;
    const answer = (reply: ScriptedReply) => {
      isAnswered = true;
      requests.push({
        method: incoming.method!,
        url: incoming.url!,
        headers: incoming.headers,
        body: Buffer.concat(chunks).toString(),
        bytes: new Uint8Array(Buffer.concat(chunks)),
      });
      for (const check of waiting) check();
      if (reply.isSilent) return;
      if (reply.isLost) incoming.socket.destroy();
      else send(outgoing, reply);
    };
    const next = () => replies[Math.min(requests.length, replies.length - 1)]!;
    incoming.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      byteCount += chunk.length;
      const { afterBytes = Number.POSITIVE_INFINITY } = next();
      if (isAnswered || byteCount < afterBytes) return;
      answer(next());
      incoming.pause();
    });
    incoming.on('end', () => {
      if (!isAnswered) answer(next());
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    received: (count) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (requests.length < count) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    idle: () => ended,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function send(outgoing: ServerResponse, reply: ScriptedReply): void {
  outgoing.writeHead(reply.status ?? 200, reply.headers);
  const { body = {}, chunks } = reply;
  if (chunks === undefined) {
    outgoing.end(typeof body === 'string' ? body : JSON.stringify(body));
    return;
  }
  const last = chunks.length - 1;
  chunks.forEach((chunk, at) => {
    // The chunks have to be sent before the connection breaks.
    const onSent = reply.isCut && at === last ? () => outgoing.destroy() : undefined;
    outgoing.write(chunk, onSent);
  });
  if (reply.isStalled) outgoing.flushHeaders();
  else if (!reply.isCut) outgoing.end();
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
      detail: `detail of ${code}`,
      code,
      retryable: false,
      ...rest,
    },
  };
}
