// Runs the commands in the documents and compares their output with the output shown.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePorts } from '../support/free-ports.js';
import { startTestServer } from '../support/server-in-process.js';
import { assertAnswer, ROOT } from './shell-examples.js';

const DOCUMENTED_URL = 'http://127.0.0.1:8484';
/** Separates the outputs of examples. No example prints it. */
const SEPARATOR = '\u001e';

interface Example {
  /** Line of the opening fence, from 1. */
  readonly line: number;
  readonly command: string;
  readonly expected: { readonly language: string; readonly text: string } | undefined;
}

const hasCurl = spawnSync('curl', ['--version']).status === 0;
const skip = hasCurl ? false : 'curl is not installed';

for (const path of ['README.md', 'docs/api-guide.md', 'docs/search-your-texts.md']) {
  test(`the examples in ${path} print the output shown`, { skip }, async () => {
    const server = await startTestServer({ SAGITTA_ENGINE: 'auto' });
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-docs-'));
    try {
      await putCommandInto(folder);
      const environment = { PATH: `${folder}:${process.env.PATH}`, SAGITTA_URL: server.url };
      // As the demo does.
      const load = `sagitta collections create wordnet --embed builtin --vectors '{"terms": {"dimension": 256}}' \
        --text-fields lemma,gloss --text-language english &&
        sagitta import examples/data/wordnet-sentences.arrow --collection wordnet --batch 1000`;
      // The examples write outside the checkout but read these folders.
      for (const name of ['examples', 'dist']) await symlink(join(ROOT, name), join(folder, name));
      // Imports in examples report their progress.
      const options = { cwd: folder, mayWriteToStderr: true };
      await runShell(`${load} > import.log 2>&1`, environment, options);
      await runExamples(path, (script) =>
        runShell(script.replaceAll(DOCUMENTED_URL, server.url), environment, options),
      );
    } finally {
      await server.close();
      await rm(folder, { recursive: true });
    }
  });
}

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

test('the steps of docs/production.md work from top to bottom', {
  skip: hasCurl && hasOpenssl ? false : 'curl or openssl is not installed',
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sagitta-docs-'));
  try {
    await putCommandInto(folder);
    const [port] = await freePorts(1);
    const environment = { PATH: `${folder}:${process.env.PATH}`, SAGITTA_PORT: String(port) };
    const options = { cwd: folder, mayWriteToStderr: true };
    await runExamples('docs/production.md', (script) =>
      runShell(script.replaceAll(':8484', `:${port}`), environment, options),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});

/** The shell examples in order, each with the output in the next fence, if there is one. */
function examplesOf(text: string): Example[] {
  const fences = [...text.matchAll(/(<!-- not run[^>]*-->\n)?^```(\w+)\n([\s\S]*?)^```$/gm)];
  return fences.flatMap(([, isNotRun, language, body], at) => {
    if (language !== 'sh' || isNotRun !== undefined) return [];
    const next = fences[at + 1];
    const isAnswered = next?.[2] === 'json' || next?.[2] === 'text';
    return {
      line: text.slice(0, fences[at]!.index).split('\n').length,
      command: body!,
      expected: isAnswered ? { language: next[2]!, text: next[3]! } : undefined,
    };
  });
}

/** Runs the examples of a document in one shell and compares their output with the output shown. */
async function runExamples(path: string, run: (script: string) => Promise<string>): Promise<void> {
  const examples = examplesOf(await readFile(join(ROOT, path), 'utf8'));
  assert.ok(examples.some(({ expected }) => expected !== undefined));
  const script = examples.map(({ command }) => `${command}\nprintf '${SEPARATOR}'\n`).join('');
  const answers = (await run(script)).split(SEPARATOR);
  assert.equal(answers.length, examples.length + 1, 'an example exited the shell');
  examples.forEach(({ line, expected }, at) => {
    if (expected !== undefined) assertAnswer(`${path}:${line}`, answers[at]!, expected);
  });
}

/** Puts the command `sagitta` into a folder for the PATH of a shell. */
async function putCommandInto(folder: string): Promise<void> {
  const main = join(ROOT, 'scripts/sagitta.cjs');
  const path = join(folder, 'sagitta');
  await writeFile(path, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
  await chmod(path, 0o755);
}

/**
 * Runs a script and returns what it prints. Throws if a command fails or, unless permitted, writes to stderr. Kills
 * background processes of a failed script.
 */
function runShell(
  script: string,
  environment: NodeJS.ProcessEnv,
  { cwd, mayWriteToStderr = false }: { readonly cwd: string; readonly mayWriteToStderr?: boolean },
): Promise<string> {
  const shell = spawn('bash', ['-euo', 'pipefail', '-s'], {
    cwd,
    env: { ...process.env, ...environment },
    // Starts a process group, so that background processes can be killed.
    detached: true,
  });
  let output = '';
  let complaints = '';
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  shell.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  shell.stdin.end(script);
  return new Promise((resolve, reject) => {
    shell.on('error', reject);
    shell.on('exit', (code) => {
      if (code !== 0) endGroup(shell.pid!);
    });
    shell.on('close', (code) => {
      if (code === 0 && (complaints === '' || mayWriteToStderr)) resolve(output);
      else reject(new Error(`the shell ended with ${code}: ${complaints}\n${output}`));
    });
  });
}

/** Kills a process group. A server left in the background would keep the shell's output open. */
function endGroup(id: number): void {
  try {
    process.kill(-id, 'SIGTERM');
  } catch (error) {
    // The group has ended already.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
