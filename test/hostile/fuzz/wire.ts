// Sends an HTTP/1.1 request exactly as given, valid or not, and reads the reply. Node's own client refuses to send much
// of what a service must survive. A connection is kept as long as both sides can continue using it.

import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How the bytes of a body are sent. */
export type Delivery =
  | { readonly kind: 'whole' }
  /** In chunks of this size, without Content-Length. */
  | { readonly kind: 'chunked'; readonly chunkBytes: number }
  /** In this many parts with pauses between them. */
  | { readonly kind: 'slow'; readonly partCount: number }
  /** Only this many bytes of the whole request; then the connection is closed. */
  | { readonly kind: 'cut'; readonly byteCount: number };

export interface WireRequest {
  readonly method: string;
  /** The path with the query, exactly as sent. */
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer | null;
  readonly delivery: Delivery;
}

export interface WireReply {
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The connection ended before a complete reply arrived. */
export class ConnectionLost extends Error {}

/** Longer than any deadline of the service. */
const REPLY_MS_MAX = 90_000;
const PAUSE_MS = 15;

export class Connection {
  readonly #port: number;
  readonly #host: string;
  #socket: Socket | null = null;
  #received: Buffer = Buffer.alloc(0);
  #hasEnded = false;
  #wake: () => void = () => {};

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#host = hostname;
    this.#port = Number(port);
  }

  /** Returns null for a request that is cut. Throws `ConnectionLost`. */
  async send(request: WireRequest): Promise<WireReply | null> {
    const socket = this.#open();
    const isKept = await this.#write(socket, request);
    if (request.delivery.kind === 'cut') {
      this.close();
      return null;
    }
    const reply = await this.#read(request.method);
    // The rest of a refused body would be read as the next request.
    if (!isKept || reply.status >= 400 || reply.headers.connection === 'close') this.close();
    return reply;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }

