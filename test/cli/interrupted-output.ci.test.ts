// Output that a signal or a full disk interrupts: the command fails with a message and leaves no file behind. Each
// command runs in a separate process.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { packageFile } from '../../src/common/package-files.js';
import { eventually } from '../support/waiting.js';
import { makeFolder, start } from './command.js';

let server: Server;
let url: string;
let folder: Awaited<ReturnType<typeof makeFolder>>;

/** A server whose streams begin and never end. */
before(async () => {
  folder = await makeFolder();
  server = createServer((request, response) => {
    request.resume();
    if (/\/(export|join|batch)/.test(request.url!)) {
      const headers = { 'content-type': 'application/x-ndjson', 'sagitta-sequence': '1' };
      response.writeHead(200, headers);
      response.write('{"id":"a","values":[1,2],"metadata":{}}\n');
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    const description = request.url!.endsWith('/long') ? 'x'.repeat(100_000) : '';
    const rest = { dimension: 2, vector_count: 9, metric: 'dot', created_at: 'x' };
    response.end(JSON.stringify({ id: 'c', description, ...rest }));
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

it('a full disk behind stdout is reported in a line', {
  skip: existsSync('/dev/full') ? false : 'there is no /dev/full',
}, async () => {
  const main = packageFile('scripts/sagitta.cjs');
  const full = openSync('/dev/full', 'w');
  const command = spawn(process.execPath, [main, 'collections', 'show', 'c', '--url', url], {
    stdio: ['ignore', full, 'pipe'],
  });
  closeSync(full);
  let stderr = '';
  command.stderr!.setEncoding('utf8').on('data', (part: string) => {
    stderr += part;
  });
  const [code] = await once(command, 'close');
  assert.equal(code, 1);
  assert.match(stderr, /^sagitta: cannot write to stdout: ENOSPC: no space left on device.*\n$/);
});

it('a stdout that is a file gets the whole output, or the command fails', async () => {
  const main = packageFile('scripts/sagitta.cjs');
  const path = join(folder.path, 'show.json');
  // The system writes up to the size limit of files and reports an error only for the rest.
  for (const limit of ['unlimited', '8']) {
    const line = `trap '' XFSZ; ulimit -f ${limit}; exec "$0" "$@" > show.json`;
    const args = [process.execPath, main, 'collections', 'show', 'long', '--json', '--url', url];
    const command = spawn('sh', ['-c', line, ...args], {
      cwd: folder.path,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let stderr = '';
    command.stderr!.setEncoding('utf8').on('data', (part: string) => {
      stderr += part;
    });
    const [code] = await once(command, 'close');
    const { length } = readFileSync(path);
    rmSync(path);
    if (limit === 'unlimited') {
      assert.equal(code, 0, stderr);
      assert.ok(length > 100_000);
    } else {
      assert.equal(code, 1);
      assert.match(stderr, /^sagitta: cannot write to stdout: EFBIG/m);
      assert.ok(length > 0 && length < 10_000);
    }
  }
});

for (const [args, signal] of [
  [['export', 'c'], 'SIGINT'],
  [['join', 'c', '-k', '1'], 'SIGTERM'],
  [['query', 'c', '--file', 'queries.ndjson'], 'SIGINT'],
] as const) {
  it(`${signal} in ${args[0]} leaves no file behind and is reported`, async () => {
    const output = join(folder.path, 'out.ndjson');
    const command = start([...args, '-o', output, '--url', url], { cwd: folder.path });
    const isBegun = (): boolean =>
      readdirSync(folder.path).some((name) => name.startsWith('out.ndjson.unfinished-'));
    let isRunning = true;
    void command.ended.then(() => {
      isRunning = false;
    });
    await eventually('the output is begun', () => !isRunning || isBegun());
    assert.ok(isBegun());
    command.signal(signal);
    const { code, stderr } = await command.ended;
    assert.equal(code, 130, stderr);
    assert.match(stderr, /^sagitta: interrupted; nothing was written to .*out\.ndjson$/m);
    assert.deepEqual(readdirSync(folder.path), ['queries.ndjson']);
    assert.equal(existsSync(output), false);
  });
}
