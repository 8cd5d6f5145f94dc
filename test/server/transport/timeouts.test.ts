import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { eventually } from '../../support/waiting.js';
import { exchange, headOf, repliesIn } from '../wire.js';
import { HANG_MS, query, start } from './slow-clients.js';

const GET = headOf('GET', '/collections/c');
const BODY = '{"vector":[1,2,3]}';
const codeOf = (text: string): string => JSON.parse(repliesIn(text)[0]?.body ?? '').code;

async function timed<Result>(work: Promise<Result>): Promise<[Result, number]> {
  const startMs = performance.now();
  return [await work, performance.now() - startMs];
}

describe('slow clients', () => {
  it('have a limited time for the headers of a request', async () => {
    const { service, port } = await start({ headerMsMax: 200 });
    const [text, ms] = await timed(
      exchange(port, (socket) =>
        socket.write('GET /collections/c HTTP/1.1\r\nhost: localhost\r\n'),
      ),
    );
    assert.equal(codeOf(text), 'deadline_exceeded');
    assert.match(text, /^HTTP\/1\.1 504 .*\r\nx-request-id: /s);
    assert.ok(ms >= 190 && ms < HANG_MS, `${ms}`);
    // The same for a client that sends nothing at all.
    const [nothing, silentMs] = await timed(exchange(port, () => {}));
    assert.equal(codeOf(nothing), 'deadline_exceeded');
    assert.ok(silentMs >= 190 && silentMs < HANG_MS, `${silentMs}`);
    await service.close();
  });

  it('have a limited time for a whole request', async () => {
    const { service, port } = await start({ headerMsMax: 150, arrivalMsMax: 300 });
    let timer: NodeJS.Timeout | undefined;
    const [text, ms] = await timed(
      exchange(port, (socket) => {
        socket.write(query({ 'content-length': 1_000 }));
        // The body makes progress all the time.
        timer = setInterval(() => socket.write(' '), 20);
      }),
    );
    clearInterval(timer);
    assert.equal(codeOf(text), 'deadline_exceeded');
    assert.ok(ms >= 290 && ms < HANG_MS, `${ms}`);
    await service.close();
  });

  it('may keep an idle connection for a limited time', async () => {
    const { service, port } = await start({ keepAliveMs: 300, stalledMsMax: 100 });
    const [text, ms] = await timed(
      exchange(port, (socket) => {
        socket.write(GET);
        setTimeout(() => socket.write(GET), 100);
      }),
    );
    assert.deepEqual(
      repliesIn(text).map(({ status }) => status),
      [200, 200],
    );
    assert.ok(ms >= 390 && ms < HANG_MS, `${ms}`);
    await service.close();
  });

  it('may keep no idle connection if the time is 0', async () => {
    const { service, port } = await start({ keepAliveMs: 0 });
    const [text, ms] = await timed(exchange(port, (socket) => socket.write(GET)));
    assert.equal(repliesIn(text)[0]?.status, 200);
    assert.ok(ms < HANG_MS, `${ms}`);
    await service.close();
  });
});

describe('connections', () => {
  it('are refused at once above the limit, with one log line', async () => {
    const { service, port, warnings } = await start({ connectionsMax: 3 });
    const kept: Socket[] = [];
    for (let i = 0; i < 3; i++) {
      const socket = connect(port, '127.0.0.1');
      kept.push(socket);
      let answered = false;
      socket.once('data', () => {
        answered = true;
      });
      socket.write(GET);
      await eventually('it is answered', () => answered);
    }
    for (let i = 0; i < 5; i++) {
      const text = await exchange(port, (socket) => socket.write(GET)).catch(() => '');
      assert.equal(text, '');
    }
    assert.deepEqual(warnings, [
      'connections refused: the limit of connections, in total or per address, is reached {"connections_refused":1,"connections_max":3,"connections_per_address_max":10000}',
    ]);
    kept[0]!.destroy();
    await eventually('there is room again', async () => {
      const text = await exchange(port, (socket) => {
        socket.write(headOf('GET', '/collections/c', { connection: 'close' }));
      }).catch(() => '');
      return repliesIn(text)[0]?.status === 200;
    });
    for (const socket of kept) socket.destroy();
    await service.close();
  });

  it('ignore expectations other than 100-continue', async () => {
    const { service, port } = await start({});
    const head = headOf('GET', '/collections/c', { expect: 'x', connection: 'close' });
    const replies = repliesIn(await exchange(port, (socket) => socket.write(head)));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200],
    );
    await service.close();
  });

  const JSON_TEN = { 'content-type': 'application/json', 'content-length': 10 };

  it('send 100 Continue only if the body will be read', async () => {
    const { service, port } = await start({ bodyBytesMax: 1_024 });
    const expecting = { expect: '100-continue' };
    const invited = await exchange(port, (socket) => {
      socket.write(query({ ...expecting, 'content-length': BODY.length, connection: 'close' }));
      socket.once('data', () => socket.write(BODY));
    });
    assert.deepEqual(
      repliesIn(invited).map(({ status }) => status),
      [100, 200],
    );
    // Refused for its headers, content type or length: no 100 Continue, and the connection is closed, since the client
    // may or may not send the body.
    for (const [head, status] of [
      [headOf('POST', '/collections/c/nothing', { ...expecting, 'content-length': 10 }), 404],
      [headOf('POST', '/collections/c/query', { ...expecting, 'content-length': 10 }), 415],
      [headOf('POST', '/collections/none/query', { ...expecting, ...JSON_TEN }), 404],
      [headOf('POST', '/collections/none/vectors', { ...expecting, ...JSON_TEN }), 404],
      [query({ ...expecting, 'content-length': 5_000 }), 413],
      [headOf('GET', '/collections/c', { ...expecting, 'content-length': 10 }), 200],
    ] as const) {
      const replies = repliesIn(await exchange(port, (socket) => socket.write(head)));
      assert.deepEqual(
        replies.map((reply) => reply.status),
        [status],
      );
      assert.match(replies[0]!.head, /\r\nconnection: close/i);
    }
    await service.close();
  });

  it('refuse a request with two lengths', async () => {
    const { service, port } = await start({});
    for (const headers of [
      { 'content-length': BODY.length, 'transfer-encoding': 'chunked' },
      { 'transfer-encoding': 'chunked, identity' },
      { 'content-length': '5, 6' },
    ]) {
      const text = await exchange(port, (socket) => {
        socket.write(`${query(headers)}0\r\n\r\n${GET}`);
      });
      const replies = repliesIn(text);
      assert.deepEqual(
        replies.map(({ status }) => status),
        [400],
        JSON.stringify(headers),
      );
    }
    await service.close();
  });

  it('do not parse the body of a GET as a request', async () => {
    const { service, port } = await start({});
    const smuggled = headOf('DELETE', '/collections/c');
    const text = await exchange(port, (socket) => {
      socket.write(headOf('GET', '/collections/c', { 'content-length': smuggled.length }));
      socket.write(smuggled);
      socket.write(headOf('GET', '/collections/c', { connection: 'close' }));
    });
    assert.deepEqual(
      repliesIn(text).map(({ status }) => status),
      [200, 200],
    );
    await service.close();
  });
});
