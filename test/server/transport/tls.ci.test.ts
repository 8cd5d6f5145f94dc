import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { systemClock } from '../../../src/common/clock.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { silentLogger } from '../../../src/common/logger.js';
import { stopApp } from '../../../src/server/app.js';
import { isReplyClosed } from '../../../src/server/transport/connections.js';
import { openTls } from '../../../src/server/transport/tls.js';
import { createAuthority, issueForServer } from '../../support/certificates.js';
import { holdQueries } from '../harness.js';
import {
  beginOverHttp2,
  openSession,
  overHttp1,
  overHttp2,
  recordingLogger,
  type SecureService,
  startSecureService,
  until,
  writeFiles,
} from '../secure-service.js';

const QUERY = { method: 'POST', path: '/collections/c/query', body: '{"vector":[1,2,3]}' };

function handshake(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: '127.0.0.1', port, ...options }, () => resolve(socket));
    socket.on('error', reject);
  });
}

/** The serial number of the certificate that a new connection receives. */
async function shownSerial(port: number, ca: string[]): Promise<string> {
  const socket = await handshake(port, { ca });
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

describe('the service behind TLS', () => {
  let secure: SecureService;
  let ca: string;
  before(async () => {
    secure = await startSecureService();
    ca = secure.authority.cert;
  });
  after(() => secure.close());

  it('accepts TLS 1.3 only', async () => {
    const socket = await handshake(secure.port, { ca });
    assert.equal(socket.getProtocol(), 'TLSv1.3');
    socket.destroy();
    await assert.rejects(handshake(secure.port, { ca, maxVersion: 'TLSv1.2' }), /protocol version/);
  });

  it('gives equal replies over HTTP/2 and HTTP/1.1, as the client prefers', async () => {
    const one = await overHttp1(secure.port, QUERY, { ca });
    const session = await openSession(secure.url, { ca });
    const two = await overHttp2(session, QUERY);
    assert.equal(session.alpnProtocol, 'h2');
    assert.deepEqual([one.status, two.status, one.text], [200, 200, two.text]);
    const problem = await overHttp2(session, { path: '/collections/none' });
    assert.equal(`${problem.status} ${JSON.parse(problem.text).code}`, '404 collection_not_found');
    assert.equal((await overHttp2(session, { path: '/docs/' })).status, 200);
    session.destroy();
    for (const ALPNProtocols of [['http/1.1'], undefined]) {
      const socket = await handshake(secure.port, { ca, ...(ALPNProtocols && { ALPNProtocols }) });
      socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
      const [reply] = await once(socket, 'data');
      assert.match(String(reply), /^HTTP\/1\.1 200 OK/);
      socket.destroy();
    }
  });

  it('refuses unknown protocols during the handshake', async () => {
    await assert.rejects(handshake(secure.port, { ca, ALPNProtocols: ['spdy/3'] }), /alert/);
  });

  it('closes a clear text connection and continues to serve', async () => {
    const socket = connectSocket(secure.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    await once(socket, 'close');
    assert.doesNotMatch(text, /HTTP/);
    assert.ok(
      secure.log.some(({ level, message }) => level === 'debug' && /handshake/.test(message)),
    );
    assert.equal((await overHttp1(secure.port, { path: '/livez' }, { ca })).status, 200);
  });

  it('handles large bodies and replies in 64 concurrent HTTP/2 requests', async () => {
    const session = await openSession(secure.url, { ca });
    const text = 'x'.repeat(5_000);
    const vectors = Array.from({ length: 2_000 }, (_, index) => ({
      id: `large-${index}`,
      values: [1_000 + index, 0, 0],
      metadata: { text },
    }));
    const body = JSON.stringify({ vectors });
    assert.ok(body.length > 10_000_000);
    const path = '/collections/c/vectors';
    const written = await overHttp2(session, { method: 'POST', path, body });
    assert.equal(written.status, 200, written.text);
    const asking = { ...QUERY, body: '{"vector":[1,0,0],"top_k":100,"include_metadata":true}' };
    const answers = await Promise.all(Array.from({ length: 64 }, () => overHttp2(session, asking)));
    for (const answer of answers) {
      assert.equal(answer.status, 200, answer.text.slice(0, 500));
      const { matches } = JSON.parse(answer.text);
      assert.deepEqual([matches.length, matches[0].id], [100, 'large-1999']);
      assert.equal(matches[99].metadata.text, text);
    }
    session.destroy();
  });

  it('accepts a path of 60 000 characters over HTTP/2, and refuses longer headers', async () => {
    const long = (length: number) => ({
      path: `/collections/c/vectors?cursor=${'A'.repeat(length)}`,
    });
    for (const [length, isTaken] of [[60_000, true] as const, [150_000, false] as const]) {
      const session = await openSession(secure.url, { ca, maxSendHeaderBlockLength: 300_000 });
      const asking = overHttp2(session, long(length));
      if (isTaken) assert.equal(JSON.parse((await asking).text).code, 'cursor_invalid');
      else await assert.rejects(asking);
      session.destroy();
    }
    for (const [count, isTaken] of [[3, true] as const, [6, false] as const]) {
      const session = await openSession(secure.url, { ca, maxSendHeaderBlockLength: 300_000 });
      const names = Array.from({ length: count }, (_, index) => `x-${index}`);
      const headers = Object.fromEntries(names.map((name) => [name, 'y'.repeat(30_000)]));
      const asking = overHttp2(session, { path: '/livez', headers });
      if (isTaken) assert.equal((await asking).status, 200);
      else await assert.rejects(asking);
      session.destroy();
    }
    const one = await overHttp1(secure.port, long(100_000), { ca });
    assert.equal(JSON.parse(one.text).code, 'cursor_invalid');
  });

  it('replies with an error to a large or unauthorized body over HTTP/2', async () => {
    const session = await openSession(secure.url, { ca });
    const large = await overHttp2(session, { ...QUERY, body: Buffer.alloc(65_000_000, ' ') });
    assert.equal(`${large.status} ${JSON.parse(large.text).code}`, '413 payload_too_large');
    const lost = await overHttp2(session, {
      method: 'POST',
      path: '/nowhere',
      body: Buffer.alloc(3_000_000, ' '),
    });
    assert.equal(lost.status, 404);
    assert.equal((await overHttp2(session, QUERY)).status, 200);
    session.destroy();
  });

  it('aborts the search when an HTTP/2 client disconnects', { timeout: 60_000 }, async () => {
    const session = await openSession(secure.url, { ca });
    const { hooks } = secure.service;
    const aborted = new Promise<void>((resolve) => {
      hooks.beforeSearch = (signal) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => {
            resolve();
            reject(signal.reason as Error);
          });
        });
    });
    const arrived = once(secure.service.app.server, 'request');
    const stream = beginOverHttp2(session, QUERY);
    stream.on('error', () => {});
    const [, response] = await arrived;
    assert.equal(isReplyClosed(response), false);
    setTimeout(() => stream.close(8), 30);
    await aborted;
    assert.equal(isReplyClosed(response), true);
    hooks.beforeSearch = async () => {};
    assert.equal((await overHttp2(session, QUERY)).status, 200);
    session.destroy();
  });
});

