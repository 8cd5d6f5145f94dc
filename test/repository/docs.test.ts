// Checks the documents: their commands run and print what the documents show, their links lead to
// files, and every setting, path and error code that they name exists.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ERROR_TITLES } from '../../src/common/errors.js';
import { describeSettings } from '../../src/platform/config.js';
import { freePorts } from '../support/free-ports.js';
import { startTestServer } from '../support/server-in-process.js';

/** The compiled test is at dist/test; the documents are read where they were written. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const DOCUMENTED_URL = 'http://127.0.0.1:8484';
/** Values of an expected answer that differ from run to run: "…" for any value, "text…" for any end. */
const ANYTHING = '…';
/** A file or folder of the repository; patterns such as `src/*.ts` end before the asterisk. */
const SOURCE_PATH = /(?<![\w./-])(?:src|test|scripts|kernels|bench|docs|examples)\/[\w./-]*\w/g;
/** Ends the output of one example; no example prints it. */
const SEPARATOR = '\u001e';

interface Example {
  /** Line of the fence that opens it, from 1. */
  readonly line: number;
  readonly command: string;
  readonly expected: { readonly language: string; readonly text: string } | undefined;
}

const hasCurl = spawnSync('curl', ['--version']).status === 0;
const skip = hasCurl ? false : 'there is no curl on this machine';

