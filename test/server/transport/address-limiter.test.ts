import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, Socket } from 'node:net';
import { describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { silentLogger } from '../../../src/common/logger.js';
import { AddressLimiter } from '../../../src/server/transport/address-limiter.js';
import { eventually } from '../../support/waiting.js';
import { createFilledService, type Service } from '../harness.js';
import { startSecureService } from '../secure-service.js';
import { exchange, headOf, listen, repliesIn } from '../wire.js';

function createBounded(trustedProxies: string[] = []) {
  const bound = new AddressLimiter({ connectionsMax: 2, trustedProxies });
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

/** Gives every new connection a remote address. */
function pretendAddress({ app }: Service, address: string): void {
  app.server.prependListener('connection', (socket: Socket) => {
    Object.defineProperty(socket, 'remoteAddress', { value: address });
  });
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
});
