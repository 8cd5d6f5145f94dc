// Ten thousand idle connections, or as many as the system allows a process: the server continues to answer, uses a few
// kilobytes of memory per connection, and enforces its limit of connections.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createCaller, startServerProcess } from '../../support/server-process.js';

const WANTED = 10_000;
/** Descriptors that client and server need for everything else. */
const SPARE_DESCRIPTORS = 300;
const OPENED_AT_ONCE = 200;
const BYTES_A_CONNECTION_MAX = 32 * 1024;

it('a server answers requests beside thousands of idle connections', async (t) => {
  const descriptors = Number(execFileSync('sh', ['-c', 'ulimit -n']).toString()) || WANTED * 2;
  const count = Math.min(WANTED, descriptors - SPARE_DESCRIPTORS);
  assert.ok(count > 100, `${descriptors} descriptors leave room for ${count} connections`);
  if (count < WANTED) t.diagnostic(`${count} of ${WANTED}: the system's bound`);
  const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-idle-'));
  const server = await startServerProcess({
    dataDirectory,
    settings: {
      SAGITTA_ENGINE: 'reference',
      SAGITTA_THREADS: '1',
      SAGITTA_CONNECTIONS_MAX: String(count + 10),
    },
  });
  const { call, close } = createCaller(server.url, 1);
  const residentBytes = async () => {
    const { text } = await call('GET', '/metrics');
    return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)![1]);
  };
  const sockets: Socket[] = [];
  try {
    await call('GET', '/livez');
    const before = await residentBytes();
    while (sockets.length < count) {
      const batch = Math.min(OPENED_AT_ONCE, count - sockets.length);
      sockets.push(...(await Promise.all(Array.from({ length: batch }, () => open(server.url)))));
    }
    const perConnection = ((await residentBytes()) - before) / count;
    t.diagnostic(`${count} connections, ${Math.round(perConnection)} bytes each`);
    assert.ok(perConnection < BYTES_A_CONNECTION_MAX, `${perConnection} bytes a connection`);
    const startMs = performance.now();
    for (let i = 0; i < 20; i++) assert.equal((await call('GET', '/v1/limits')).status, 200);
    assert.ok(performance.now() - startMs < 60_000);

    // Beyond the limit, a connection is accepted and closed at once; open ones stay.
    const beyond = await Promise.all(Array.from({ length: 20 }, () => isCut(server.url)));
    assert.ok(beyond.filter(Boolean).length >= 9, `${beyond}`);
    assert.equal((await call('GET', '/v1/limits')).status, 200);
    assert.ok(sockets.every((socket) => !socket.destroyed));
  } finally {
    for (const socket of sockets) socket.destroy();
    close();
    await server.stop();
    await rm(dataDirectory, { recursive: true });
  }
});

function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve(socket));
    socket.on('error', reject);
  });
}

/** Whether the server closes a new connection at once. */
async function isCut(url: string): Promise<boolean> {
  const socket = await open(url);
  let isClosed = false;
  socket.on('close', () => {
    isClosed = true;
  });
  socket.resume();
  await sleep(300);
  socket.destroy();
  return isClosed;
}
