// Imports that are interrupted, killed, or lose their server: what they report and keep, and where the next run
// resumes.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@sagitta/client';
import { startTestServer, type TestServer } from '../support/server-in-process.js';
import { type CommandResult, type RunningCommand, start } from './command.js';

const ROWS = 12_000;
const DIMENSION = 1_024;

let server: TestServer;
let proxy: Server;
let proxyUrl: string;
let folder: string;
/** Number of streams that the proxy forwards; it destroys the connections of later ones. */
let streamsLeft = Number.POSITIVE_INFINITY;
/** Called before the reply to the last stream is forwarded, which waits for its promise. */
let onLast: (() => Promise<void> | undefined) | undefined;
let onDestroyed: (() => void) | undefined;

/** A proxy between command and server that controls the moment of an interruption. */
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
      onDestroyed?.();
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
    if (isLast) await onLast?.();
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
  // 49 MB, so three uploads.
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
  onDestroyed = undefined;
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

/** Sends SIGINT and waits until the command has handled it. */
async function interrupt(command: RunningCommand): Promise<void> {
  command.signal('SIGINT');
  await command.waitForStderr(/interrupted; waiting/);
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

it('Ctrl-C stops at a known row, and the same command resumes there', async () => {
  streamsLeft = 1;
  const command = startImport('interrupted');
  onLast = () => {
    streamsLeft = Number.POSITIVE_INFINITY;
    return interrupt(command);
  };
  const { code, stdout, stderr } = await command.ended;
  assert.equal(code, 130, stderr);
  const found = /interrupted after ([\d,]+) rows; run the same command again to resume/.exec(
    stderr,
  );
  const count = Number(found?.[1]?.replaceAll(',', ''));
  assert.ok(count > 0 && count < ROWS, stderr);
  assert.match(stdout, /^Imported [\d,]+ rows into interrupted/);
  assert.equal(await countOf('interrupted'), count);

  const second = startImport('interrupted');
  const result = await second.ended;
  assert.equal(result.code, 0, result.stderr);
  assert.ok(result.stderr.includes('resuming at row '), result.stderr);
  assert.match(result.stdout, /after [\d,]+ rows of an earlier run\.$/m);
  // Generated ids are the same in both runs, or there would be more rows.
  assert.equal(await countOf('interrupted'), ROWS);
  assert.deepEqual(statesLeft(), []);
});

it('a killed import resumes after the last acknowledged row', async () => {
  streamsLeft = 1;
  const command = startImport('killed');
  const ended = new Promise<CommandResult>((resolve) => {
    onLast = () => {
      // The command is killed once it has written the journal after this reply.
      const wait = async (): Promise<void> => {
        while (statesLeft().length === 0) await sleep(10);
        command.signal('SIGKILL');
        resolve(await command.ended);
      };
      void wait();
      return undefined;
    };
  });
  assert.equal((await ended).code, null);
  streamsLeft = Number.POSITIVE_INFINITY;
  const { rows, resumed_rows } = await finishImport('killed');
  assert.ok(resumed_rows > 0, `${resumed_rows}`);
  assert.equal(rows + resumed_rows, ROWS);
  assert.equal(await countOf('killed'), ROWS);
});

it('an import survives a short outage of the server', async () => {
  streamsLeft = 1;
  let destroyedCount = 0;
  onDestroyed = () => {
    if (++destroyedCount === 3) streamsLeft = Number.POSITIVE_INFINITY;
  };
  const { rows, inserted } = await finishImport('pause');
  assert.deepEqual([rows, inserted], [ROWS, ROWS]);
});

it('a changed file, collection or option, or --restart, starts over', async () => {
  const stop = async (...options: readonly string[]): Promise<void> => {
    streamsLeft = 1;
    const command = startImport('again', ...options);
    onLast = () => {
      streamsLeft = Number.POSITIVE_INFINITY;
      return interrupt(command);
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

it('an invalid journal starts over', async () => {
  const [before] = [statesLeft()];
  assert.deepEqual(before, []);
  streamsLeft = 1;
  const command = startImport('journal', '--row-ids');
  onLast = () => {
    streamsLeft = Number.POSITIVE_INFINITY;
    return interrupt(command);
  };
  await command.ended;
  const [name] = statesLeft();
  const journal = path(join('state/sagitta/imports', name!));
  assert.match(readFileSync(journal, 'utf8'), /"progress":\{"file":0,"row":\d+,"total":\d+\}/);
  writeFileSync(journal, '{"identity":');
  assert.equal((await finishImport('journal', '--row-ids')).resumed_rows, 0);
});
