// The application behind TLS, and clients for it that speak HTTP/1.1 and HTTP/2 and may present a
// certificate.

import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type SecureClientSessionOptions,
} from 'node:http2';
import { request as sendHttp1 } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import { systemClock } from '../../src/common/clock.js';
import type { Logger } from '../../src/common/logger.js';
import { stopApp } from '../../src/server/app.js';
import { openTls } from '../../src/server/transport/tls.js';
import {
  type Authority,
  type CertificateFiles,
  createAuthority,
  issueForServer,
} from '../support/certificates.js';
import { eventually } from '../support/waiting.js';
import { createFilledService, type Service, type ServiceOptions } from './harness.js';

export interface SecureService {
  readonly service: Service;
  readonly authority: Authority;
  /** Contains cert.pem, key.pem and files of the test. */
  readonly folder: string;
  readonly url: string;
  readonly port: number;
  readonly log: LogLine[];
  close(): Promise<void>;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export async function startSecureService(
  options: ServiceOptions & { clientAuthority?: Authority } = {},
): Promise<SecureService> {
  const { clientAuthority, ...appOptions } = options;
  const folder = await mkdtemp(join(tmpdir(), 'sagitta-tls-'));
  const authority = await createAuthority();
  await writeFiles(folder, await issueForServer(authority));
  const clientCa = clientAuthority === undefined ? null : join(folder, 'clients.pem');
  if (clientCa !== null) await writeFile(clientCa, clientAuthority!.cert);
  const log: LogLine[] = [];
  const logger = recordingLogger(log);
  const tls = await openTls({
    paths: { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem'), clientCa },
    clock: systemClock,
    logger,
  });
  const service = await createFilledService({ logger, tls, ...appOptions });
  await service.app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = service.app.server.address() as AddressInfo;
  return {
    service,
    authority,
    folder,
    url: `https://127.0.0.1:${port}`,
    port,
    log,
    async close() {
      tls.close();
      await stopApp(service.app, { deadlineMs: 0 });
      await rm(folder, { recursive: true });
    },
  };
}

export async function writeFiles(folder: string, { cert, key }: CertificateFiles): Promise<void> {
  await writeFile(join(folder, 'cert.pem'), cert);
  await writeFile(join(folder, 'key.pem'), key);
}

export function recordingLogger(log: LogLine[]): Logger {
  const write = (level: string) => (details: object, message: string) => {
    log.push({ level, message, details: details as LogLine['details'] });
  };
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  };
}

/** Resolves when the condition holds; fails after a minute. */
export function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  return eventually(String(condition), condition);
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface RequestInput {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export async function overHttp1(
  port: number,
  { method = 'GET', path, headers = {}, body }: RequestInput,
  tls: ConnectionOptions,
): Promise<Answer> {
  const request = sendHttp1({
    host: '127.0.0.1',
    port,
    method,
    path,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    agent: false,
    ...tls,
  });
  request.end(body);
  const [reply] = await once(request, 'response');
  let text = '';
  for await (const chunk of reply.setEncoding('utf8')) text += chunk;
  return { status: reply.statusCode, headers: reply.headers, text };
}

/** A connected session. An error of the session ends its requests, which reject. */
export async function openSession(
  url: string,
  options: SecureClientSessionOptions,
): Promise<ClientHttp2Session> {
  const session = connect(url, options);
  await once(session, 'connect');
  session.on('error', () => {});
  return session;
}

export async function overHttp2(
  session: ClientHttp2Session,
  asking: RequestInput,
): Promise<Answer> {
  return answerOf(beginOverHttp2(session, asking));
}

export function beginOverHttp2(
  session: ClientHttp2Session,
  { method = 'GET', path, headers = {}, body }: RequestInput,
): ClientHttp2Stream {
  const stream = session.request({
    ':method': method,
    ':path': path,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...headers,
  });
  stream.end(body);
  return stream;
}

/** Also rejects if the stream ends without a reply, for which Node emits no error. */
async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  const [headers] = (await Promise.race([
    once(stream, 'response'),
    once(stream, 'close').then(() => {
      throw new Error(`the stream ended without a reply, code ${stream.rstCode}`);
    }),
  ])) as [IncomingHttpHeaders & IncomingHttpStatusHeader];
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += chunk;
  return { status: headers[':status']!, headers, text };
}
