// Output that is not complete, because of a signal, a reply that is cut, or a full disk: no file is left
// behind, and the command says so and fails.

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
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageFile } from '../../src/common/package-files.js';
import { utf8ColumnOf } from '../../src/common/utf8-column.js';
import { encodeBatch, encodeSchema } from '../../src/formats/arrow/ipc-writer.js';
import { makeFolder, run, start } from './command.js';

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
    if (/cut\/export/.test(request.url!)) {
      cut(request, response);
      return;
    }
    if (/\/(export|join|batch)/.test(request.url!)) {
      begin(response);
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

/** A row, without the end of the stream, in the format that is asked for. */
function cut(request: IncomingMessage, response: ServerResponse): void {
  const { accept = '' } = request.headers;
  const wire = /arrow|parquet/.exec(accept + request.url!)?.[0] ?? 'ndjson';
  // Without its length and without chunks, a reply ends with its connection.
  const isFramed = request.headers.authorization === 'Bearer framed';
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'sagitta-sequence': '1',
    ...(!isFramed && { connection: 'close' }),
  });
  response.useChunkedEncodingByDefault = isFramed;
  const parts = PARTS[wire as keyof typeof PARTS];
  response.write(Buffer.concat(parts), () => {
    if (isFramed) response.socket!.end();
    else response.end();
  });
}

const text = (...texts: string[]) => ({
  text: utf8ColumnOf(texts),
  from: 0,
});
const PARTS = {
  ndjson: [Buffer.from('{"id":"a","values":[1,2],"metadata":{}}\n{"id":"b","val')],
  arrow: [
    encodeSchema([
      { name: 'id', type: 'utf8' },
      { name: 'values', type: { vectorOf: 2 } },
      { name: 'metadata', type: 'utf8' },
    ]),
    ...encodeBatch(1, [text('a'), { vectors: Float32Array.of(1, 2) }, text('{}')]),
  ],
  parquet: [Buffer.from('PAR1…')],
} as const;

for (const [kind, message] of [
  // The client may notice the end before it has the beginning.
  ['framed', /^sagitta: (.* was cut off after \d+ bytes|cannot reach .* other side closed)/m],
  ['unframed', /^sagitta: the reply was cut off after \d+ bytes/m],
] as const) {
  for (const extension of ['ndjson', 'csv', 'arrow', 'arrows', 'parquet', 'npy', 'fbin']) {
    it(`a reply that is cut, ${kind}, gives no file .${extension}`, async () => {
      const args = ['export', 'cut', '-o', join(folder.path, `out.${extension}`), '--force'];
      const { code, stdout, stderr } = await run([...args, '--url', url, '--api-key', kind]);
      assert.equal(code, 3, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, message);
      assert.deepEqual(readdirSync(folder.path), ['queries.ndjson']);
    });
  }
}

it('output on stdout that is cut is said to be incomplete', async () => {
  const { code, stdout, stderr } = await run(['export', 'cut', '--url', url]);
  assert.equal(code, 3, stderr);
  assert.match(stdout, /^\{"id":"a"/);
  assert.match(stderr, /^sagitta: the output on stdout is incomplete$/m);
});

it('a full disk behind stdout is reported in a line', {
  skip: existsSync('/dev/full') ? false : 'there is no /dev/full',
}, async () => {
  const main = packageFile('scripts/sagitta.mjs');
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
  const main = packageFile('scripts/sagitta.mjs');
  const path = join(folder.path, 'show.json');
  // The system writes up to the limit of the file's size, and reports an error for the rest only.
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

it('a device or a directory is not replaced by an output file', async () => {
  for (const [path, message] of [
    ['/dev/null', /\/dev\/null is no file; write to stdout/],
    [folder.path, /is a directory, expected a file/],
  ] as const) {
    const args = ['export', 'c', '-o', path, '--force', '--format', 'csv', '--url', url];
    const { code, stderr } = await run(args);
    assert.equal(code, 2);
    assert.match(stderr, message);
  }
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
