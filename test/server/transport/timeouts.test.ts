import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS, type Limits } from '../../../src/common/limits.js';
import { silentLogger } from '../../../src/common/logger.js';
import { eventually } from '../../support/waiting.js';
import { createFilledService } from '../harness.js';
import { exchange, headOf, listen, pause, repliesIn } from '../wire.js';

/** A running service and the warnings in its log. */
async function start(limits: Partial<Limits>) {
  const warnings: string[] = [];
  const service = await createFilledService({
    limits: { ...DEFAULT_LIMITS, ...limits },
    logger: {
      ...silentLogger,
      warn: (details: object, message: string) => {
        warnings.push(`${message} ${JSON.stringify(details)}`);
      },
    },
  });
  return { service, port: await listen(service), warnings };
}

const GET = headOf('GET', '/collections/c');
const query = (headers: Record<string, string | number>) =>
  headOf('POST', '/collections/c/query', { 'content-type': 'application/json', ...headers });
const BODY = '{"vector":[1,2,3]}';

const matchCountIn = (text: string) => JSON.parse(repliesIn(text)[0]?.body ?? '').matches.length;
const codeOf = (text: string): string => JSON.parse(repliesIn(text)[0]?.body ?? '').code;

async function timed<Result>(work: Promise<Result>): Promise<[Result, number]> {
  const startMs = performance.now();
  return [await work, performance.now() - startMs];
}

/** Longer than any delay of a busy machine. */
const HANG_MS = 60_000;

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

  it('are cut off when they stop reading a reply, and only then', { timeout: 90_000 }, async () => {
    const stalledMsMax = 300;
    const { service, port } = await start({ stalledMsMax });
    const metadata = { text: 'x'.repeat(40_000) };
    const vectors = new Array(400).fill({ values: [1, 2, 3], metadata });
    await service.call('POST', '/collections/c/vectors', { body: { vectors } });
    const body = '{"vector":[1,2,3],"top_k":1000,"include_metadata":true}';
    const large = query({ 'content-length': body.length, connection: 'close' }) + body;
    const ask = (onFirst: (socket: Socket) => void) => {
      let closedAtMs = 0;
      const gone = new Promise<void>((resolve) => {
        service.app.server.once('connection', (socket) => {
          socket.once('close', () => {
            closedAtMs = performance.now();
            resolve();
          });
        });
      });
      const text = exchange(port, (socket) => {
        socket.write(large);
        socket.once('data', () => onFirst(socket));
      }).catch(() => '');
      return { gone, text, closedAtMs: () => closedAtMs };
    };

    // The search takes longer than the stall timeout, which does not apply to it.
    service.hooks.beforeSearch = () => pause(2.5 * stalledMsMax);
    const slowSearch = ask(() => {});
    assert.equal(matchCountIn(await slowSearch.text), 403);

    // A client that reads in portions, in all for longer than the stall timeout. The portions are
    // large, since socket buffers hide small ones.
    service.hooks.beforeSearch = () => Promise.resolve();
    const sipping = ask((socket) => {
      let taken = 0;
      socket.on('data', (chunk) => {
        taken += chunk.length;
        if (taken < 2_000_000) return;
        taken = 0;
        socket.pause();
        setTimeout(() => socket.resume(), 100);
      });
    });
    assert.equal(matchCountIn(await sipping.text), 403);

    let pausedAtMs = 0;
    const stalled = ask((socket) => {
      socket.pause();
      pausedAtMs = performance.now();
      void stalled.gone.then(() => socket.destroy());
    });
    await stalled.gone;
    const stalledMs = stalled.closedAtMs() - pausedAtMs;
    assert.ok(stalledMs >= 0.9 * stalledMsMax && stalledMs < HANG_MS, `${stalledMs}`);
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
    // Refused for its headers, content type or length: no 100 Continue, and the connection is closed,
    // since the client may send the body or not.
    for (const [head, status] of [
      [headOf('POST', '/collections/c/nothing', { ...expecting, 'content-length': 10 }), 404],
      [headOf('POST', '/collections/c/query', { ...expecting, 'content-length': 10 }), 415],
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
