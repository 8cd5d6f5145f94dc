// Attacks on HTTP/2: streams that are reset as soon as they are opened, heads that never end, and frames that demand
// replies which the client does not read. The clients write raw frames, since no library sends them. Meanwhile the
// server answers other clients, and its memory remains bounded.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { ClientHttp2Session } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { createAuthority, issueForServer } from '../../support/certificates.js';
import { type ServerProcess, startServerProcess } from '../../support/server-process.js';
import { openSession, overHttp2, until, writeFiles } from '../secure-service.js';

const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const CONTINUATION = 9;
const ENHANCE_YOUR_CALM = 11;
const END_STREAM = 1;
const END_HEADERS = 4;
const FRAME_BYTES_MAX = 16_384;
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const CANCEL = Buffer.from([0, 0, 0, 8]);

const ATTACKERS = 4;
/** The budget of all attackers of one kind together. */
const GROWTH_BYTES_MAX = 128 * 1024 * 1024;
const ATTACK_MS_MAX = 1_500;
const CLOSED_MS_MAX = 1_500;
/** Generous, since attackers and other programs share the machine with the server. */
const ANSWER_MS_MAX = 30_000;

function frame(kind: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = kind;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** The HPACK head of a GET request without the dynamic table; each length fits a byte. */
function headOf(path: string): Buffer {
  const literal = (name: number, text: string) =>
    Buffer.concat([Buffer.from([name, text.length]), Buffer.from(text)]);
  return Buffer.concat([Buffer.from([0x82, 0x87]), literal(4, path), literal(1, 'localhost')]);
}

const NOTHING = new Uint8Array(0);
const openSettings = Buffer.concat([Buffer.from(PREFACE), frame(SETTINGS, 0, 0, NOTHING)]);

interface Attack {
  /** The bytes of a chunk, which are sent at once. */
  readonly chunk: (number: number) => Buffer;
  readonly chunkCount: number;
  /** Whether the server must close the connection or send GOAWAY, however slow the machine is. */
  readonly mustEnd?: boolean;
  /** Whether the attacker reads no answers. */
  readonly isDeaf?: boolean;
}

interface Outcome {
  /** The code of GOAWAY; null if the server sent none. */
  readonly code: number | null;
  readonly isClosed: boolean;
  readonly bytesSent: number;
}

describe('attacks over HTTP/2', () => {
  let folder: string;
  let ca: string;
  let server: ServerProcess;
  let neighbour: ClientHttp2Session;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sagitta-http2-'));
    const authority = await createAuthority();
    ca = authority.cert;
    await writeFiles(folder, await issueForServer(authority));
    server = await startServerProcess({
      dataDirectory: join(folder, 'data'),
      settings: {
        SAGITTA_ENGINE: 'reference',
        SAGITTA_THREADS: '1',
        SAGITTA_TLS_CERT: join(folder, 'cert.pem'),
        SAGITTA_TLS_KEY: join(folder, 'key.pem'),
      },
    });
    neighbour = await openSession(server.url, { ca });
    const first = await overHttp2(neighbour, {
      method: 'POST',
      path: '/v1/collections',
      body: JSON.stringify({ id: 'c', dimension: 4 }),
    });
    assert.equal(first.status, 200, first.text);
    // The first requests allocate long-lived memory.
    for (let i = 0; i < 200; i++) await ask();
  });
  after(async () => {
    neighbour?.destroy();
    await server?.stop();
    await rm(folder, { recursive: true });
  });

  const ask = () => overHttp2(neighbour, { path: '/v1/collections/c' });

  async function residentBytes(): Promise<number> {
    const { text } = await overHttp2(neighbour, { path: '/metrics' });
    return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)![1]);
  }

  async function attackOnce({ chunk, chunkCount, mustEnd, isDeaf }: Attack): Promise<Outcome> {
    const port = Number(new URL(server.url).port);
    const socket = connect({ host: '127.0.0.1', port, ca, ALPNProtocols: ['h2'] });
    await once(socket, 'secureConnect');
    socket.on('error', () => {});
    const received: Buffer[] = [];
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const listen = () => socket.on('data', (bytes: Buffer) => received.push(bytes));
    if (isDeaf !== true) listen();
    socket.write(openSettings);
    const deadline = performance.now() + (mustEnd === true ? 60_000 : ATTACK_MS_MAX);
    for (let number = 0; number < chunkCount && performance.now() < deadline; number++) {
      if (socket.destroyed) break;
      if (!socket.write(chunk(number))) await drained(socket, deadline);
    }
    if (isDeaf === true) listen();
    if (mustEnd === true) {
      await until(() => socket.destroyed || goodbyeIn(Buffer.concat(received)) !== null);
    } else {
      await Promise.race([closed, sleep(CLOSED_MS_MAX, null, { ref: false })]);
    }
    const outcome = {
      code: goodbyeIn(Buffer.concat(received)),
      isClosed: socket.destroyed,
      bytesSent: socket.bytesWritten,
    };
    socket.destroy();
    return outcome;
  }

  async function attack(t: TestContext, how: Attack): Promise<Outcome[]> {
    const before = await residentBytes();
    let isOver = false;
    const attacks = Promise.all(Array.from({ length: ATTACKERS }, () => attackOnce(how))).finally(
      () => {
        isOver = true;
      },
    );
    let worstMs = 0;
    let answerCount = 0;
    let refusedCount = 0;
    do {
      const startMs = performance.now();
      const { status, text } = await ask();
      worstMs = Math.max(worstMs, performance.now() - startMs);
      // A busy server may refuse, and must answer when the attack is over.
      if (status !== 200) {
        assert.equal(JSON.parse(text).code, 'overloaded', text);
        refusedCount++;
      }
      answerCount++;
    } while (!isOver);
    const outcomes = await attacks;
    await until(async () => (await ask()).status === 200);
    const growth = (await residentBytes()) - before;
    t.diagnostic(
      JSON.stringify({ first: outcomes[0], answerCount, refusedCount, worstMs, growth }),
    );
    assert.ok(worstMs < ANSWER_MS_MAX, `an answer took ${worstMs} ms`);
    assert.ok(growth < GROWTH_BYTES_MAX, `memory grew by ${growth} bytes`);
    return outcomes;
  }

  it('the server answers others while streams are reset as soon as they are opened', async (t) => {
    const head = headOf('/v1/collections/c');
    const opened = (number: number) => {
      const streamId = 2 * number + 1;
      return Buffer.concat([
        frame(HEADERS, END_STREAM | END_HEADERS, streamId, head),
        frame(RST_STREAM, 0, streamId, CANCEL),
      ]);
    };
    const chunk = (number: number) =>
      Buffer.concat(Array.from({ length: 50 }, (_, index) => opened(number * 50 + index)));
    const outcomes = await attack(t, { chunk, chunkCount: 100, mustEnd: true });
    for (const { isClosed, code } of outcomes) {
      // The last bytes may get lost when the connection is closed.
      assert.ok(code === ENHANCE_YOUR_CALM || (isClosed && code === null), `GOAWAY with ${code}`);
    }
  });

  it('a client may cancel a full set of requests at once, twice, and go on', async () => {
    const session = await openSession(server.url, { ca });
    for (let round = 0; round < 2; round++) {
      const streams = Array.from({ length: 95 }, () =>
        session.request({ ':path': '/v1/collections/c' }),
      );
      const closed = streams.map((stream) => once(stream, 'close'));
      for (const stream of streams) stream.close(8);
      await Promise.all(closed);
    }
    assert.equal((await overHttp2(session, { path: '/livez' })).status, 200);
    session.destroy();
  });

  it('the server answers others while heads never end', async (t) => {
    // An unknown field of half a frame, which is a valid part of a head.
    const value = Buffer.alloc(8_000, 'x');
    const field = Buffer.concat([Buffer.from([0, 1, 0x78, 0x7f, 0xc1, 0x3d]), value]);
    assert.ok(field.length < FRAME_BYTES_MAX);
    const first = frame(HEADERS, END_STREAM, 1, headOf('/v1/collections/c'));
    const more = frame(CONTINUATION, 0, 1, field);
    const outcomes = await attack(t, {
      chunk: (number) => (number === 0 ? first : more),
      chunkCount: 2_000,
    });
    for (const { isClosed } of outcomes) assert.ok(isClosed, 'the attacker is cut off');
  });

  it('the server answers others while heads never end and have no fields', async (t) => {
    const first = frame(HEADERS, END_STREAM, 1, headOf('/v1/collections/c'));
    const more = Buffer.concat(Array(1_000).fill(frame(CONTINUATION, 0, 1, NOTHING)));
    const outcomes = await attack(t, {
      chunk: (number) => (number === 0 ? first : more),
      chunkCount: 200,
    });
    for (const { isClosed } of outcomes) assert.ok(isClosed, 'the attacker is cut off');
  });

  for (const [what, kind, payload] of [
    ['settings', SETTINGS, NOTHING],
    ['pings', PING, new Uint8Array(8)],
  ] as const) {
    for (const isDeaf of [false, true]) {
      it(`the server answers others while ${what} flood it, with answers ${isDeaf ? 'unread' : 'read'}`, async (t) => {
        const many = Buffer.concat(Array(1_000).fill(frame(kind, 0, 0, payload)));
        const outcomes = await attack(t, { chunk: () => many, chunkCount: 500, isDeaf });
        for (const { isClosed } of outcomes) assert.ok(isClosed, 'the attacker is cut off');
      });
    }
  }
});

/** Resolves when the socket can be written to or is closed, or after the time limit. */
async function drained(socket: TLSSocket, deadline: number): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  const timer = setTimeout(() => over.abort(), Math.max(0, deadline - performance.now()));
  const events = ['drain', 'close'].map((event) => once(socket, event, { signal }));
  // They reject after the time limit or with the error of the socket.
  await Promise.race(events).catch(() => {});
  clearTimeout(timer);
  over.abort();
  await Promise.allSettled(events);
}

/** The code of the first GOAWAY among the frames. */
function goodbyeIn(bytes: Buffer): number | null {
  for (let at = 0; at + 9 <= bytes.length; ) {
    const length = bytes.readUIntBE(at, 3);
    if (bytes[at + 3] === GOAWAY && at + 17 <= bytes.length) return bytes.readUInt32BE(at + 13);
    at += 9 + length;
  }
  return null;
}
