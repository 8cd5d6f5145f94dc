import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ClientHttp2Session, ServerHttp2Session } from 'node:http2';
import { createServer, Socket } from 'node:net';
import { describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { silentLogger } from '../../../src/common/logger.js';
import {
  AddressLimiter,
  RESETS_MAX,
  ResetCount,
} from '../../../src/server/transport/address-limiter.js';
import { eventually } from '../../support/waiting.js';
import { createFilledService, type Service } from '../harness.js';
import { openSession, startSecureService } from '../secure-service.js';
import { exchange, headOf, listen, repliesIn } from '../wire.js';

function createBounded(trustedProxies: string[] = [], nowMs = () => 0) {
  const bound = new AddressLimiter({ connectionsMax: 2, trustedProxies, nowMs });
  const server = createServer();
  bound.attach(server);
  let refusedCount = 0;
  server.on('drop', () => refusedCount++);
  return {
    bound,
    refusedCount: () => refusedCount,
    connect(address: string | undefined): Socket {
      const socket = new Socket();
      Object.defineProperty(socket, 'remoteAddress', { value: address });
      server.emit('connection', socket);
      return socket;
    },
  };
}

describe('the address limiter', () => {
  it('limits the connections of each address separately', async () => {
    const { bound, connect, refusedCount } = createBounded();
    const [first, second] = [connect('192.0.2.1'), connect('::ffff:192.0.2.1')];
    assert.ok(connect('192.0.2.1').destroyed);
    assert.ok(connect('::ffff:192.0.2.1').destroyed);
    assert.equal(refusedCount(), 2);
    const other = connect('192.0.2.2');
    assert.ok(!first.destroyed && !second.destroyed && !other.destroyed);
    assert.equal(bound.addressCount, 2);
    first.destroy();
    await once(first, 'close');
    assert.ok(!connect('192.0.2.1').destroyed, 'there is room again');
    assert.ok(connect('192.0.2.1').destroyed);
  });

  it('forgets connections that are closed', async () => {
    const { bound, connect } = createBounded();
    const sockets = ['192.0.2.1', '192.0.2.1', '2001:db8::1'].map(connect);
    const refused = connect('192.0.2.1');
    assert.ok(refused.destroyed);
    assert.equal(bound.addressCount, 2);
    for (const socket of sockets) socket.destroy();
    await eventually('all are forgotten', () => bound.addressCount === 0);
  });

  it('refuses an address that keeps resetting streams, until its resets have decayed', () => {
    let nowMs = 0;
    const { bound, connect, refusedCount } = createBounded(['10.1.0.0/16'], () => nowMs);
    const attacker = bound.clientOf(connect('192.0.2.1'))!;
    bound.addResets(attacker, 5 * RESETS_MAX);
    assert.ok(!bound.isResetting(attacker), 'as many as five sessions may reset');
    bound.addResets(attacker, 1);
    assert.ok(bound.isResetting(attacker));
    assert.ok(connect('::ffff:192.0.2.1').destroyed);
    assert.ok(!connect('192.0.2.2').destroyed);
    assert.equal(refusedCount(), 1);
    nowMs += 20;
    assert.ok(!connect('192.0.2.1').destroyed, '100 resets a second are allowed');
    bound.addResets(attacker, 1_000 * RESETS_MAX);
    nowMs += 39_000;
    assert.ok(bound.isResetting(attacker));
    nowMs += 1_001;
    assert.ok(!bound.isResetting(attacker), 'it is refused for 40 seconds at most');
    assert.equal(bound.clientOf(connect('10.1.2.3')), null, 'proxies are exempt');
  });

  it('counts the resets of a session, which decay', () => {
    let nowMs = 0;
    const resets = new ResetCount(() => nowMs);
    resets.add(RESETS_MAX + 1);
    assert.equal(resets.current, RESETS_MAX + 1);
    nowMs += 1_000;
    assert.equal(resets.current, RESETS_MAX - 19);
    nowMs += 60_000;
    assert.equal(resets.current, 0);
  });

  it('counts the connections of an IPv6 /64 network together', () => {
    const { connect } = createBounded();
    connect('2001:db8:0:1::1');
    connect('2001:db8:0:1:ffff:ffff:ffff:ffff');
    assert.ok(connect('2001:db8:0:1:2::').destroyed);
    assert.ok(!connect('2001:db8:0:2::1').destroyed);
    assert.ok(!connect('2001:db8::1').destroyed);
    assert.ok(!connect('2001:db8::2').destroyed);
    assert.ok(connect('2001:db8:0:0:1::').destroyed);
    assert.ok(!connect('fe80::1%eth0').destroyed);
  });

  it('exempts loopback addresses, trusted proxies and closed sockets', () => {
    const { bound, connect, refusedCount } = createBounded([
      '10.1.0.0/16',
      '2001:db8::7',
      '192.0.2.9',
    ]);
    const addresses = ['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1', '10.1.2.3'];
    for (const address of [...addresses, '2001:db8::7', '::ffff:192.0.2.9', undefined]) {
      for (let i = 0; i < 5; i++) assert.ok(!connect(address).destroyed, address);
    }
    assert.deepEqual([refusedCount(), bound.addressCount], [0, 0]);
    for (let i = 0; i < 2; i++) connect('10.2.0.1');
    assert.ok(connect('10.2.0.1').destroyed);
  });
});

/** Gives every new connection a remote address, also after its TLS handshake. */
function pretendAddress({ app }: Service, address: string): void {
  for (const event of ['connection', 'secureConnection']) {
    app.server.prependListener(event, (socket: Socket) => {
      Object.defineProperty(socket, 'remoteAddress', { value: address });
    });
  }
}

describe('a service with a limit on the connections per address', { timeout: 60_000 }, () => {
  const limits = { ...DEFAULT_LIMITS, connectionsPerAddressMax: 1 };

  it('closes further connections at once and logs it', async () => {
    const warnings: string[] = [];
    const service = await createFilledService({
      limits,
      logger: {
        ...silentLogger,
        warn: (details: object) => {
          warnings.push(JSON.stringify(details));
        },
      },
    });
    pretendAddress(service, '192.0.2.1');
    const port = await listen(service);
    const get = (connection: string) => headOf('GET', '/collections/c', { connection });
    let kept: Socket | undefined;
    const first = exchange(port, (socket) => {
      kept = socket;
      socket.write(get('keep-alive'));
    });
    await eventually('it is answered', () => (kept?.bytesRead ?? 0) > 0);
    const refused = await exchange(port, (socket) => socket.write(get('close'))).catch(() => '');
    assert.equal(refused, '');
    assert.deepEqual(warnings, [
      '{"connections_refused":1,"connections_max":20000,"connections_per_address_max":1}',
    ]);
    kept?.destroy();
    assert.equal(repliesIn(await first)[0]?.status, 200);
    await eventually('there is room again', async () => {
      const text = await exchange(port, (socket) => socket.write(get('close'))).catch(() => '');
      return repliesIn(text)[0]?.status === 200;
    });
    await service.close();
  });

  it('closes them before the TLS handshake', async () => {
    const secure = await startSecureService({ limits });
    pretendAddress(secure.service, '192.0.2.1');
    const open = () =>
      connectTls({ host: '127.0.0.1', port: secure.port, ca: secure.authority.cert });
    const first = open();
    await once(first, 'secureConnect');
    await assert.rejects(once(open(), 'secureConnect'), /disconnected|ECONNRESET/);
    assert.ok(!first.destroyed);
    first.destroy();
    await eventually('there is room again', async () => {
      const socket = open();
      const isTaken = await once(socket, 'secureConnect').then(
        () => true,
        () => false,
      );
      socket.destroy();
      return isTaken;
    });
    await secure.close();
  });

  it('closes sessions of an address that resets too many streams, and refuses the next', async () => {
    const secure = await startSecureService({
      limits: { ...DEFAULT_LIMITS, connectionsPerAddressMax: 100 },
      // The resets do not decay.
      nowMs: () => 1_000,
    });
    pretendAddress(secure.service, '192.0.2.1');
    const { server } = secure.service.app;
    let resetCount = 0;
    let closedCount = 0;
    server.on('session', (session: ServerHttp2Session) => {
      session.on('close', () => closedCount++);
      session.on('stream', (stream) => stream.on('close', () => resetCount++));
    });
    const open = () => openSession(secure.url, { ca: secure.authority.cert });
    const reset = (session: ClientHttp2Session, count: number) => {
      for (let i = 0; i < count; i++) {
        const stream = session.request({ ':path': '/livez' });
        stream.on('error', () => {});
        stream.close(8);
      }
    };
    const sessions = [];
    // Each session stays below its own limit of 200.
    for (let i = 1; i <= 20; i++) {
      if (i % 2 === 1) sessions.push(await open());
      reset(sessions.at(-1)!, 50);
      await eventually('they are counted', () => resetCount === 50 * i);
    }
    assert.equal(closedCount, 0);
    reset(sessions[0]!, 1);
    await eventually('the session is closed', () => closedCount === 1);
    const socket = connectTls({ host: '127.0.0.1', port: secure.port, ca: secure.authority.cert });
    await assert.rejects(once(socket, 'secureConnect'), /disconnected|ECONNRESET/);
    for (const session of sessions) session.destroy();
    await secure.close();
  });
});
