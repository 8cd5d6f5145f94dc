// Runs the examples of docs/client.md one after another and compares their output with the comments.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startTestServer } from '../support/server-in-process.js';

const DOCUMENT = new URL('../../../docs/client.md', import.meta.url);
const DOCUMENTED_URL = 'http://127.0.0.1:8484';
/** The package's exports, relative to the compiled test. */
const ENTRY_POINTS = {
  '@sagitta/client': '../../src/client/client.js',
  '@sagitta/client/arrow': '../../src/client/arrow.js',
  '@sagitta/langchain': '../../src/integrations/langchain/vector-store.js',
};
const RUN_MS_MAX = 60_000;

test('the examples of docs/client.md print what they document', async () => {
  const text = await readFile(DOCUMENT, 'utf8');
  const program = [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code).join('');
  const expected = [...program.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].flatMap(([, lines]) =>
    lines!.split(' | '),
  );
  assert.ok(expected.length > 10);
  const server = await startTestServer();
  // Beside this file, so that packages are found.
  const path = fileURLToPath(new URL('./docs-program.mjs', import.meta.url));
  try {
    let runnable = program.replaceAll(DOCUMENTED_URL, server.url);
    for (const [name, file] of Object.entries(ENTRY_POINTS)) {
      runnable = runnable.replaceAll(`'${name}'`, `'${file}'`);
    }
    await writeFile(path, runnable);
    const run = promisify(execFile)(process.execPath, [path], { timeout: RUN_MS_MAX });
    const { stdout, stderr } = await run;
    assert.equal(stderr, '');
    assert.deepEqual(stdout.trimEnd().split('\n'), expected);
  } finally {
    await rm(path, { force: true });
    await server.close();
  }
});
