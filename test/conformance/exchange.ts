// A single HTTP exchange. It sends the path and the headers exactly as in the case and adds only the Content-Type and
// Content-Length of a body.

import { type Agent, request } from 'node:http';
import type { Json } from '../../src/common/types.js';

export interface Outgoing {
  readonly method: string;
  /** Path with the query string. */
  readonly path: string;
  /** Lower-case names; null removes a header that would be added. */
  readonly headers: Readonly<Record<string, string | null>>;
  readonly body?: Buffer | undefined;
}

export interface Incoming {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Undefined if the content type is not JSON. */
  readonly json: Json | undefined;
}

export type Exchange = typeof exchange;

/** Sends a request. Rejects if the connection breaks or a body of type JSON cannot be parsed. */
export function exchange(url: string, agent: Agent, outgoing: Outgoing): Promise<Incoming> {
  const { hostname, port } = new URL(url);
  const { method, path, body } = outgoing;
  const headers: Record<string, string> = {};
  const defaults =
    body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': String(body.length) };
  for (const [name, value] of Object.entries({ ...defaults, ...outgoing.headers })) {
    if (value !== null) headers[name] = value;
  }
  if (headers['transfer-encoding'] !== undefined) delete headers['content-length'];
  return new Promise((resolve, reject) => {
    const sending = request({ hostname, port, agent, method, path, headers }, (receiving) => {
      const chunks: Buffer[] = [];
      receiving.on('data', (chunk: Buffer) => chunks.push(chunk));
      receiving.on('error', reject);
      receiving.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const replyHeaders = Object.fromEntries(
          Object.entries(receiving.headers).map(([name, value]) => [name, String(value)]),
        );
        const isJson = /[/+]json\b/.test(replyHeaders['content-type'] ?? '') && text !== '';
        try {
          resolve({
            status: receiving.statusCode!,
            headers: replyHeaders,
            text,
            json: isJson ? (JSON.parse(text) as Json) : undefined,
          });
        } catch {
          reject(new Error(`${method} ${path}: expected JSON, found ${text.slice(0, 300)}`));
        }
      });
    });
    sending.on('error', reject);
    sending.end(body);
  });
}
