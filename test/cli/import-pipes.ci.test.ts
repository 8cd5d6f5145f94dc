// `sagitta import` from pipes, in separate processes.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { open, readdir, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type Client, createClient } from '@sagitta/client';
import { emptyServer } from '../support/shared-server.js';
import { eventually } from '../support/waiting.js';
import { type CommandResult, makeFolder, run, start } from './command.js';

const ROWS = [0, 1, 2].map((n) => `{"id":"r${n}","values":[${n},1]}`);

let url: string;
let client: Client;
let folder: Awaited<ReturnType<typeof makeFolder>>;

before(async () => {
  url = await emptyServer();
  client = createClient({ baseUrl: url });
  folder = await makeFolder();
});
after(() => folder.remove());

function importFiles(...args: string[]): Promise<CommandResult> {
  const env = { SAGITTA_URL: url, XDG_STATE_HOME: folder.path };
  return run(['import', ...args], { env, cwd: folder.path });
}

async function imported(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await importFiles(...args, '--json');
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '');
  return JSON.parse(stdout) as Record<string, unknown>;
}

function fifo(name: string): string {
  const path = join(folder.path, name);
  execFileSync('mkfifo', [path]);
  return path;
}

it('reads pipes one after another, and ids from a pipe', async () => {
  // More than a pipe holds: the writer waits until it is read before it opens the next pipe.
  const lines = Array.from({ length: 5_000 }, (_, n) => `{"id":"p${n}","values":[${n},1]}\n`);
  const paths = [fifo('piped-1.ndjson'), fifo('piped-2.ndjson')];
  const importing = imported(...paths, '-c', 'pipes');
  await writeFile(paths[0]!, lines.slice(0, 4_000).join(''));
  await writeFile(paths[1]!, gzipSync(lines.slice(4_000).join('')));
  assert.equal((await importing).rows, 5_000);
  assert.equal((await client.collections.get('pipes')).vector_count, 5_000);

  const values = join(folder.path, 'piped.fbin');
  await writeFile(values, new Uint8Array(new Int32Array([2, 1, 1, 1]).buffer));
  const ids = fifo('ids');
  const withIds = imported(values, '--ids', ids, '-c', 'piped-ids');
  await writeFile(ids, 'x\ny\n');
  assert.equal((await withIds).rows, 2);
  assert.equal((await client.collection('piped-ids').get('y')).id, 'y');
});

it('reads /dev/stdin, and stdin only once', async () => {
  const env = { SAGITTA_URL: url, XDG_STATE_HOME: folder.path };
  const args = ['import', '/dev/stdin', '-c', 'device', '--json'];
  const { stdout, stderr } = await run(args, { input: ROWS.join('\n'), env });
  assert.equal((JSON.parse(stdout) as { rows: number }).rows, 3, stderr);
  const twice = await importFiles('-', '--ids', '-', '-c', 'device', '--format', 'fbin');
  assert.equal(twice.code, 2);
  assert.match(twice.stderr, /stands for stdin, which can be read only once/);
});

it('an import that fails ends although its pipe stays open', async (t) => {
  const path = fifo('endless');
  const command = start(['import', path, '-c', 'endless'], { env: { SAGITTA_URL: url } });
  const writer = await open(path, 'w');
  t.after(() => writer.close());
  await writer.write('x'.repeat(1_000));
  const { code, stderr } = await command.ended;
  assert.equal(code, 2);
  assert.match(stderr, /endless: cannot detect the format/);
});

it('an interrupted import from a pipe reports that it cannot be resumed', async (t) => {
  const path = fifo('slow.ndjson');
  const command = start(['import', path, '-c', 'slow'], { env: { SAGITTA_URL: url } });
  const writer = await open(path, 'w');
  t.after(() => writer.close());
  await writer.write(ROWS.join('\n'));
  command.signal('SIGINT');
  const { code, stderr } = await command.ended;
  assert.equal(code, 130);
  assert.match(stderr, /interrupted after 0 rows; a pipe cannot be resumed: import the same rows/);
});

it('an import that waits for the writer of a pipe can be interrupted', async () => {
  const path = fifo('unwritten.ndjson');
  const command = start(['import', path, '-c', 'unwritten'], { env: { SAGITTA_URL: url } });
  await eventually('the pipe is open', async () => {
    const folder = `/proc/${command.pid}/fd`;
    const opened = (await readdir(folder)).map((name) =>
      readlink(join(folder, name)).catch(() => ''),
    );
    return (await Promise.all(opened)).includes(path);
  });
  command.signal('SIGINT');
  const { code, stderr } = await command.ended;
  assert.equal(code, 130);
  assert.match(stderr, /interrupted/);
});
