// A server with the part of the interface of S3 that blobs use. It computes the signature of each request with another
// library, and refuses requests that do not match, as S3 does.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import aws4 from 'aws4';

/** Names per page of a list, few enough for several pages; S3 has a thousand. */
const PAGE_NAMES = 10;
/** Characters that XML escapes, so that clients must decode the token. */
const TOKEN_PREFIX = '"<&>';

export const CREDENTIALS = {
  region: 'eu-central-1',
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};

export class S3Server {
  readonly #server: Server;
  readonly #bucket: string;
  readonly #objects = new Map<string, Buffer>();
  /** Awaited before each reply. */
  #halt: Promise<void> = Promise.resolve();
  #resume = () => {};
  /** Replies with these statuses first. */
  readonly failures: number[] = [];

  private constructor(bucket: string) {
    this.#bucket = bucket;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: Error) => response.destroy(error));
    });
  }

  static async start(bucket: string, host = '127.0.0.1'): Promise<S3Server> {
    const server = new S3Server(bucket);
    server.#server.listen(0, host);
    await once(server.#server, 'listening');
    return server;
  }

  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address}:${port}`;
  }

  /** Accepts requests and answers none of them. */
  halt(): void {
    this.#halt = new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  resume(): void {
    this.#resume();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    await this.#halt;
    const failure = this.failures.shift();
    if (failure !== undefined) return refuse(response, failure, 'SlowDown');
    if (!isSigned(request)) return refuse(response, 403, 'SignatureDoesNotMatch');
    const { pathname, searchParams } = new URL(request.url!, 'http://host');
    const [, bucket, ...rest] = decodeURIComponent(pathname).split('/');
    if (bucket !== this.#bucket) return refuse(response, 404, 'NoSuchBucket');
    const name = rest.join('/');
    if (name === '') return this.#list(searchParams, response);
    if (request.method === 'PUT') return this.#put(name, request, body, response);
    if (request.method === 'DELETE') {
      this.#objects.delete(name);
      response.writeHead(204).end();
      return;
    }
    const found = this.#objects.get(name);
    if (found === undefined) return refuse(response, 404, 'NoSuchKey');
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    if (range === null) {
      response.end(found);
      return;
    }
    const [from, last] = [Number(range[1]), Number(range[2])];
    if (from >= found.length) return refuse(response, 416, 'InvalidRange');
    response.writeHead(206).end(found.subarray(from, last + 1));
  }

  #put(name: string, request: IncomingMessage, body: Buffer, response: ServerResponse): void {
    const { 'content-md5': md5, 'x-amz-content-sha256': sha256 } = request.headers;
    const isIntact =
      md5 === createHash('md5').update(body).digest('base64') &&
      sha256 === createHash('sha256').update(body).digest('hex');
    if (isIntact) {
      this.#objects.set(name, body);
      response.end();
    } else {
      refuse(response, 400, 'BadDigest');
    }
  }

  #list(query: URLSearchParams, response: ServerResponse): void {
    const prefix = query.get('prefix') ?? '';
    const after = query.get('continuation-token')?.slice(TOKEN_PREFIX.length) ?? '';
    const names = [...this.#objects.keys()]
      .filter((name) => name.startsWith(prefix) && name > after)
      .sort();
    const page = names.slice(0, PAGE_NAMES);
    const contents = page.map((name) => `<Contents><Key>${name}</Key></Contents>`).join('');
    const token = `&quot;&lt;&amp;&gt;${page.at(-1)}`;
    const next =
      names.length > page.length ? `<NextContinuationToken>${token}</NextContinuationToken>` : '';
    response.end(`<ListBucketResult>${contents}${next}</ListBucketResult>`);
  }
}

function isSigned({ method, url, headers }: IncomingMessage): boolean {
  const { authorization = '' } = headers;
  const signedNames = /SignedHeaders=([^,]+)/.exec(authorization)?.[1]?.split(';') ?? [];
  const signed = Object.fromEntries(signedNames.map((name) => [name, String(headers[name])]));
  const { headers: expected } = aws4.sign(
    {
      service: 's3',
      region: CREDENTIALS.region,
      method: method!,
      path: url!,
      headers: signed,
    },
    CREDENTIALS,
  );
  return expected?.Authorization === authorization;
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status).end(`<Error><Code>${code}</Code></Error>`);
}