for (const path of ['README.md', 'docs/api-guide.md']) {
  test(`the examples of ${path} print what it shows`, { skip }, async () => {
    const server = await startTestServer({ SAGITTA_ENGINE: 'auto' });
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-docs-'));
    try {
      await putCommandInto(folder);
      const environment = { PATH: `${folder}:${process.env.PATH}`, SAGITTA_URL: server.url };
      const load = 'sagitta import examples/data/wordnet.arrow --collection wordnet --batch 1000';
      // What the examples write stays out of the checkout, of which they read these folders.
      for (const name of ['examples', 'dist']) await symlink(join(ROOT, name), join(folder, name));
      const options = { cwd: folder };
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
  skip: hasCurl && hasOpenssl ? false : 'there is no curl or no openssl on this machine',
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

const GENERATORS = ['openapi', 'client-types', 'client-methods', 'configuration', 'access'];
for (const name of GENERATORS) {
  const script = `docs/${name}`;
  test(`what scripts/${script}.mjs writes is up to date`, () => {
    const { status, stderr } = spawnSync(
      process.execPath,
      [join(ROOT, 'scripts', `${script}.mjs`), '--check'],
      { encoding: 'utf8' },
    );
    assert.equal(status, 0, stderr);
  });
}

test('the program in the README is the one in examples/', async () => {
  const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
  const program = await readFile(join(ROOT, 'examples/first-query.ts'), 'utf8');
  const [, shown] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  assert.equal(shown, program.slice(program.indexOf('import ')));
});

test('every link between documents leads to a file', async () => {
  const broken: string[] = [];
  for (const path of await documents()) {
    const text = await readFile(join(ROOT, path), 'utf8');
    for (const [, target] of text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      if (/^https?:/.test(target!)) continue;
      if (!existsSync(join(ROOT, dirname(path), target!))) broken.push(`${path}: ${target}`);
    }
  }
  assert.deepEqual(broken, []);
});

test('every source path that a document names exists', async () => {
  const missing: string[] = [];
  for (const path of await documents()) {
    const text = await readFile(join(ROOT, path), 'utf8');
    for (const [name] of text.matchAll(SOURCE_PATH)) {
      if (!existsSync(join(ROOT, name))) missing.push(`${path}: ${name}`);
    }
  }
  assert.deepEqual(missing, []);
});

test('every decision record states its context, decision and consequences', async () => {
  const folder = 'docs/decisions';
  const overview = await readFile(join(ROOT, folder, 'README.md'), 'utf8');
  const areas = (await readdir(join(ROOT, folder))).filter((name) => name !== 'README.md');
  for (const area of areas) {
    assert.ok(overview.includes(`](${area})`), `${folder}/README.md does not list ${area}`);
    const [, ...records] = (await readFile(join(ROOT, folder, area), 'utf8')).split(/^## /m);
    assert.ok(records.length > 0, area);
    for (const record of records) {
      const items = [...record.matchAll(/^- \*\*(\w+)\.\*\* \S/gm)].map(([, item]) => item);
      const heading = `${area}: ${record.slice(0, record.indexOf('\n'))}`;
      assert.deepEqual(items, ['Context', 'Decision', 'Consequences'], heading);
    }
  }
});

test('every setting that a document names exists', async () => {
  const known = new Set(describeSettings().map(({ variable }) => variable));
  for (const others of ['SAGITTA_URL', 'SAGITTA_API_KEY', 'SAGITTA_BENCH_PYTHON'])
    known.add(others);
  const unknown: string[] = [];
  for (const path of [...(await documents()), 'Dockerfile.cuda']) {
    const text = await readFile(join(ROOT, path), 'utf8');
    for (const [name] of text.matchAll(/\bSAGITTA_[A-Z][A-Z_]*[A-Z]\b/g)) {
      if (!known.has(name) && !name.startsWith('SAGITTA_TEST_')) unknown.push(`${path}: ${name}`);
    }
  }
  assert.deepEqual(unknown, []);
});

test('every error code in the table of the guide exists', async () => {
  const guide = await readFile(join(ROOT, 'docs/api-guide.md'), 'utf8');
  const table = guide.slice(guide.indexOf('| status | codes'));
  const codes = [...table.matchAll(/`([a-z]+(?:_[a-z]+)+|[a-z]+)`/g)].map(([, code]) => code!);
  assert.ok(codes.length > 10);
  assert.deepEqual(
    codes.filter((code) => !(code in ERROR_TITLES)),
    [],
  );
});

test('the comparison of answers leaves out values that are marked as changing', () => {
  const json = (text: string) => ({ language: 'json', text });
  assertAnswer('', '{"a":[1,{"b":"xyz"}]}', json('{"a": [1, {"b": "x…"}]}'));
  assertAnswer('', '{"a":{"b":1},"c":2}', json('{"a": "…", "c": 2}'));
  assertAnswer('', 'one  two\nthree\n', { language: 'text', text: 'one …\nthree\n' });
  for (const [answer, expected] of [
    ['{"a":2}', '{"a": 1}'],
    ['{"a":1,"b":2}', '{"a": 1}'],
    ['{"a":1}', '{"a": 1, "b": "…"}'],
    ['{"a":"yx"}', '{"a": "x…"}'],
    ['[1,2]', '[1]'],
  ] as const) {
    assert.throws(() => assertAnswer('', answer, json(expected)), `${answer} is ${expected}`);
  }
  assert.throws(() => assertAnswer('', 'two\n', { language: 'text', text: 'one\n' }));
});

/** Shell examples in order, each with the answer that the next fence shows, if it shows one. */
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

/** Runs the examples of a document in one shell, and compares what they print with what it shows. */
async function runExamples(path: string, run: (script: string) => Promise<string>): Promise<void> {
  const examples = examplesOf(await readFile(join(ROOT, path), 'utf8'));
  assert.ok(examples.some(({ expected }) => expected !== undefined));
  const script = examples.map(({ command }) => `${command}\nprintf '${SEPARATOR}'\n`).join('');
  const answers = (await run(script)).split(SEPARATOR);
  assert.equal(answers.length, examples.length + 1, 'an example ended the shell');
  examples.forEach(({ line, expected }, at) => {
    if (expected !== undefined) assertAnswer(`${path}:${line}`, answers[at]!, expected);
  });
}

/** Puts `sagitta` on the PATH of a shell. */
async function putCommandInto(folder: string): Promise<void> {
  const main = join(ROOT, 'scripts/sagitta.mjs');
  const path = join(folder, 'sagitta');
  await writeFile(path, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
  await chmod(path, 0o755);
}

/**
 * What the commands print. Throws when one fails or, unless it may, writes to stderr. What a failed script
 * has left in the background is ended.
 */
function runShell(
  script: string,
  environment: NodeJS.ProcessEnv,
  { cwd, mayWriteToStderr = false }: { readonly cwd: string; readonly mayWriteToStderr?: boolean },
): Promise<string> {
  const shell = spawn('bash', ['-euo', 'pipefail', '-s'], {
    cwd,
    env: { ...process.env, ...environment },
    // A process group of its own.
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

/** A server in the background would keep the output of the shell open. */
function endGroup(id: number): void {
  try {
    process.kill(-id, 'SIGTERM');
  } catch (error) {
    // Nothing was left.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function assertAnswer(
  place: string,
  answer: string,
  expected: { readonly language: string; readonly text: string },
): void {
  if (expected.language === 'json') {
    const wanted: unknown = JSON.parse(expected.text);
    assert.deepEqual(masked(JSON.parse(answer), wanted), wanted, place);
    return;
  }
  const lines = (text: string): string[] => text.trimEnd().split('\n');
  assert.deepEqual(
    masked(
      lines(answer).map((line) => line.trimEnd()),
      lines(expected.text),
    ),
    lines(expected.text),
    place,
  );
}

/** The value found, with values that may change replaced by those of the document. */
function masked(found: unknown, wanted: unknown): unknown {
  if (wanted === ANYTHING && found !== undefined) return wanted;
  if (typeof wanted === 'string' && typeof found === 'string' && wanted.endsWith(ANYTHING)) {
    return found.startsWith(wanted.slice(0, -ANYTHING.length)) ? wanted : found;
  }
  if (Array.isArray(found) && Array.isArray(wanted)) {
    return found.map((item, at) => masked(item, wanted[at]));
  }
  if (isObject(found) && isObject(wanted)) {
    const members = Object.entries(found).map(([name, value]) => [
      name,
      masked(value, wanted[name]),
    ]);
    return Object.fromEntries(members);
  }
  return found;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Every Markdown file that belongs to the repository. */
async function documents(): Promise<string[]> {
  const atRoot = (await readdir(ROOT)).filter((name) => name.endsWith('.md'));
  const below = await Promise.all(
    ['docs', 'examples', 'kernels', 'src', 'test'].map(async (folder) => {
      const names = await readdir(join(ROOT, folder), { recursive: true });
      return names.filter((name) => name.endsWith('.md')).map((name) => `${folder}/${name}`);
    }),
  );
  return [...atRoot, ...below.flat()].filter((path) => !path.includes('node_modules'));
}
