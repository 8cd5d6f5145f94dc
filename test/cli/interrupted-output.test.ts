// Signals while an output file is being written: no file is left behind, and the command says so.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder, start } from './command.js';

let server: Server;
let url: string;
let folder: Awaited<ReturnType<typeof makeFolder>>;

/** A server whose streams begin and never end. */
before(async () => {
  folder = await makeFolder();
  const begin = (response: ServerResponse): void => {
    const headers = { 'content-type': 'application/x-ndjson', 'sagitta-sequence': '1' };
    response.writeHead(200, headers);
    response.write('{"id":"a","values":[1,2],"metadata":{}}\n');
  };
  server = createServer((request, response) => {
    request.resume();
    if (/\/(export|join|batch)/.test(request.url!)) {
      begin(response);
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"id":"c","dimension":2,"vector_count":9,"metric":"dot","created_at":"x"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  writeFileSync(join(folder.path, 'queries.ndjson'), '{"values":[1,2]}\n');
});
after(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await folder.remove();
});

for (const [args, signal] of [
  [['export', 'c'], 'SIGINT'],
  [['join', 'c', '-k', '1'], 'SIGTERM'],
  [['query', 'c', '--file', 'queries.ndjson'], 'SIGINT'],
] as const) {
  it(`${signal} in ${args[0]} leaves no file behind, and says so`, async () => {
    const output = join(folder.path, 'out.ndjson');
    const command = start([...args, '-o', output, '--url', url], { cwd: folder.path });
    const isBegun = (): boolean =>
      readdirSync(folder.path).some((name) => name.startsWith('out.ndjson.unfinished-'));
    let isRunning = true;
    void command.ended.then(() => {
      isRunning = false;
    });
    while (isRunning && !isBegun()) await sleep(20);
    assert.ok(isBegun());
    command.signal(signal);
    const { code, stderr } = await command.ended;
    assert.equal(code, 130, stderr);
    assert.match(stderr, /^sagitta: interrupted; nothing was written to .*out\.ndjson$/m);
    assert.deepEqual(readdirSync(folder.path), ['queries.ndjson']);
    assert.equal(existsSync(output), false);
  });
}