  #open(): Socket {
    if (this.#socket !== null && !this.#socket.destroyed && !this.#hasEnded) return this.#socket;
    this.close();
    const socket = connect(this.#port, this.#host);
    socket.setNoDelay(true);
    this.#received = Buffer.alloc(0);
    this.#hasEnded = false;
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
    const end = () => {
      if (this.#socket !== socket) return;
      this.#hasEnded = true;
      this.#wake();
    };
    // An error is followed by `close`.
    socket.on('error', () => {});
    socket.on('end', end);
    socket.on('close', end);
    this.#socket = socket;
    return socket;
  }

  /** Returns whether the connection can be used for another request. */
  async #write(socket: Socket, request: WireRequest): Promise<boolean> {
    const { method, target, body, delivery } = request;
    const names = new Set(request.headers.map(([name]) => name.toLowerCase()));
    const isFramed = names.has('content-length') || names.has('transfer-encoding');
    const lines = [`${method} ${target} HTTP/1.1`];
    if (!names.has('host')) lines.push(`host: ${this.#host}:${this.#port}`);
    for (const [name, value] of request.headers) lines.push(`${name}: ${value}`);
    if (body !== null && !isFramed) {
      const isChunked = delivery.kind === 'chunked';
      lines.push(isChunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`);
    }
    const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
    const bytes = body ?? Buffer.alloc(0);
    switch (delivery.kind) {
      case 'whole':
        socket.write(Buffer.concat([head, bytes]));
        return !isFramed;
      case 'chunked':
        socket.write(Buffer.concat([head, inChunks(bytes, delivery.chunkBytes)]));
        return !isFramed;
      case 'slow': {
        const all = Buffer.concat([head, bytes]);
        const partBytes = Math.ceil(all.length / delivery.partCount);
        for (let at = 0; at < all.length; at += partBytes) {
          socket.write(all.subarray(at, at + partBytes));
          await sleep(PAUSE_MS);
        }
        return !isFramed;
      }
      case 'cut': {
        const all = Buffer.concat([head, bytes]);
        socket.write(all.subarray(0, Math.min(all.length, delivery.byteCount)));
        await sleep(PAUSE_MS);
        return false;
      }
    }
  }

  async #read(method: string): Promise<WireReply> {
    const deadline = Date.now() + REPLY_MS_MAX;
    for (;;) {
      const parsed = parseReply(this.#received, method, this.#hasEnded);
      if (parsed !== null) {
        this.#received = this.#received.subarray(parsed.byteCount);
        return parsed.reply;
      }
      const found = `${this.#received.length} bytes had arrived`;
      if (this.#hasEnded)
        throw new ConnectionLost(`the connection ended without a reply; ${found}`);
      const leftMs = deadline - Date.now();
      if (leftMs <= 0) throw new ConnectionLost(`no reply in ${REPLY_MS_MAX} ms; ${found}`);
      await this.#next(leftMs);
    }
  }

  #next(msMax: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, msMax);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function inChunks(bytes: Buffer, chunkBytes: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const chunk = bytes.subarray(at, at + chunkBytes);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

interface Parsed {
  readonly reply: WireReply;
  readonly byteCount: number;
}

/** Returns null while bytes are missing. */
function parseReply(bytes: Buffer, method: string, hasEnded: boolean): Parsed | null {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [first = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
  if (!(status >= 100)) throw new ConnectionLost(`the reply is not HTTP/1.1: ${first}`);
  const bodyStart = headEnd + 4;
  if (status < 200) {
    const parsed = parseReply(bytes.subarray(bodyStart), method, hasEnded);
    return parsed && { ...parsed, byteCount: parsed.byteCount + bodyStart };
  }
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const done = (body: Buffer, end: number) => ({
    reply: { status, headers, body },
    byteCount: end,
  });
  if (method === 'HEAD' || status === 204 || status === 304)
    return done(Buffer.alloc(0), bodyStart);
  if (headers['transfer-encoding'] === 'chunked') {
    const chunks = readChunks(bytes, bodyStart);
    return chunks && done(chunks.body, chunks.end);
  }
  const length = headers['content-length'];
  if (length === undefined) return hasEnded ? done(bytes.subarray(bodyStart), bytes.length) : null;
  const end = bodyStart + Number(length);
  return bytes.length < end ? null : done(bytes.subarray(bodyStart, end), end);
}

function readChunks(bytes: Buffer, start: number): { body: Buffer; end: number } | null {
  const parts: Buffer[] = [];
  let at = start;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return null;
    const count = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    const end = lineEnd + 2 + count;
    if (bytes.length < end + 2) return null;
    if (count === 0) return { body: Buffer.concat(parts), end: end + 2 };
    parts.push(bytes.subarray(lineEnd + 2, end));
    at = end + 2;
  }
}

/** The request as a readable command. The body is truncated after some kilobytes. */
export function asCurl(
  url: string,
  { method, target, headers, body, delivery }: WireRequest,
): string {
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const shown = headers
    .filter(([name]) => name.toLowerCase() !== 'authorization')
    .map(([name, value]) => `-H ${quote(`${name}: ${cutText(value)}`)}`);
  const parts = ['curl -sS --path-as-is -X', method, quote(url + cutText(target)), ...shown];
  if (body === null) return parts.join(' ');
  const note = delivery.kind === 'whole' ? '' : ` # sent ${JSON.stringify(delivery)}`;
  const isText = Buffer.from(body.toString()).equals(body) && !body.includes(0);
  if (isText) return `${parts.join(' ')} --data-binary ${quote(cutText(body.toString()))}${note}`;
  const encoded = cutText(body.toString('base64'));
  return `echo ${encoded} | base64 -d | ${parts.join(' ')} --data-binary @-${note}`;
}

const SHOWN_MAX = 2_000;

function cutText(text: string): string {
  return text.length <= SHOWN_MAX
    ? text
    : `${text.slice(0, SHOWN_MAX)}…(${text.length} characters)`;
}
