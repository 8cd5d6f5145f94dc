// A client that sends prepared bytes over a kept connection and looks only for the end of the reply: it runs on
// the cores of the server, so every microsecond that it takes is lost to the server.

import { connect } from 'node:net';

export interface RawClient {
  /**
   * Sends a request after the previous one has been answered. Resolves to the body of the reply, with the
   * frames of its chunks if it has no length; rejects for statuses other than 200.
   */
  send(request: Uint8Array): Promise<Buffer>;
  close(): void;
}

const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n');

/** Returns the bytes of a POST request with a JSON body. */
export function postRequest(path: string, body: string): Buffer {
  const length = Buffer.byteLength(body);
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
  return Buffer.from(head + body);
}

export function openRawClient(url: string): RawClient {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let resolve: (body: Buffer) => void = () => {};
  let reject: (error: Error) => void = () => {};
  let chunks: Buffer[] = [];
  socket.on('data', (chunk) => {
    chunks.push(chunk);
    const bytes = chunks.length === 1 ? chunk : Buffer.concat(chunks);
    chunks = [bytes];
    const headEnd = bytes.indexOf('\r\n\r\n');
    if (headEnd === -1) return;
    const head = bytes.toString('latin1', 0, headEnd);
    if (!head.startsWith('HTTP/1.1 200')) {
      reject(new Error(`expected status 200, found ${bytes.toString('utf8', 0, 500)}`));
      return;
    }
    const body = bytes.subarray(headEnd + 4);
    const length = /content-length: (\d+)/i.exec(head)?.[1];
    const isComplete =
      length === undefined
        ? body.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)
        : body.length >= Number(length);
    if (!isComplete) return;
    chunks = [];
    resolve(body);
  });
  socket.on('error', (error) => reject(error));
  socket.on('close', () => reject(new Error('the server has closed the connection')));
  return {
    send: (request) =>
      new Promise((onReply, onError) => {
        resolve = onReply;
        reject = onError;
        socket.write(request);
      }),
    close: () => socket.destroy(),
  };
}
