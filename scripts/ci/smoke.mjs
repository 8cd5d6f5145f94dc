// Starts the built program as a user would, stores vectors, finds them, and stops the server. Loads every client
// command and every thread once.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../sagitta.cjs', import.meta.url));
const COMMANDS =
  'serve demo import export query join aggregate update collections aliases keys audit backup restore cluster verify selftest doctor bench completion';
const START_MS_MAX = 60_000;

const folder = mkdtempSync(join(tmpdir(), 'sagitta-smoke-'));
const startedAt = performance.now();
const server = spawn(PROGRAM, ['serve', '--port', '0', '--data-dir', join(folder, 'data')], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const deadline = setTimeout(() => server.kill('SIGKILL'), START_MS_MAX);
try {
  const url = await waitForUrl(server.stdout);
  console.log(`listens after ${Math.round(performance.now() - startedAt)} ms`);
  const run = (...words) =>
    execFileSync(PROGRAM, words, {
      encoding: 'utf8',
      env: { ...process.env, SAGITTA_URL: url },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  for (const name of COMMANDS.split(' '))
    assert.match(run(name, '--help'), /Usage: sagitta /, name);
  const file = join(folder, 'rows.ndjson');
  const rows = [
    { id: 'a', values: [1, 0], metadata: { kind: 'x' } },
    { id: 'b', values: [0, 1], metadata: { kind: 'y' } },
  ];
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  run('import', file, '--collection', 'smoke');
  const found = JSON.parse(run('query', 'smoke', '--vector', '0.9,0.1', '--top-k', '1', '--json'));
  assert.equal(found.matches[0].id, 'a');
  assert.equal((await fetch(`${url}/docs/`)).status, 200);
  assert.equal((await fetch(`${url}/console/`)).status, 200);
  assert.match(run('export', 'smoke', '-o', '-', '--format', 'ndjson'), /"id": ?"b"/);
} finally {
  server.kill('SIGTERM');
  const [code] = server.exitCode === null ? await once(server, 'exit') : [server.exitCode];
  clearTimeout(deadline);
  rmSync(folder, { recursive: true });
  assert.equal(code, 0, 'the server exits with 0');
}

/** The URL that the server prints when it listens. */
async function waitForUrl(stdout) {
  for await (const line of createInterface({ input: stdout })) {
    const url = /listening on (\S+)\. /.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error('the server ended before it listened');
}
