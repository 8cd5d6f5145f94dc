// Answers requests while a node of a cluster waits for the services that it shares with the others, or reads what it has
// missed: the process is alive, and everything else is `starting`. The application, which needs the data, then listens on
// the same address.

import { randomUUID } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { SagittaError } from '../../common/errors.js';
import { BODY_LAYOUT, problemReply } from '../wire/problem.js';
import { NO_STORE } from '../wire/reply.js';
import { secureContextOptions, type Tls } from './tls.js';

const REASON =
  'This node is waiting for the services that it shares with the other nodes, or reading what it has missed.';
const NOT_READY = {
  status: 'starting',
  reason: REASON,
  collections_loading: 0,
  collections_not_ready: [],
  problems: [],
} as const;

export class StartingListener {
  readonly #server: Server;

  /** `tls`: null for clear text. */
  constructor(tls: Tls | null) {
    const answer: RequestListener = (request, response) => respond(request, response);
    this.#server =
      tls === null
        ? createServer(answer)
        : createSecureServer(secureContextOptions(tls.material), answer);
  }

  /** Resolves with the port. Rejects with the error of the system. */
  async listen({ host, port }: { readonly host: string; readonly port: number }): Promise<number> {
    const server = this.#server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, resolve);
    });
    return (server.address() as AddressInfo).port;
  }

  /** Resolves when the address is free. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

function respond(request: IncomingMessage, response: ServerResponse): void {
  const [path = '/'] = (request.url ?? '/').split('?', 1);
  const isProbe = request.method === 'GET' || request.method === 'HEAD';
  const isRead = isProbe && (path === '/livez' || path === '/readyz');
  const { status, headers, body } = isRead ? answerProbe(path) : refuse(path);
  // The connection would not outlive the start.
  response.writeHead(status, { ...headers, connection: 'close' });
  response.end(request.method === 'HEAD' ? undefined : body);
  request.resume();
}

function answerProbe(path: string) {
  const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': NO_STORE };
  if (path === '/livez') return { status: 200, headers, body: '{"status":"live"}' };
  return {
    status: 503,
    headers: { ...headers, 'retry-after': '1' },
    body: JSON.stringify(NOT_READY),
  };
}

function refuse(path: string) {
  return problemReply(new SagittaError('starting', `${REASON} Retry after 1 s.`), {
    requestId: randomUUID(),
    path,
    layout: BODY_LAYOUT,
  });
}
