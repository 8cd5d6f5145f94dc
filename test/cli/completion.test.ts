// Completion scripts: bash completion runs in bash, fish completion is compared as text.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { before, it } from 'node:test';
import { run } from './command.js';

let script: string;
before(async () => {
  const { code, stdout } = await run(['completion', 'bash']);
  assert.equal(code, 0);
  script = stdout;
});

/** The completions that bash offers for the last word. */
function complete(...words: readonly string[]): string[] {
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', ASK, 'bash', ...words], {
    input: script,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return stdout.split('\n').filter((line) => line !== '');
}

const ASK = `
eval "$(cat)"
COMP_WORDS=(sagitta "$@")
COMP_CWORD=$#
_sagitta
printf '%s\\n' "\${COMPREPLY[@]}"
`;

const CASES: readonly [
  words: readonly string[],
  offered: readonly string[],
  absent: readonly string[],
][] = [
  [[''], ['serve', 'import', 'export', 'query', 'join', 'completion', 'bench'], ['list', 'create']],
  [['imp'], ['import'], ['export']],
  [['collections', ''], ['list', 'create', 'show', 'clone', 'rename', 'delete'], ['serve']],
  [['collections', 'create', '--m'], ['--metric'], ['--dimension']],
  [['import', 'rows.ndjson', '--'], ['--collection', '--vector-columns', '--restart'], ['--top-k']],
  [['import', '--metric', ''], ['cosine', 'dot', 'euclidean'], ['npy']],
  [['import', '-c', 'serve', '--f'], ['--format', '--fields'], ['--filter']],
  [['--debug', 'query', 'import', '--fil'], ['--filter', '--file', '--file-format'], []],
  [['export', 'docs', '--format', 'p'], ['parquet'], ['ndjson']],
  [['completion', ''], ['bash', 'zsh', 'fish'], ['serve']],
];

for (const [words, offered, absent] of CASES) {
  it(`bash completes "sagitta ${words.join(' ')}"`, () => {
    const found = complete(...words);
    for (const word of offered) assert.ok(found.includes(word), `${word} among ${found}`);
    for (const word of absent) assert.ok(!found.includes(word), `${word} among ${found}`);
  });
}

it('bash completes file names where a file is expected', () => {
  assert.ok(complete('import', '/et').includes('/etc'));
  assert.ok(complete('import', '--ids', '/et').includes('/etc'));
});

it('fish has a line for every command and option', async () => {
  const { stdout } = await run(['completion', 'fish']);
  assert.match(stdout, /^complete -c sagitta -n '__fish_use_subcommand' -f -a export -d '/m);
  assert.match(
    stdout,
    /^complete -c sagitta -n '__fish_seen_subcommand_from import' -l metric -x -a 'cosine dot euclidean jaccard hamming' /m,
  );
  assert.match(
    stdout,
    /^complete -c sagitta -n '__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from create' /m,
  );
});

it('rejects an unknown shell and lists the known ones', async () => {
  const { code, stderr } = await run(['completion', 'tcsh']);
  assert.equal(code, 2);
  assert.match(stderr, /bash, zsh, fish/);
});
