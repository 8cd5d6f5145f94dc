// Builds an image's file tree without a container engine: executes the COPY and RUN instructions of a
// Dockerfile with a directory as the root of each stage. Then starts the server from the last stage as its
// user, runs the health check, and stops it.
//
//   node scripts/container/replay.mjs Dockerfile         in a temporary directory; needs npm and g++
//   … --dist DIRECTORY                                   with this dist, instead of building the same again
//   … Dockerfile.cuda                                    also needs nvcc
//   … Dockerfile.cuda --without-cuda                     without the CUDA kernels
//   … --node FILE                                        use another Node in the image
//
// Packages come from npm's cache if they are there, and compiled kernels from the folder that all builds share.
// Absolute arguments of RUN are relative to the stage's directory. Everything of the base images except
// Node comes from this machine; the existence of the base images and access to a GPU are not tested.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createIgnore, parseDockerfile, readEnvironment } from './dockerfile.mjs';

const START_MS_MAX = 60_000;
/** Scripts that are skipped where a command is not installed. */
const NEEDS = { 'scripts/container/build-cuda-kernels': 'nvcc' };
/** The script that makes what --dist names. */
const BUILD_SERVICE = 'scripts/container/build-service';
const isRoot = process.getuid() === 0;

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'without-cuda': { type: 'boolean', default: false },
    dist: { type: 'string' },
    node: { type: 'string', default: process.execPath },
  },
});
const isIgnored = createIgnore(readFileSync(join(root, '.dockerignore'), 'utf8'));
assert.equal(positionals.length, 1, 'expected the name of one Dockerfile');
const stages = parseDockerfile(readFileSync(join(root, positionals[0]), 'utf8'));
const scratch = mkdtempSync(join(tmpdir(), 'sagitta-image-'));
// The image's user needs access.
chmodSync(scratch, 0o755);
/** Stage name to { root, workdir, isSkipped }. */
const done = new Map();
try {
  for (const stage of stages) done.set(stage.name, build(stage));
  say(`${megabytesIn(done.get(stages.at(-1).name).root)} MB on top of ${stages.at(-1).base}`);
  await runImage(stages.at(-1));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function build({ name, base, instructions }) {
  const stage = { name, root: join(scratch, name), workdir: '/', isSkipped: false };
  say(`stage ${name}, from ${base}`);
  if (done.has(base)) execFileSync('cp', ['-al', done.get(base).root, stage.root]);
  else createBase(stage.root, base);
  if (done.has(base)) stage.workdir = done.get(base).workdir;
  for (const instruction of instructions) {
    if (instruction.keyword === 'WORKDIR') {
      stage.workdir = resolve(stage.workdir, instruction.text);
      mkdirSync(join(stage.root, stage.workdir), { recursive: true });
    }
    if (instruction.keyword === 'COPY') copy(stage, instruction);
    if (instruction.keyword === 'RUN') run(stage, instruction);
  }
  return stage;
}

/** Only Node's base images provide something that later instructions use. */
function createBase(folder, base) {
  mkdirSync(join(folder, 'usr/local/bin'), { recursive: true });
  if (base.startsWith('node:')) symlinkSync(options.node, join(folder, 'usr/local/bin/node'));
}

function copy(stage, { line, flags, words }) {
  const from = flags.from === undefined ? null : done.get(flags.from);
  assert.ok(from !== undefined, `line ${line}: no earlier stage is named ${flags.from}`);
  const sources = words.slice(0, -1);
  const target = join(stage.root, resolve(stage.workdir, words.at(-1)));
  const isFolder = words.at(-1).endsWith('/') || sources.length > 1;
  for (const source of sources) {
    const path = join(from?.root ?? root, source);
    if (from?.isSkipped && !existsSync(path)) {
      say(`skipped: COPY ${source} from ${from.name}, which was skipped`);
      continue;
    }
    assert.ok(existsSync(path), `line ${line}: COPY ${source}: no such file or directory`);
    const isWithin = statSync(path).isFile() && (isFolder || existsSync(target));
    const to = isWithin ? join(target, basename(source)) : target;
    const filter = (file) => from !== null || isIn(relative(root, file));
    mkdirSync(dirname(to), { recursive: true });
    cpSync(path, to, { recursive: true, dereference: true, filter });
    assert.ok(existsSync(to), `line ${line}: COPY ${source}: excluded by .dockerignore`);
    if (flags.chown !== undefined && isRoot) {
      const [user, group] = flags.chown.split(':').map(Number);
      lchownSync(to, user, group);
    }
  }
}

/** A directory is included if files below it may be. */
function isIn(path) {
  return !isIgnored(path) || (statSync(join(root, path)).isDirectory() && !isIgnored(`${path}/x`));
}

function run(stage, { line, words }) {
  const needed = NEEDS[words[0]];
  if (needed !== undefined && (options['without-cuda'] || !has(needed))) {
    const reason = options['without-cuda'] ? '--without-cuda' : `${needed} is not installed`;
    say(`skipped: RUN ${words.join(' ')} (${reason})`);
    stage.isSkipped = true;
    return;
  }
  const cwd = join(stage.root, stage.workdir);
  if (words[0] === BUILD_SERVICE && options.dist !== undefined) {
    say(`${options.dist} instead of RUN ${words.join(' ')}`);
    cpSync(options.dist, join(cwd, 'dist'), { recursive: true });
    return;
  }
  say(`RUN ${words.join(' ')}`);
  const [command, ...args] = words.map((word) => (word.startsWith('/') ? stage.root + word : word));
  const path = `${join(stage.root, 'usr/local/bin')}:${process.env.PATH}`;
  const env = { ...process.env, PATH: path, INIT_CWD: cwd, npm_config_prefer_offline: 'true' };
  const { status, error } = spawnSync(join(cwd, command), args, { cwd, env, stdio: 'inherit' });
  if (error) throw error;
  assert.equal(status, 0, `line ${line}: RUN ${words.join(' ')} exited with ${status}`);
}

function has(command) {
  return spawnSync(command, ['--version']).error === undefined;
}

/** Starts the server from the last stage, runs the health check and a request, and stops it. */
async function runImage({ name, instructions }) {
  const { root: image } = done.get(name);
  const last = (keyword) => instructions.findLast((each) => each.keyword === keyword);
  const within = (word) => (word.startsWith('/') ? join(image, word) : word);
  const port = await freePort();
  const env = { PATH: '/usr/bin:/bin', SAGITTA_INSECURE: 'yes' };
  for (const instruction of instructions.filter(({ keyword }) => keyword === 'ENV')) {
    for (const [key, value] of Object.entries(readEnvironment(instruction))) {
      env[key] = within(value);
    }
  }
  env.SAGITTA_PORT = String(port);
  const [uid, gid] = last('USER').text.split(':').map(Number);
  const spawning = { env, cwd: join(image, last('WORKDIR').text), ...(isRoot ? { uid, gid } : {}) };
  const [command, ...args] = [...last('ENTRYPOINT').words, ...last('CMD').words].map(within);
  const child = spawn(command, args, { ...spawning, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (text) => {
    log += text;
  });
  const ended = new Promise((settle) => {
    child.on('close', settle);
  });
  try {
    await becomeHealthy(last('HEALTHCHECK').words.map(within), spawning, () => log);
    const reply = await fetch(`http://127.0.0.1:${port}/v1/collections`);
    assert.equal(reply.status, 200);
    say(`running as ${isRoot ? `user ${uid}` : 'the current user'}, healthy, ${engineOf(log)}`);
  } finally {
    child.kill(last('STOPSIGNAL').text);
    assert.equal(await ended, 0, `the server did not exit with code 0: ${log}`);
  }
  say(`stopped on ${last('STOPSIGNAL').text} with exit code 0`);
}

async function becomeHealthy([command, ...args], spawning, logSoFar) {
  const deadline = performance.now() + START_MS_MAX;
  for (;;) {
    const check = spawnSync(command, args, { ...spawning, encoding: 'utf8' });
    if (check.status === 0) return;
    const output = `${check.error ?? check.stdout}${check.stderr}`;
    assert.ok(performance.now() < deadline, `not healthy: ${output}\n${logSoFar()}`);
    await sleep(500);
  }
}

function engineOf(log) {
  return `engine ${/"engine":"(\w+)"/.exec(log)?.[1]}`;
}

function megabytesIn(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = files.map((entry) => statSync(join(entry.parentPath, entry.name)).size);
  return Math.round(sizes.reduce((sum, size) => sum + size, 0) / 1e6);
}

function freePort() {
  return new Promise((settle) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => settle(port));
    });
  });
}

function say(text) {
  console.log(`replay: ${text}`);
}
