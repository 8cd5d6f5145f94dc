// The messages of commands about invalid arguments and failures, and their help.

import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { serverWithPoints } from '../support/shared-server.js';
import { type CommandOptions, type CommandResult, run } from './command.js';

let url: string;

before(async () => {
  url = await serverWithPoints();
});

function sagitta(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return run(args, { ...options, env: { SAGITTA_URL: url, ...options.env } });
}

const FAILURES: readonly [string, readonly string[], number, RegExp][] = [
  ['an unknown command', ['serv'], 2, /unknown command 'serv'\n\(Did you mean serve\?\)/],
  ['an unknown option', ['query', 'points', '--topk', '3'], 2, /unknown option '--topk'/],
  ['a missing argument', ['query'], 2, /missing required argument 'collection'/],
  ['a missing option', ['import', 'x'], 2, /required option '-c, --collection <id>'/],
  ['a number out of range', ['query', 'p', '-k', '0'], 2, /'0' is invalid. Expected an integer/],
  [
    'no vector',
    ['query', 'points'],
    2,
    /exactly one of --vector, --id, --text, --sparse, .* and examples .*, found 0/,
  ],
  [
    'two vectors',
    ['query', 'p', '--id', 'a', '--vector', '[1]'],
    2,
    /--text, .* and examples .*, found 2/,
  ],
  ['a broken vector', ['query', 'points', '--vector', '[1,'], 2, /--vector: expected JSON; /],
  [
    'a broken number of a vector',
    ['query', 'points', '--vector', '1,x'],
    2,
    /--vector: value 2 is "x", expected a number/,
  ],
  ['a missing number of a vector', ['query', 'points', '--vector', '1,'], 2, /value 2 is ""/],
  ['a vector of one number', ['query', 'points', '--vector', '5'], 1, /dimension is 2/],
  [
    'a broken filter',
    ['query', 'p', '--id', 'a', '--filter', '[]'],
    2,
    /--filter: expected a JSON/,
  ],
  ['a missing file', ['query', 'p', '--vector', '@none'], 2, /--vector: file not found: none/],
  [
    'a broken threshold',
    ['query', 'p', '--score-threshold', 'x'],
    2,
    /expected a number, found "x"/,
  ],
  [
    'a broken label',
    ['collections', 'create', 'x', '--dimension', '1', '--label', 'x'],
    2,
    /name=value/,
  ],
  [
    'an option of --file alone',
    ['query', 'p', '--id', 'a', '--id-field', 'x'],
    2,
    /--id-field requires --file/,
  ],
  [
    'an output of a recall',
    ['query', 'p', '--file', 'x', '--recall', 'x', '-o', 'x.csv'],
    2,
    /--output cannot be combined with --recall/,
  ],
  ['a missing collection', ['query', 'none', '--id', 'a'], 1, /collection "none"|"none"/],
  ['a missing vector', ['query', 'points', '--id', 'none'], 1, /no vector with the id "none"/],
  ['a wrong length', ['query', 'points', '--vector', '[1]'], 1, /dimension is 2/],
  ['an existing collection', ['collections', 'create', 'points', '--dimension', '2'], 1, /points/],
  ['a broken address', ['collections', 'list', '--url', 'x'], 2, /--url.*found "x"/],
];

for (const [name, args, code, message] of FAILURES) {
  it(`${name} is reported in one line, with exit code ${code}`, async () => {
    const result = await sagitta(args);
    assert.equal(result.code, code);
    assert.equal(result.stdout, '');
    assert.match(result.stderr, /^sagitta: /);
    assert.match(result.stderr, message);
    assert.doesNotMatch(result.stderr, /\.js:\d+/);
  });
}

it('an unreachable server is reported with exit code 3', async () => {
  const { code, stderr } = await sagitta(['query', 'x', '--id', 'a'], {
    env: { SAGITTA_URL: 'http://127.0.0.1:1' },
  });
  assert.equal(code, 3);
  assert.match(stderr, /cannot reach http:\/\/127\.0\.0\.1:1\/.*Is the server running/);
});

it('--debug prints a stack trace, before or after the command', async () => {
  const args = ['query', 'points', '--id', 'none'];
  for (const withDebug of [
    ['--debug', ...args],
    [...args, '--debug'],
  ]) {
    const { code, stderr } = await sagitta(withDebug);
    assert.equal(code, 1);
    assert.match(stderr, /SagittaClientError: .*\n\s+at .*\.js:\d+/);
  }
});

it('no line of help is wider than 80 characters', async () => {
  const seen: string[] = [];
  const look = async (path: readonly string[]): Promise<void> => {
    const { stdout } = await sagitta([...path, '--help']);
    for (const line of stdout.split('\n')) {
      // The name of an environment variable cannot be wrapped.
      const isName = /^ {30,}\S+$/.test(line);
      assert.ok(isName || line.length <= 80, `sagitta ${path.join(' ')}: ${line}`);
    }
    seen.push(path.join(' '));
    const commands = /\nCommands:\n((?: .*\n)+)/.exec(stdout)?.[1] ?? '';
    const names = [...commands.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name!);
    await Promise.all(names.filter((name) => name !== 'help').map((name) => look([...path, name])));
  };
  await look([]);
  assert.ok(seen.includes('collections create') && seen.includes('query'), seen.join(', '));
});

it('help shows examples and exits with 0', async () => {
  for (const args of [[], ['query'], ['import'], ['export'], ['join'], ['serve'], ['completion']]) {
    const { code, stdout } = await sagitta([...args, '--help']);
    assert.equal(code, 0);
    assert.match(stdout, /Examples:\n {2}\$ /, args.join(' '));
  }
  assert.match(
    (await sagitta([])).stderr,
    /Exit codes: 0 success, 1 failure, 2 invalid arguments,\n3 server unreachable, 130 interrupted/,
  );
});
