// The Python examples against a real server. SAGITTA_TEST_PYTHON names an interpreter with pyarrow and
// requests.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createClient } from '../../src/client/client.js';
import { startTestServer, type TestServer } from '../support/server-in-process.js';

const EXAMPLES = fileURLToPath(new URL('../../../examples/python', import.meta.url));
const RUN_MS_MAX = 60_000;

const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
const hasModules = spawnSync(python, ['-c', 'import pyarrow.parquet, requests']).status === 0;
const skip = hasModules
  ? false
  : `${python} lacks pyarrow or requests; set SAGITTA_TEST_PYTHON to one that has both`;

let server: TestServer;
let folder: string;

before(async () => {
  if (skip !== false) return;
  server = await startTestServer();
  folder = await mkdtemp(join(tmpdir(), 'sagitta-python-'));
});
after(async () => {
  if (skip !== false) return;
  await server.close();
  await rm(folder, { recursive: true });
});

async function linesOf(script: string, ...args: string[]): Promise<string[]> {
  // No compiled modules in the examples directory.
  const environment = { ...process.env, SAGITTA_URL: server.url, PYTHONDONTWRITEBYTECODE: '1' };
  const run = promisify(execFile)(python, [join(EXAMPLES, script), ...args], {
    cwd: folder,
    env: environment,
    timeout: RUN_MS_MAX,
  });
  const { stdout, stderr } = await run;
  assert.equal(stderr, '');
  return stdout.trimEnd().split('\n');
}

it('the examples write a generator of batches, query it and export it', { skip }, async () => {
  assert.deepEqual(await linesOf('load_and_query.py'), [
    'written: 10000 rows in 4 commits',
    'matches: 6000 the first: row-0 the last: row-1999',
    'odd matches: 30 all odd: True',
    'pages: [10, 10, 5] nearest: row-0',
    'rejected: dimension_mismatch',
  ]);
  assert.deepEqual(await linesOf('export_parquet.py', 'even.parquet'), [
    'table: 3 rows, fixed_size_list<item: float not null>[16]',
    "metadata: {'number': 0, 'parity': 'even'}",
    'file: 5000 rows',
  ]);
  const vectors = createClient({ baseUrl: server.url }).collection('python-example');
  assert.equal(await vectors.count({ filter: { parity: 'odd' } }), 5_000);
});

it('the join example finds duplicates', { skip }, async () => {
  assert.deepEqual(await linesOf('deduplicate.py'), ['pairs: 8 deleted: 3 left: 3']);
});