describe('the limits of an HTTP/2 connection', { timeout: 90_000 }, () => {
  it('close it when it is idle, and cancel streams that neither send nor read', async () => {
    const secure = await startSecureService({
      limits: {
        ...DEFAULT_LIMITS,
        headerMsMax: 300,
        keepAliveMs: 300,
        arrivalMsMax: 300,
        stalledMsMax: 300,
      },
    });
    const ca = secure.authority.cert;
    const silent = await openSession(secure.url, { ca });
    await once(silent, 'close');

    const slow = await openSession(secure.url, { ca });
    const upload = slow.request({ ':method': 'POST', ':path': QUERY.path });
    upload.write('{"vec');
    upload.on('error', () => {});
    await once(upload, 'close');
    assert.equal(upload.rstCode, 8);
    assert.equal((await overHttp2(slow, QUERY)).status, 200);
    await once(slow, 'close');

    const metadata = { text: 'x'.repeat(40_000) };
    const vectors = new Array(400).fill({ values: [1, 2, 3], metadata });
    await secure.service.call('POST', '/collections/c/vectors', { body: { vectors } });
    const stalled = await openSession(secure.url, { ca });
    const reply = beginOverHttp2(stalled, {
      ...QUERY,
      body: '{"vector":[1,2,3],"top_k":1000,"include_metadata":true}',
    });
    reply.on('error', () => {});
    await once(reply, 'close');
    assert.equal(reply.rstCode, 8, 'cancelled');
    stalled.destroy();
    await secure.close();
  });

  it('cancel an unread reply after the stall timeout rather than twice that', async () => {
    const stalledMsMax = 1_000;
    const secure = await startSecureService({ limits: { ...DEFAULT_LIMITS, stalledMsMax } });
    const metadata = { text: 'x'.repeat(40_000) };
    const vectors = new Array(400).fill({ values: [1, 2, 3], metadata });
    await secure.service.call('POST', '/collections/c/vectors', { body: { vectors } });
    const session = await openSession(secure.url, { ca: secure.authority.cert });
    const reply = beginOverHttp2(session, {
      ...QUERY,
      body: '{"vector":[1,2,3],"top_k":1000,"include_metadata":true}',
    });
    reply.on('error', () => {});
    await once(reply, 'response');
    // The service and this timer share an event loop: what delays one delays the other.
    const startMs = performance.now();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
    }, stalledMsMax * 1.9);
    await once(reply, 'close');
    clearTimeout(timer);
    assert.ok(!isLate, 'it was cancelled after twice the time');
    assert.ok(performance.now() - startMs >= stalledMsMax * 0.9);
    session.destroy();
    await secure.close();
  });

  it('allow a hundred concurrent requests', async () => {
    const secure = await startSecureService();
    const session = await openSession(secure.url, { ca: secure.authority.cert });
    if (session.remoteSettings === undefined) await once(session, 'remoteSettings');
    assert.equal(session.remoteSettings.maxConcurrentStreams, 100);
    session.destroy();
    await secure.close();
  });
});

