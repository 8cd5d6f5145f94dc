// Checks the subjects in scripts/ci/subjects.mjs whose files have changed since the last check. The committed file
// .ci/checked records each subject's name, the digest of its files, and the day of the check.
//
//   node scripts/ci/check.mjs                  checks the subjects that have changed
//   node scripts/ci/check.mjs kernels cuda     considers only these subjects
//   node scripts/ci/check.mjs --force images   checks even if nothing has changed
//   node scripts/ci/check.mjs --list           only lists which subjects have changed
//   node scripts/ci/check.mjs --tests          prints the tests that belong to subjects
//
// A successful check updates its line in .ci/checked. Until that line is committed, CI repeats the check in every run.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SUBJECTS } from './subjects.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHECKED = join(ROOT, '.ci', 'checked');

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    force: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    tests: { type: 'boolean', default: false },
  },
});
const unknown = names.find((name) => !(name in SUBJECTS));
if (unknown !== undefined) {
  console.error(`Expected one of ${Object.keys(SUBJECTS).join(', ')}; found ${unknown}`);
  process.exit(2);
}
if (options.tests) {
  for (const { tests } of Object.values(SUBJECTS)) for (const path of tests) console.log(path);
  process.exit(0);
}
for (const name of names.length > 0 ? names : Object.keys(SUBJECTS)) {
  const digest = digestOf(SUBJECTS[name].inputs);
  const known = readChecked().get(name);
  if (known?.digest === digest && !options.force) {
    console.log(`${name}: unchanged since the check on ${known.day} (${digest})`);
  } else if (options.list) {
    console.log(`${name}: ${known ? `changed since the check on ${known.day}` : 'never checked'}`);
  } else {
    check(name, digest);
  }
}

function check(name, digest) {
  const startedAt = performance.now();
  const { commands, tests } = SUBJECTS[name];
  const testCommand = [process.execPath, 'scripts/test.mjs', '--ci', ...tests];
  for (const words of tests.length > 0 ? [...commands, testCommand] : commands) {
    console.log(`\n── ${name}: ${words.join(' ').replace(process.execPath, 'node')}`);
    const { status, error } = spawnSync(words[0], words.slice(1), { cwd: ROOT, stdio: 'inherit' });
    if (error !== undefined) throw error;
    if (status !== 0) {
      console.error(`${name}: the command exited with ${status}`);
      process.exit(1);
    }
  }
  const day = new Date().toISOString().slice(0, 10);
  writeChecked(readChecked().set(name, { digest, day }));
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  console.log(
    `${name}: checked in ${seconds} s. The line for .ci/checked is: ${name} ${digest} ${day}`,
  );
}

/** A digest of the names and contents of all files that git tracks or would add. */
function digestOf(inputs) {
  const { stdout } = spawnSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', ...inputs],
    { cwd: ROOT, encoding: 'utf8' },
  );
  const hash = createHash('sha256');
  for (const path of [...new Set(stdout.split('\0'))].sort()) {
    if (path === '' || !existsSync(join(ROOT, path))) continue;
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(ROOT, path)))
      .update('\0');
  }
  return hash.digest('hex').slice(0, 16);
}

function readChecked() {
  const lines = existsSync(CHECKED) ? readFileSync(CHECKED, 'utf8').trim().split('\n') : [];
  const words = lines.filter((line) => line !== '').map((line) => line.split(' '));
  return new Map(words.map(([name, digest, day]) => [name, { digest, day }]));
}

function writeChecked(checked) {
  const lines = [...checked].sort().map(([name, { digest, day }]) => `${name} ${digest} ${day}\n`);
  writeFileSync(CHECKED, lines.join(''));
}
