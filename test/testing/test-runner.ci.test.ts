// The test runner on folders of small tests that fail in various ways: what it reports, and that no process survives.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { packageFile } from '../../src/common/package-files.js';

const NODE_TEST = "import { describe, it, test } from 'node:test';\n";

describe('the test runner', () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'sagitta-runner-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  /** Runs test files, given as source text by name. Returns the output and the exit code. */
  function run(files: Record<string, string>, ...options: string[]) {
    const root = mkdtempSync(join(folder, 'run-'));
    for (const [name, text] of Object.entries(files)) {
      for (const path of [`test/${name}.test.ts`, `dist/test/${name}.test.js`]) {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), NODE_TEST + text);
      }
    }
    mkdirSync(join(root, 'packages'));
    writeFileSync(join(root, 'package.json'), '{ "type": "module" }');
    const { stdout, status } = spawnSync(
      process.execPath,
      [packageFile('scripts/test.mjs'), '--root', root, ...options],
      { encoding: 'utf8', env: { ...process.env, FOLDER: root, NODE_TEST_CONTEXT: undefined } },
    );
    return { stdout, status, root };
  }

  it('names each failing test with its file and suites, and runs the others', () => {
    const { stdout, status } = run({
      first: "describe('a suite', () => { it('fails', () => { throw new Error('why'); }); });",
      second: "test('passes', () => {});",
    });
    assert.match(stdout, /✖ test\/first\.test\.ts › a suite › fails\n {2}Error: why/);
    assert.match(stdout, /^1 passed, 1 failed, 0 skipped$/m);
    assert.equal(status, 1);
  });

  it('reports a test as flaky if it fails among others and passes alone', () => {
    const { stdout, status } = run({
      once: `import { existsSync, writeFileSync } from 'node:fs';
        test('fails once', () => {
          if (existsSync(process.env.FOLDER + '/again')) return;
          writeFileSync(process.env.FOLDER + '/again', '');
          throw new Error('the first time');
        });`,
    });
    assert.match(stdout, /flaky \(passed when run alone\): test\/once\.test\.ts › fails once/);
    assert.match(stdout, /^1 passed, 0 failed, 0 skipped$/m);
    assert.equal(status, 0);
  });

  it('fails if a process ends early, and runs the files that were left', () => {
    const { stdout, status } = run({
      ends: "test('ends the process', () => process.kill(process.pid, 'SIGKILL'));",
      other: "test('passes', () => {});",
    });
    assert.match(stdout, /✖ test\/ends\.test\.ts\n {2}the process ended with SIGKILL/);
    assert.match(stdout, /^1 passed, 1 failed, 0 skipped$/m);
    assert.equal(status, 1);
  });

  it('stops a test that exceeds its time limit, and names it', () => {
    const { stdout, status } = run(
      {
        hangs: "test('waits forever', () => new Promise((resolve) => setTimeout(resolve, 1e9)));",
      },
      '--seconds-max',
      '3',
    );
    assert.match(stdout, /hangs\.test\.ts › waits forever took more than 3 s/);
    assert.equal(status, 1);
  });

  it('kills processes that a test leaves behind, and fails', () => {
    const { stdout, status, root } = run({
      leaves: `import { spawn } from 'node:child_process';
        test('leaves a process', () => {
          spawn('sleep', ['1000.' + process.env.FOLDER.length], { detached: true, stdio: 'ignore' }).unref();
        });`,
    });
    const command = `sleep 1000.${root.length}`;
    assert.ok(stdout.includes(`left a process behind: ${command}`), stdout);
    assert.equal(
      spawnSync('pgrep', ['-f', '-x', command]).status,
      1,
      'the process is still running',
    );
    assert.equal(status, 1);
  });

  it('fails if a test is skipped for a reason that is not allowed', () => {
    const files = {
      skips: `test('needs a browser', { skip: 'no browser' }, () => {});
        describe('a suite', { skip: 'no NATS' }, () => { it('runs', () => {}); });`,
    };
    assert.equal(run(files).status, 0);
    const { stdout, status } = run(files, '--may-skip', 'browser');
    assert.match(stdout, /✖ test\/skips\.test\.ts › a suite\n {2}skipped for a reason.*: no NATS/);
    assert.doesNotMatch(stdout, /✖ .*needs a browser/);
    assert.equal(status, 1);
  });

  it('fails if a file exceeds its CPU time even when it runs alone', () => {
    const busy = `const burn = (seconds) => {
        const from = process.cpuUsage().user;
        while (process.cpuUsage().user - from < seconds * 1e6) for (let i = 0; i < 1e6; i++);
      };
      test('one', () => burn(2.4));
      test('two', () => burn(2.4));`;
    const files = { busy, idle: "test('passes', () => {});" };
    const { stdout, status } = run(files, '--budget');
    assert.match(
      stdout,
      /✖ test\/busy\.test\.ts\n {2}Expected at most 4\.0 CPU seconds alone; found \d\.\d/,
    );
    assert.match(stdout, /^3 passed, 1 failed, 0 skipped$/m);
    assert.equal(status, 1);
  });

  it('runs each file only in its own run and in the nightly run', () => {
    const files = {
      a: "test('is quick', () => {});",
      'b.ci': "test('is for CI', () => {});",
      'c.nightly': "test('is nightly', () => {});",
    };
    assert.match(run(files).stdout, /^1 passed/m);
    assert.match(run(files, '--ci').stdout, /✔ test\/b\.ci\.test\.ts/);
    assert.match(run(files, '--nightly').stdout, /^3 passed/m);
    const { root } = run(files, '--record');
    assert.ok(existsSync(join(root, 'test', 'times.json')));
  });
});