describe('stopping behind TLS', { timeout: 90_000 }, () => {
  it('finishes accepted HTTP/2 requests, refuses new ones, and closes', async () => {
    const secure = await startSecureService();
    const ca = secure.authority.cert;
    const [busy, idle] = [
      await openSession(secure.url, { ca }),
      await openSession(secure.url, { ca }),
    ];
    const closed = Promise.all([once(busy, 'close'), once(idle, 'close')]);
    const goaway = once(idle, 'goaway');
    const { arrived, release } = holdQueries(secure.service);
    const running = overHttp2(busy, QUERY);
    await arrived;
    const startMs = performance.now();
    const stopping = stopApp(secure.service.app, { deadlineMs: 120_000 });
    assert.equal((await goaway)[0], 0, 'NO_ERROR');
    await until(() => busy.closed);
    await assert.rejects(overHttp2(busy, QUERY), /GOAWAY/);
    await assert.rejects(handshake(secure.port, { ca }), /ECONNREFUSED/);
    release();
    const { status, headers } = await running;
    assert.deepEqual([status, headers.connection], [200, undefined]);
    await Promise.all([stopping, closed]);
    assert.ok(performance.now() - startMs < 60_000);
  });

  it('finishes HTTP/1.1 requests, and sends a slow HTTP/2 client its whole reply', async () => {
    const secure = await startSecureService();
    const ca = secure.authority.cert;
    const metadata = { text: 'x'.repeat(40_000) };
    const vectors = new Array(400).fill({ values: [1, 2, 3], metadata });
    await secure.service.call('POST', '/collections/c/vectors', { body: { vectors } });
    const session = await openSession(secure.url, { ca });
    const stream = beginOverHttp2(session, {
      ...QUERY,
      body: '{"vector":[1,2,3],"top_k":1000,"include_metadata":true}',
    });
    await once(stream, 'response');
    const { arrived, release } = holdQueries(secure.service);
    const running = overHttp1(secure.port, QUERY, { ca });
    await arrived;
    const stopping = stopApp(secure.service.app, { deadlineMs: 120_000 });
    let length = 0;
    for await (const chunk of stream) {
      length += chunk.length;
      // The client reads the first third slowly, while the other reply is sent.
      if (length < 5_000_000) await new Promise((resolve) => setTimeout(resolve, 2));
      else release();
    }
    assert.ok(length > 16_000_000, `${length}`);
    const { status, headers } = await running;
    assert.deepEqual([status, headers.connection], [200, 'close']);
    await stopping;
  });

  it('cuts off unfinished requests at the deadline, and idle connections', async () => {
    const secure = await startSecureService();
    const ca = secure.authority.cert;
    const session = await openSession(secure.url, { ca });
    const { arrived, release } = holdQueries(secure.service);
    const outcome = assert.rejects(overHttp2(session, QUERY));
    await arrived;
    const halfOpen = connectSocket(secure.port, '127.0.0.1');
    await once(halfOpen, 'connect');
    const silent = await handshake(secure.port, { ca });
    const gone = Promise.all([halfOpen, silent].map((socket) => once(socket.resume(), 'close')));
    const startMs = performance.now();
    await stopApp(secure.service.app, { deadlineMs: 100 });
    const stoppedMs = performance.now() - startMs;
    assert.ok(stoppedMs >= 90 && stoppedMs < 60_000, `${stoppedMs}`);
    await Promise.all([outcome, gone]);
    release();
  });
});

