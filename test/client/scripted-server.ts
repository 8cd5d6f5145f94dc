// An HTTP server that answers from a script and records what it was asked: for what a client does
// when a service refuses, dies or speaks nonsense.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ScriptedReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | object;
  /** In place of `body`: sent one after another, without a length. */
  readonly chunks?: readonly (string | Uint8Array)[];
  /** Cuts the connection behind the chunks, in place of their end. */
  readonly isCut?: boolean;
  /** Says nothing more behind the chunks, and keeps the connection. */
  readonly isStalled?: boolean;
  /** Replies when so many bytes of the body are here, and reads no further. */
  readonly afterBytes?: number;
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
  readonly bytes: Uint8Array;
  readonly atMs: number;
}

export interface ScriptedServer {
  readonly url: string;
  readonly requests: RecordedRequest[];
  /** Resolves once the last request has come to an end, of whatever kind. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

/** The last reply is given again and again. */
export async function startScriptedServer(
  replies: readonly ScriptedReply[],
): Promise<ScriptedServer> {
  const requests: RecordedRequest[] = [];
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
        atMs: performance.now(),
      });
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
  for (const chunk of chunks) outgoing.write(chunk);
  if (reply.isStalled) outgoing.flushHeaders();
  // What was written has to be on its way before the connection goes.
  else if (reply.isCut) setTimeout(() => outgoing.destroy(), 20);
  else outgoing.end();
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
