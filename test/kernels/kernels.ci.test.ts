// Compiles the kernels' own tests in C++ and runs them under AddressSanitizer and UndefinedBehaviorSanitizer,
// on every target of this processor, with few kinds of rows. `scripts/check-kernels.sh` runs them with all
// kinds, under ThreadSanitizer, emulated, and on another architecture.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Relative to the compiled file in dist/test. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const BUILD = join(ROOT, 'scripts', 'build-kernels.mjs');

const SEED = process.env.SAGITTA_TEST_SEED ?? String(Date.now() % 1_000_000);

function build(...names: string[]) {
  return spawnSync(process.execPath, [BUILD, ...names], { encoding: 'utf8' });
}

const built = build('test-memory');
const hasCompiler = !built.stderr.includes('no C++ compiler');

describe('the kernels', { skip: hasCompiler ? false : 'there is no C++ compiler' }, () => {
  it('compile without a warning', () => {
    assert.equal(built.status, 0, built.stderr);
  });

  it('answer as brute force does on every target, without reading out of bounds', () => {
    const program = join(ROOT, 'build', 'kernels', 'test-memory');
    const output = execFileSync(program, ['--quick', '--seed', SEED], { encoding: 'utf8' });
    console.log(output.trim().replaceAll('\n', ', '));
    assert.match(output, /^reference: ok$/m);
  });
});

describe('the build of the kernels', () => {
  it('prints one line and succeeds without a compiler when none is required', () => {
    const env = { ...process.env, CXX: '', PATH: join(ROOT, 'no-such-folder') };
    const optional = spawnSync(process.execPath, [BUILD, '--if-possible'], {
      env,
      encoding: 'utf8',
    });
    assert.equal(optional.status, 0);
    assert.match(
      optional.stdout,
      /^sagitta: no kernels were built, so searches are many times slower; .* \(no C\+\+ .*\)[^\n]*\n$/,
    );
    const required = spawnSync(process.execPath, [BUILD], { env, encoding: 'utf8' });
    assert.equal(required.status, 1);
    assert.match(required.stderr, /no C\+\+ compiler/);
  });
});
