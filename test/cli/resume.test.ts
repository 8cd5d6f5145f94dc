// An import that is interrupted, killed, or loses its server: what is told, what is kept, and where
// the next run goes on.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../../src/client/client.js';
import { startTestServer, type TestServer } from '../support/server-in-process.js';
import { type CommandResult, type RunningCommand, start } from './command.js';

const ROWS = 12_000;
const DIMENSION = 1_024;

let server: TestServer;
let proxy: Server;
let proxyUrl: string;
let folder: string;
/** Streams that are let through before the proxy does what a test asks for. */
let streamsLeft = Number.POSITIVE_INFINITY;
let onLast: (() => void) | undefined;

/** Between the command and the server, so that the moment of a break is known. */
function createProxy(): Server {
  return createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const isStream = request.headers['content-type']?.includes('arrow') === true;
    if (isStream && streamsLeft <= 0) {
      request.socket.destroy();
      return;
    }
    const passed = ['accept', 'content-type', 'idempotency-key'] as const;
    const reply = await fetch(server.url + request.url, {
      method: request.method!,
      headers: passed.flatMap((name) => {
        const value = request.headers[name];
        return typeof value === 'string' ? [[name, value] as [string, string]] : [];
      }),
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const text = await reply.text();
    const isLast = isStream && --streamsLeft === 0;
    if (isLast) {
      onLast?.();
      // A signal is to arrive before the reply, so that no more than the next part is sent.
      await sleep(100);
    }
    response.writeHead(reply.status, { 'content-type': reply.headers.get('content-type')! });
    response.end(text);
  });
}

before(async () => {
  server = await startTestServer();
  proxy = createProxy();
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  folder = mkdtempSync(join(tmpdir(), 'sagitta-resume-'));
  // fbin: 49 MB, so three parts.
  const values = new Float32Array(ROWS * DIMENSION);
  for (let row = 0; row < ROWS; row++) values[row * DIMENSION] = row + 1;
  const header = Int32Array.of(ROWS, DIMENSION);
  writeFileSync(path('rows.fbin'), Buffer.concat([bytesOf(header), bytesOf(values)]));
});
after(async () => {
  proxy.closeAllConnections();
  proxy.close();
  await server.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  streamsLeft = Number.POSITIVE_INFINITY;
  onLast = undefined;
});

const path = (name: string): string => join(folder, name);
const bytesOf = ({ buffer }: Float32Array | Int32Array): Buffer =>
  Buffer.from(buffer as ArrayBuffer);

function startImport(collection: string, ...options: readonly string[]): RunningCommand {
  return start(['import', 'rows.fbin', '-c', collection, '--metric', 'dot', ...options], {
    cwd: folder,
    env: { SAGITTA_URL: proxyUrl, XDG_STATE_HOME: path('state') },
  });
}

async function finishImport(
  collection: string,
  ...options: readonly string[]
): Promise<{ rows: number; resumed_rows: number; inserted: number }> {
  const { code, stdout, stderr } = await startImport(collection, '--json', ...options).ended;
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as { rows: number; resumed_rows: number; inserted: number };
}

async function countOf(collection: string): Promise<number> {
  return (await createClient({ baseUrl: server.url }).collections.get(collection)).vector_count;
}

const statesLeft = (): string[] => {
  try {
    return readdirSync(path('state/sagitta/imports')).filter((name) => name.endsWith('.json'));
  } catch {
    return [];
  }
};

it('Ctrl-C ends at a known row, and the same command goes on from there', async () => {
  streamsLeft = 1;
  const command = startImport('interrupted');
  onLast = () => {
    streamsLeft = Number.POSITIVE_INFINITY;
    command.signal('SIGINT');
  };
  const { code, stdout, stderr } = await command.ended;
  assert.equal(code, 130, stderr);
  const told = /interrupted after ([\d ]+) rows; the same command goes on from there/.exec(stderr);
  const count = Number(told?.[1]?.replaceAll(' ', ''));
  assert.ok(count > 0 && count < ROWS, stderr);
  assert.match(stdout, /rows in .* into interrupted/);
  assert.equal(await countOf('interrupted'), count);

  const second = startImport('interrupted');
  const result = await second.ended;
  assert.equal(result.code, 0, result.stderr);
  assert.ok(result.stderr.includes('resuming at row '), result.stderr);
  assert.match(result.stdout, /after [\d ]+ of an earlier run\n$/);
  // Rows without an id have got the same ones, or there would be more.
  assert.equal(await countOf('interrupted'), ROWS);
  assert.deepEqual(statesLeft(), []);
});

it('an import that is killed goes on behind the last acknowledged row', async () => {
  streamsLeft = 1;
  const command = startImport('killed');
  const ended = new Promise<CommandResult>((resolve) => {
    onLast = () => {
      // The reply is on its way: once the note is written, the rest is lost.
      const wait = async (): Promise<void> => {
        while (statesLeft().length === 0) await sleep(10);
        command.signal('SIGKILL');
        resolve(await command.ended);
      };
      void wait();
    };
  });
  assert.equal((await ended).code, null);
  streamsLeft = Number.POSITIVE_INFINITY;
  const { rows, resumed_rows } = await finishImport('killed');
  assert.ok(resumed_rows > 0, `${resumed_rows}`);
  assert.equal(rows + resumed_rows, ROWS);
  assert.equal(await countOf('killed'), ROWS);
});

it('a server that goes away for a moment costs a pause', async () => {
  streamsLeft = 1;
  onLast = () => {
    setTimeout(() => {
      streamsLeft = Number.POSITIVE_INFINITY;
    }, 300);
  };
  const { rows, inserted } = await finishImport('pause');
  assert.deepEqual([rows, inserted], [ROWS, ROWS]);
});

it('another file, collection or option is another import; so is --restart', async () => {
  const stop = async (...options: readonly string[]): Promise<void> => {
    streamsLeft = 1;
    const command = startImport('again', ...options);
    onLast = () => {
      streamsLeft = Number.POSITIVE_INFINITY;
      command.signal('SIGINT');
    };
    assert.equal((await command.ended).code, 130);
  };
  await stop('--row-ids');
  assert.equal((await finishImport('again', '--row-ids', '--restart')).resumed_rows, 0);

  await stop('--row-ids');
  const now = new Date();
  utimesSync(path('rows.fbin'), now, new Date(now.getTime() - 60_000));
  assert.equal((await finishImport('again', '--row-ids')).resumed_rows, 0);

  await stop('--row-ids');
  await createClient({ baseUrl: server.url }).collections.delete('again');
  const { resumed_rows, inserted } = await finishImport('again', '--row-ids');
  assert.deepEqual([resumed_rows, inserted], [0, ROWS]);

  await stop('--row-ids', '--no-resume');
  assert.deepEqual(statesLeft(), []);
});

it('a note that is no note is an import from the first row', async () => {
  const [before] = [statesLeft()];
  assert.deepEqual(before, []);
  streamsLeft = 1;
  const command = startImport('note', '--row-ids');
  onLast = () => {
    streamsLeft = Number.POSITIVE_INFINITY;
    command.signal('SIGINT');
  };
  await command.ended;
  const [name] = statesLeft();
  const note = path(join('state/sagitta/imports', name!));
  assert.match(readFileSync(note, 'utf8'), /"position":\{"file":0,"row":\d+,"total":\d+\}/);
  writeFileSync(note, '{"identity":');
  assert.equal((await finishImport('note', '--row-ids')).resumed_rows, 0);
});
