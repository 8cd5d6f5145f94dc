// Builds a bundle and tests it as a user would run it: unpacked by tar, read-only, called through a
// symbolic link from another directory, and with an empty environment.
//
//   node scripts/bundle/test.mjs                      builds into a temporary directory
//   node scripts/bundle/test.mjs --archive FILE       tests an existing bundle
//   … --twice                                         also whether a second build is identical, in the nightly run
//   … --dist DIRECTORY --node FILE                    as for scripts/bundle/bundle.mjs

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** An empty environment: a node in PATH, a locale or a home could hide what the bundle lacks. */
const ENVIRONMENT = { PATH: '/usr/bin:/bin' };
const START_MS_MAX = 120_000;
const COMMAND_MS_MAX = 300_000;

const { values: options } = parseArgs({
  options: {
    archive: { type: 'string' },
    twice: { type: 'boolean', default: false },
    dist: { type: 'string', default: join(root, 'dist') },
    node: { type: 'string', default: process.execPath },
  },
});
const scratch = mkdtempSync(join(tmpdir(), 'sagitta-bundle-'));
try {
  const archive = options.archive ?? build('one');
  if (options.twice) {
    assert.equal(hashOf(build('two')), hashOf(archive), 'two builds of the same inputs differ');
    step('two builds of the same inputs are identical');
  }
  const home = unpack(archive);
  checkContents(home);
  const before = stampsOf(home);
  const elsewhere = join(scratch, 'elsewhere');
  mkdirSync(elsewhere);
  const command = join(elsewhere, 'sagitta-link');
  symlinkSync(join(home, 'bin', 'sagitta'), command);
  const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  assert.equal(run(command, ['--version'], elsewhere).trim(), version);
  assert.match(run(command, ['--help'], elsewhere), /^ {2}serve\b/m);
  step('--version and --help work through a symbolic link from another directory');
  checkPackages(home);
  for (const engine of ['auto', 'wasm', 'reference']) await checkServer(command, engine);
  await checkDemo(command, elsewhere);
  // One case for each engine: the tests of the engines run the others.
  run(command, ['selftest', '--case', 'over random rows'], elsewhere);
  step('selftest succeeds');
  run(command, ['bench', 'rest'], elsewhere);
  step('bench succeeds');
  // Root can write to a read-only directory, so the permissions alone would not show it.
  assert.deepEqual(stampsOf(home), before, 'a command wrote to the bundle');
  step('nothing was written to the bundle');
} finally {
  execFileSync('chmod', ['-R', 'u+w', scratch]);
  rmSync(scratch, { recursive: true });
}

function build(name) {
  const out = join(scratch, name);
  const given = ['--out', out, '--dist', options.dist, '--node', options.node];
  const output = run(
    process.execPath,
    [join(root, 'scripts', 'bundle', 'bundle.mjs'), ...given],
    root,
  );
  if (name === 'one') process.stdout.write(output);
  return join(out, readdirSync(out)[0]);
}

/** Unpacks the archive and makes it read-only. Returns the bundle's directory. */
function unpack(archive) {
  const folder = join(scratch, 'unpacked');
  mkdirSync(folder);
  execFileSync('tar', ['-xzf', archive, '-C', folder]);
  const tops = readdirSync(folder);
  assert.equal(tops.length, 1, `the archive unpacks to ${tops.join(', ')}; expected one directory`);
  execFileSync('chmod', ['-R', 'a-w', folder]);
  return join(folder, tops[0]);
}

function checkContents(home) {
  const files = readdirSync(home, { recursive: true });
  const unwanted = files.filter((path) => {
    const isPackage = path.startsWith('node_modules/');
    if (isPackage && /\.(d\.[mc]?ts|map|musl\.node)$/.test(path)) return true;
    if (/^dist\/.*\.map$|^build\/kernels\/objects/.test(path)) return true;
    return /^node_modules\/(@biomejs|@redocly|typescript|@typescript|fast-check|@types)/.test(path);
  });
  assert.deepEqual(unwanted.slice(0, 10), [], 'the bundle contains unwanted files');
  for (const path of ['LICENSE', 'NOTICE', 'THIRD-PARTY.md', 'runtime/LICENSE']) {
    assert.ok(files.includes(path), `the bundle does not contain ${path}`);
  }
  assert.deepEqual(
    missingImports(home, files),
    [],
    'files of the bundle import files that are missing',
  );
  step(`${files.length} files and directories, none for development or another platform`);
}

/** Packages of which the bundle has one build of several load, those of WebAssembly completely. */
function checkPackages(home) {
  const script =
    "process.getBuiltinModule('module').createRequire(import.meta.url)('re2js');" +
    "await import('parquet-wasm/node'); await (await import('h5wasm/node')).default.ready;";
  run(join(home, 'runtime', 'node'), ['--input-type=module', '--eval', script], home);
  step('re2js, parquet-wasm and h5wasm load');
}

