// Builds the contents of the container image without a container engine: follows the steps of the Dockerfile's first
// stage in a folder, using only the files of the build context and npm's cache. Then starts the server from the result
// as the image does, runs the health check and a request, and stops it.
//
//   node scripts/container/replay.mjs              needs npm and g++
//   … --dist DIRECTORY                             copies this dist instead of building it again
//
// This does not test whether the base images exist, what apt-get installs in them, or access to a GPU: this machine
// takes the place of the base images.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DockerfileParser } from 'dockerfile-ast';

const START_MS_MAX = 60_000;
/** The step that --dist replaces. */
const BUILD = 'npm run build';
const isRoot = process.getuid() === 0;

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { dist } = parseArgs({ options: { dist: { type: 'string' } } }).values;
const instructions = DockerfileParser.parse(
  readFileSync(join(ROOT, 'Dockerfile'), 'utf8'),
).getInstructions();
const lastStage = instructions.findLastIndex((each) => each.getKeyword() === 'FROM');
const context = listContext();
const scratch = mkdtempSync(join(tmpdir(), 'sagitta-image-'));
/** The folder that takes the place of / in the last stage. */
const image = join(scratch, 'image');
// The user of the image needs access.
chmodSync(scratch, 0o755);
try {
  build(instructions.slice(0, lastStage), join(scratch, 'build'));
  await runImage(instructions.slice(lastStage));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function build(steps, folder) {
  for (const step of steps) {
    if (step.getKeyword() === 'COPY') copy(wordsOf(step).slice(0, -1), folder);
    if (step.getKeyword() === 'RUN') run(step.getArgumentsContent(), folder);
  }
}

/** Copies sources from the context; they keep their paths. */
function copy(sources, folder) {
  for (const source of sources) {
    const isChosen = (path) => source === '.' || path === source || path.startsWith(`${source}/`);
    const paths = context.filter(isChosen);
    assert.notEqual(paths.length, 0, `COPY ${source}: the context has no such file`);
    for (const path of paths) cpSync(join(ROOT, path), join(folder, path), { dereference: true });
  }
}

/** The files that git tracks or would add, in the folders that .dockerignore lets through. */
function listContext() {
  const ignore = readFileSync(join(ROOT, '.dockerignore'), 'utf8');
  const included = [...ignore.matchAll(/^!(\S+)$/gm)].map(([, name]) => name);
  const words = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...included];
  const paths = execFileSync('git', words, { cwd: ROOT, encoding: 'utf8' }).split('\0');
  return paths.filter((path) => path !== '' && existsSync(join(ROOT, path)));
}

function run(command, cwd) {
  if (command.startsWith('apt-get ')) return say(`skipped: RUN ${command}`);
  if (command === BUILD && dist !== undefined) {
    say(`${dist} instead of RUN ${command}`);
    return cpSync(dist, join(cwd, 'dist'), { recursive: true });
  }
  say(`RUN ${command}`);
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  const env = { ...process.env, PATH: path, npm_config_prefer_offline: 'true' };
  const inFolder = command.replaceAll(' /image/', ` ${image}/`);
  const { status } = spawnSync('sh', ['-euc', inFolder], { cwd, env, stdio: 'inherit' });
  assert.equal(status, 0, `RUN ${command} exited with ${status}`);
}

/** Starts the server as the last stage specifies, runs the health check and a request, and stops it. */
async function runImage(steps) {
  const find = (keyword) => steps.find((each) => each.getKeyword() === keyword);
  const within = (word) => (word.startsWith('/') ? join(image, word) : word);
  const commandOf = (keyword) => jsonOf(find(keyword)).map(within);
  const [uid, gid] = find('USER').getArgumentsContent().split(':').map(Number);
  if (isRoot) lchownSync(join(image, 'data'), uid, gid);
  const port = await freePort();
  const properties = find('ENV').getProperties();
  const env = {
    PATH: '/usr/bin:/bin',
    SAGITTA_INSECURE: 'yes',
    ...Object.fromEntries(properties.map((each) => [each.getName(), within(each.getValue())])),
    SAGITTA_PORT: String(port),
  };
  const spawning = { env, cwd: join(image, 'app'), ...(isRoot ? { uid, gid } : {}) };
  const [command, ...args] = [...commandOf('ENTRYPOINT'), ...commandOf('CMD')];
  const child = spawn(command, args, { ...spawning, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (text) => {
    log += text;
  });
  const ended = new Promise((settle) => {
    child.on('close', settle);
  });
  try {
    await becomeHealthy(commandOf('HEALTHCHECK'), spawning, () => log);
    const reply = await fetch(`http://127.0.0.1:${port}/v1/collections`);
    assert.equal(reply.status, 200);
    const engine = /"engine":"(\w+)"/.exec(log)?.[1];
    say(`healthy as ${isRoot ? `user ${uid}` : 'the current user'}, engine ${engine}`);
  } finally {
    child.kill(find('STOPSIGNAL').getArgumentsContent());
    assert.equal(await ended, 0, `the server did not exit with code 0: ${log}`);
  }
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

function wordsOf(instruction) {
  return instruction.getArguments().map((argument) => argument.getValue());
}

/** The words of a command in brackets, whether or not options and CMD precede it. */
function jsonOf(instruction) {
  return JSON.parse(/\[.*\]$/.exec(instruction.getArgumentsContent())[0]);
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