describe('TLS files', () => {
  it('are reloaded when they are replaced, unless the new ones do not match', async () => {
    const secure = await startSecureService();
    const ca = [secure.authority.cert];
    const session = await openSession(secure.url, { ca });
    const first = await shownSerial(secure.port, ca);
    const second = await issueForServer(secure.authority);
    await writeFiles(secure.folder, second);
    await until(async () => (await shownSerial(secure.port, ca)) !== first);
    const renewed = await shownSerial(secure.port, ca);
    assert.equal((await overHttp2(session, QUERY)).status, 200, 'open connections stay');
    await assert.rejects(handshake(secure.port, { ca, maxVersion: 'TLSv1.2' }), /protocol version/);

    const foreign = await issueForServer(await createAuthority());
    await writeFile(join(secure.folder, 'key.pem'), foreign.key);
    await until(() => secure.log.some(({ level }) => level === 'error'));
    const line = secure.log.find(({ level }) => level === 'error');
    assert.match(String(line?.details.detail), /key\.pem does not match/);
    assert.equal(await shownSerial(secure.port, ca), renewed);

    await writeFiles(secure.folder, await issueForServer(secure.authority));
    await until(async () => (await shownSerial(secure.port, ca)) !== renewed);
    session.destroy();
    await secure.close();
  });

  it('are reloaded when a symbolic link is replaced, as by Kubernetes', async () => {
    const secure = await startSecureService();
    const folder = join(secure.folder, 'mounted');
    const [one, two] = [
      await issueForServer(secure.authority),
      await issueForServer(secure.authority),
    ];
    for (const [version, files] of [['v1', one] as const, ['v2', two] as const]) {
      await mkdir(join(folder, version), { recursive: true });
      await writeFiles(join(folder, version), files);
    }
    await symlink('v1', join(folder, '..data'));
    for (const name of ['cert.pem', 'key.pem']) {
      await symlink(`..data/${name}`, join(folder, name));
    }
    const paths = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem'), clientCa: null };
    const tls = await openTls({ paths, clock: systemClock, logger: silentLogger });
    let reloadCount = 0;
    tls.onReload(() => reloadCount++);
    assert.equal(tls.material.cert.toString(), one.cert);
    await symlink('v2', join(folder, '..data_new'));
    await rename(join(folder, '..data_new'), join(folder, '..data'));
    await rm(join(folder, 'v1'), { recursive: true });
    await until(() => tls.material.cert.toString() === two.cert);
    assert.equal(reloadCount, 1);
    tls.close();
    await secure.close();
  });

  it('are refused at startup with their name and the problem', async () => {
    const secure = await startSecureService();
    const { folder, authority } = secure;
    const cert = join(folder, 'cert.pem');
    const key = join(folder, 'key.pem');
    const other = join(folder, 'other.pem');
    const open = (paths: { cert?: string; key?: string; clientCa?: string | null }) =>
      openTls({
        paths: { cert, key, clientCa: null, ...paths },
        clock: systemClock,
        logger: silentLogger,
      });
    const cases: [content: string | null, paths: object, expected: RegExp][] = [
      [null, { cert: other }, /TLS certificate .*other\.pem cannot be read: no such file/],
      [null, { cert: folder }, /cannot be read: it is a directory/],
      ['hello', { cert: other }, /other\.pem contains no certificate; expected PEM/],
      [
        '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
        { cert: other },
        /other\.pem is invalid: certificate 1 of 1/,
      ],
      ['hello', { key: other }, /TLS key .*other\.pem cannot be parsed; expected PEM/],
      [
        '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n',
        { key: other },
        /other\.pem is encrypted/,
      ],
      [
        (await issueForServer(authority)).key,
        { key: other },
        /other\.pem does not match the first certificate in .*cert\.pem; .*"CN=localhost"/,
      ],
      ['hello', { clientCa: other }, /certificate authority .*other\.pem contains no certificate/],
    ];
    for (const [content, paths, expected] of cases) {
      if (content !== null) await writeFile(other, content);
      await assert.rejects(open(paths), { code: 'configuration_invalid', message: expected });
    }
    await secure.close();
  });

  it('that have expired are used, with a warning in the log', async () => {
    const secure = await startSecureService();
    await writeFiles(
      secure.folder,
      await issueForServer(secure.authority, { notAfter: new Date(Date.now() - 60_000) }),
    );
    const log: Parameters<typeof recordingLogger>[0] = [];
    const paths = { cert: join(secure.folder, 'cert.pem'), key: join(secure.folder, 'key.pem') };
    const tls = await openTls({
      paths: { ...paths, clientCa: null },
      clock: systemClock,
      logger: recordingLogger(log),
    });
    assert.match(log.find(({ level }) => level === 'warn')?.message ?? '', /has expired/);
    tls.close();
    await secure.close();
  });
});