/** Relative imports without a target, including those that no test executes. */
function missingImports(home, files) {
  const pattern = /(?:\bfrom\s*|\brequire\(|^import\s*)(['"])(\.{1,2}\/[^'"]+)\1/gm;
  const endings = ['', '.js', '.json', '.cjs', '/index.js', '/package.json'];
  const there = new Set(files);
  return files
    .filter((path) => /\.[cm]?js$/.test(path) && lstatSync(join(home, path)).isFile())
    .flatMap((path) =>
      [...readFileSync(join(home, path), 'utf8').matchAll(pattern)]
        // Directory imports may end in a slash.
        .map(([, , name]) => ({ name, target: join(dirname(path), name, '.') }))
        // A list of prebuilt binaries names those of every platform.
        .filter(({ name }) => !name.endsWith('.node') && !name.endsWith('.wasi.cjs'))
        .filter(({ target }) => !endings.some((ending) => there.has(target + ending)))
        .map(({ name }) => `${path}: ${name}`),
    );
}

/** Creates a collection, writes and queries, then stops the server and checks its exit code. */
async function checkServer(command, engine) {
  const data = join(scratch, `data-${engine}`);
  const server = await start(command, ['serve', '--port', '0', '--data-dir', data], {
    SAGITTA_ENGINE: engine,
  });
  try {
    const call = async (method, path, body) => {
      const reply = await fetch(`${server.url}${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await reply.text();
      assert.ok(reply.ok, `${method} ${path} failed with status ${reply.status}: ${text}`);
      return text;
    };
    await call('POST', '/v1/collections', { id: 'docs', dimension: 3 });
    const vectors = [
      { id: 'a', values: [1, 0, 0] },
      { id: 'b', values: [0, 1, 0] },
    ];
    await call('POST', '/v1/collections/docs/vectors', { vectors });
    const query = { vector: [0.1, 0.9, 0], top_k: 1 };
    const { matches } = JSON.parse(await call('POST', '/v1/collections/docs/query', query));
    assert.deepEqual(
      matches.map(({ id }) => id),
      ['b'],
    );
    assert.match(await call('GET', '/docs/'), /<html/i);
  } finally {
    assert.equal(await server.stop(), 0, 'the server did not exit with code 0');
  }
  step(`serve works with SAGITTA_ENGINE=${engine} (engine ${server.engine}) and stops`);
}

async function checkDemo(command, folder) {
  const environment = { SAGITTA_PORT: '0', SAGITTA_DATA_DIR: join(folder, 'demo') };
  const server = await start(command, ['demo'], environment);
  assert.equal(await server.stop(), 0, 'the demo did not exit with code 0');
  step('demo loads its sample and stops');
}

/** Resolves when the command has printed its URL. */
async function start(command, args, environment) {
  const child = spawn(command, args, {
    cwd: join(scratch, 'elsewhere'),
    env: { ...ENVIRONMENT, ...environment },
  });
  const ended = new Promise((resolve) => {
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    log += text;
  });
  const deadline = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX);
  for await (const line of createInterface({ input: child.stdout })) {
    const [url] = /http:\/\/[\d.]+:\d+/.exec(line) ?? [];
    if (url === undefined) continue;
    clearTimeout(deadline);
    const stop = () => {
      child.kill('SIGTERM');
      return ended;
    };
    child.stdout.resume();
    return { url, engine: /"engine":"(\w+)"/.exec(log)?.[1] ?? 'not logged', stop };
  }
  throw new Error(`${args.join(' ')} exited with ${await ended} before it was listening: ${log}`);
}

/** The command's stdout. Throws with its output on failure. */
function run(command, args, cwd) {
  const env = command === process.execPath ? process.env : ENVIRONMENT;
  const done = spawnSync(command, args, { cwd, env, encoding: 'utf8', timeout: COMMAND_MS_MAX });
  if (done.status === 0) return done.stdout;
  const output = `${done.stdout}${done.stderr}`.slice(-2000);
  throw new Error(
    `${command} ${args.join(' ')} exited with ${done.status ?? done.error}: ${output}`,
  );
}

/** Path, size and change time of all files. */
function stampsOf(folder) {
  return readdirSync(folder, { recursive: true })
    .sort()
    .map((path) => {
      const { size, ctimeMs } = lstatSync(join(folder, path));
      return `${path} ${size} ${ctimeMs}`;
    });
}

function hashOf(file) {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

function step(text) {
  console.log(`test-bundle: ${text}`);
}
