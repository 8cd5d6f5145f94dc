// Clients generated from openapi.json compile in strict mode and complete a round trip with a server: create, write,
// query by pages, fetch, list with a filter, an error, delete. README.md says how to install the generators, which are
// kept apart from the repository's own packages.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type ServerProcess, startServerProcess } from '../support/server-process.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const INSTALLED = join(ROOT, 'build/generators');
const OWN_FILES = ['round-trips', 'tsconfig.json', 'orval-config.ts'];

const isInstalled = existsSync(join(INSTALLED, 'node_modules'));
const skip = isInstalled
  ? false
  : 'the generators are not installed: see test/generators/README.md';

const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
const hasPython = spawnSync(python, ['-c', 'import dateutil, mypy']).status === 0;

/** The arguments with which each generator reads `openapi.json` and writes into `generated`. */
const GENERATORS = {
  'openapi-typescript': ['openapi.json', '-o', 'generated/openapi-typescript.ts'],
  'openapi-ts': ['-i', 'openapi.json', '-o', 'generated/hey-api', '--no-log-file'],
  orval: ['--config', 'orval-config.ts'],
  quicktype: [
    ...['--src-lang', 'schema', '--lang', 'python', '--python-version', '3.7'],
    ...['-o', 'generated/models.py', 'openapi.json#/components/schemas/'],
  ],
} as const;

const TYPESCRIPT_CLIENTS = ['openapi-fetch', 'hey-api', 'orval'];

describe('clients generated from openapi.json', { skip }, () => {
  let folder: string;
  let data: string;
  let server: ServerProcess;
  before(async () => {
    // The folder is inside the one with the packages, so that its programs can import them.
    folder = await mkdtemp(join(INSTALLED, 'run-'));
    data = await mkdtemp(join(tmpdir(), 'sagitta-generators-'));
    for (const name of OWN_FILES) {
      await cp(join(ROOT, 'test/generators', name), join(folder, name), { recursive: true });
    }
    await cp(join(ROOT, 'openapi.json'), join(folder, 'openapi.json'));
    for (const [tool, words] of Object.entries(GENERATORS)) await runTool(tool, words);
    server = await startServerProcess({ dataDirectory: data });
  });
  after(async () => {
    await server?.stop();
    await rm(data, { recursive: true });
    await rm(folder, { recursive: true });
  });

  /** Runs a program. If it fails, the test fails with everything it printed. */
  async function run(command: string, words: readonly string[], env: Record<string, string> = {}) {
    const options = { cwd: folder, env: { ...process.env, ...env } };
    await promisify(execFile)(command, words, options).catch(({ message, stdout }) =>
      assert.fail(`${message}\n${stdout}`),
    );
  }
  const runTool = (tool: string, words: readonly string[]) =>
    run(join(INSTALLED, 'node_modules/.bin', tool), words);

  it('compile in strict mode', () => runTool('tsc', ['-p', 'tsconfig.json']));

  for (const name of TYPESCRIPT_CLIENTS) {
    it(`make a round trip: ${name}`, async () => {
      const program = `${name}.mjs`;
      await runTool('esbuild', [
        ...[`round-trips/${name}.ts`, `--outfile=${program}`, '--bundle'],
        ...['--platform=node', '--format=esm', '--log-level=error'],
      ]);
      await run(process.execPath, [program, `${server.url}/v1`]);
    });
  }

  const skipPython = hasPython ? false : `${python} has no dateutil and mypy`;
  it('make a round trip: Python dataclasses', { skip: skipPython }, async () => {
    const program = 'round-trips/python_models.py';
    const paths = { PYTHONPATH: 'generated', MYPYPATH: 'generated' };
    await run(python, ['-m', 'mypy', '--strict', '--follow-imports=silent', program], paths);
    await run(python, [program, `${server.url}/v1`], paths);
  });
});
