// Runs the examples of docs/client.md one after another, compares their output with the comments, and checks that
// its tables list every method of the client.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startTestServer } from '../../../test/support/server-in-process.js';
import { createClient } from '../src/client.js';

const DOCUMENT = new URL('../../../../docs/client.md', import.meta.url);
const DOCUMENTED_URL = 'http://127.0.0.1:8484';
const RUN_MS_MAX = 60_000;

test('the examples of docs/client.md print what they document', async () => {
  const text = await readFile(DOCUMENT, 'utf8');
  const program = [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code).join('');
  const expected = [...program.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].flatMap(([, lines]) =>
    lines!.split(' | '),
  );
  assert.ok(expected.length > 10);
  const server = await startTestServer();
  // Beside this file, so that packages can be resolved.
  const path = fileURLToPath(new URL('./docs-program.mjs', import.meta.url));
  try {
    await writeFile(path, program.replaceAll(DOCUMENTED_URL, server.url));
    const run = promisify(execFile)(process.execPath, [path], { timeout: RUN_MS_MAX });
    const { stdout, stderr } = await run;
    assert.equal(stderr, '');
    assert.deepEqual(stdout.trimEnd().split('\n'), expected);
  } finally {
    await rm(path, { force: true });
    await server.close();
  }
});

test('the tables of docs/client.md list exactly the methods of the client', async () => {
  const text = await readFile(DOCUMENT, 'utf8');
  const [, ...tables] = text.slice(text.indexOf('## All methods')).split('\n### `client');
  const documented = new Map(
    tables.map((table) => {
      const rows = table.split('### ')[0]!.matchAll(/^\| `(\w+)\(/gm);
      // An overloaded method has a row for each signature.
      const names = new Set(Array.from(rows, ([, name]) => name));
      return [`client${table.slice(0, table.indexOf('`'))}`, [...names].sort()];
    }),
  );
  const client = createClient({ baseUrl: DOCUMENTED_URL });
  const { collections, aliases, keys, backups, audit, service, defaultCollection } = client;
  const objects = { collections, aliases, keys, backups, audit, service, defaultCollection };
  const found = new Map<string, string[]>([
    ['client', methodsOf(client)],
    ['client.collection(id)', methodsOf(client.collection('docs'))],
    ...Object.entries(objects).map(
      ([name, object]) => [`client.${name}`, methodsOf(object)] as const,
    ),
  ]);
  assert.deepEqual([...documented].sort(), [...found].sort());
});

function methodsOf(object: object): string[] {
  return Object.entries(object)
    .filter(([, member]) => typeof member === 'function')
    .map(([name]) => name)
    .sort();
}
