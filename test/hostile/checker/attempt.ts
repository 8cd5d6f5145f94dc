// One HTTP request without hidden retries: when it began, when it ended, and what is known about it.

import { Agent, type IncomingHttpHeaders, request } from 'node:http';

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** The client closes the connection after this many bytes of the body. */
  readonly cutAfterBytes?: number;
  /**
   * In a cluster: the node to ask, and whether the reply must include what any node has acknowledged. Any node by
   * default.
   */
  readonly node?: string;
  readonly isStrong?: boolean;
}

export interface Attempt {
  readonly startedAt: number;
  readonly endedAt: number;
  /** Null if the connection broke or the reply took too long. */
  readonly reply: AttemptReply | null;
  /** False if no byte of the request can have reached the service. */
  readonly mayHaveArrived: boolean;
  /** In a cluster: the node that was asked. */
  readonly node?: string;
  /** Whether the reply need only include what this node has replied before, as default reads of a cluster do. */
  readonly mayLag?: boolean;
}

/** Sends requests to the service, or to one of its nodes. */
export interface Sender {
  /** The nodes of a cluster. */
  readonly nodes: readonly string[];
  send(call: Call): Promise<Attempt>;
  close(): void;
}

export interface AttemptReply {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

/** Keeps connections open. A request without a reply after `waitMsMax` is given up, and its connection is closed. */
export class Connections implements Sender {
  readonly nodes = [];
  readonly #url: string;
  readonly #waitMsMax: number;
  readonly #agent: Agent;
  readonly #onReply: (headers: IncomingHttpHeaders) => void;

  /** `onReply` is called before an attempt with a reply ends. */
  constructor(
    url: string,
    waitMsMax: number,
    onReply: (headers: IncomingHttpHeaders) => void = () => {},
  ) {
    this.#url = url;
    this.#waitMsMax = waitMsMax;
    this.#onReply = onReply;
    this.#agent = new Agent({ keepAlive: true });
  }

  async send(call: Call): Promise<Attempt> {
    const startedAt = performance.now();
    const { reply, mayHaveArrived } = await this.#exchange(call);
    return { startedAt, endedAt: performance.now(), reply, mayHaveArrived };
  }

  #exchange(call: Call): Promise<Pick<Attempt, 'reply' | 'mayHaveArrived'>> {
    const { method, path, body = '', headers = {}, cutAfterBytes } = call;
    const payload = Buffer.from(body);
    const length = payload.length > 0 ? { 'content-length': payload.length } : {};
    return new Promise((resolve) => {
      const outgoing = request(this.#url + path, {
        method,
        agent: this.#agent,
        headers: { ...length, ...headers },
        timeout: this.#waitMsMax,
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error('no reply')));
      outgoing.on('error', (error: NodeJS.ErrnoException) =>
        resolve({ reply: null, mayHaveArrived: error.code !== 'ECONNREFUSED' }),
      );
      outgoing.on('response', (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', () => resolve({ reply: null, mayHaveArrived: true }));
        incoming.on('end', () => {
          this.#onReply(incoming.headers);
          resolve({
            reply: {
              status: incoming.statusCode!,
              headers: incoming.headers,
              text: Buffer.concat(chunks).toString(),
            },
            mayHaveArrived: true,
          });
        });
      });
      if (cutAfterBytes === undefined) outgoing.end(payload);
      else {
        outgoing.write(payload.subarray(0, cutAfterBytes), () =>
          outgoing.destroy(new Error('cut by the client')),
        );
      }
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
