// Requests over real connections, byte by byte where a client library would not send them.

import assert from 'node:assert/strict';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { stopApp } from '../../src/server/app.js';
import { releaseAtEnd } from '../support/leftovers.js';
import { WAIT_MS_MAX } from '../support/waiting.js';
import type { Service } from './harness.js';

/** Listens on a free port and returns it. */
export async function listen(service: Service): Promise<number> {
  await service.app.listen({ port: 0, host: '127.0.0.1' });
  const isClosed = releaseAtEnd(() => stopApp(service.app, { deadlineMs: 0 }));
  service.app.server.once('close', isClosed);
  return (service.app.server.address() as AddressInfo).port;
}

/** Sends bytes and returns all that the server sends until it closes the connection. */
export function exchange(port: number, send: (socket: Socket) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => send(socket));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    const timer = setTimeout(() => {
      socket.destroy(new Error(`the connection stays open after ${text.slice(0, 1_000)}`));
    }, WAIT_MS_MAX);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(text);
    });
    socket.on('error', reject);
  });
}

/** The head of a request, with the blank line. */
export function headOf(
  method: string,
  path: string,
  headers: Readonly<Record<string, string | number>> = {},
): string {
  const lines = Object.entries({ host: 'localhost', ...headers }).map(([name, value]) => {
    return `${name}: ${value}\r\n`;
  });
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** Parses the replies in the bytes of a connection. */
export function repliesIn(text: string): { status: number; head: string; body: string }[] {
  return text
    .split(/(?=HTTP\/1\.1 \d)/)
    .filter((part) => part !== '')
    .map((part) => {
      const [head = '', body = ''] = part.split('\r\n\r\n');
      return { status: Number(head.slice(9, 12)), head, body };
    });
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A value of /metrics. */
export async function metricOf(service: Pick<Service, 'app'>, name: string): Promise<number> {
  const { body } = await service.app.inject('/metrics');
  const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(body)?.[1];
  assert.ok(found !== undefined, `no metric ${name}`);
  return Number(found);
}
