// Checks that the files of the container image agree with the repository and with each other: what
// Dockerfile.cuda copies and runs exists, and so do the settings of it and of compose.yaml. Whether
// the image's commands work is tested by scripts/container/replay.mjs.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describeSettings } from '../../src/platform/config.js';
import { startTestServer } from '../support/server-in-process.js';

interface Instruction {
  readonly line: number;
  readonly keyword: string;
  readonly flags: Readonly<Record<string, string>>;
  readonly words: readonly string[];
  readonly text: string;
}

interface Stage {
  readonly name: string;
  readonly base: string;
  readonly instructions: readonly Instruction[];
}

interface Dockerfiles {
  parseDockerfile(text: string): Stage[];
  readEnvironment(instruction: Instruction): Record<string, string>;
  createIgnore(text: string): (path: string) => boolean;
}

interface Service {
  readonly ports: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly volumes: readonly string[];
  readonly read_only: boolean;
  readonly tmpfs: readonly string[];
  readonly stop_grace_period: string;
  readonly healthcheck: { readonly test: readonly string[] };
  readonly build: { readonly context: string; readonly dockerfile: string };
  readonly deploy: {
    readonly resources: { readonly reservations: { readonly devices: readonly object[] } };
  } | null;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** The compiled test is at dist/test. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const scriptUrl = (path: string): string => pathToFileURL(join(ROOT, path)).href;

const { parseDockerfile, readEnvironment, createIgnore } = (await import(
  scriptUrl('scripts/container/dockerfile.mjs')
)) as Dockerfiles;
const { listRepositoryFiles } = (await import(scriptUrl('scripts/bundle/files.mjs'))) as {
  listRepositoryFiles(root: string): string[];
};

const stages = parseDockerfile(read('Dockerfile.cuda'));
const isIgnored = createIgnore(read('.dockerignore'));
const image = stages.at(-1)!;
const last = (keyword: string): Instruction =>
  image.instructions.findLast((instruction) => instruction.keyword === keyword)!;
const all = (keyword: string): Instruction[] =>
  stages.flatMap(({ instructions }) => instructions.filter((each) => each.keyword === keyword));

function readYaml(path: string): Compose {
  const require = createRequire(createRequire(import.meta.url).resolve('@fastify/swagger'));
  const { parse } = require('yaml') as { parse(text: string, options: object): Compose };
  return parse(read(path), { customTags: [{ tag: '!reset', resolve: () => null }] });
}

test('every file that the image is built from exists and is not excluded by .dockerignore', () => {
  const sources = all('COPY')
    .filter(({ flags }) => flags.from === undefined)
    .flatMap(({ words }) => words.slice(0, -1));
  assert.ok(sources.length > 5);
  for (const source of sources) {
    assert.ok(existsSync(join(ROOT, source)), `${source} is copied but is not there`);
    assert.ok(!isIgnored(source), `${source} is copied but .dockerignore keeps it out`);
  }
});

test('a stage of the Dockerfile copies only from stages before it', () => {
  stages.forEach(({ instructions }, at) => {
    const before = stages.slice(0, at).map(({ name }) => name);
    for (const { line, flags } of instructions) {
      if (flags.from !== undefined) assert.ok(before.includes(flags.from), `line ${line}`);
    }
  });
});

test('the image runs only scripts while it is built, which can also be run elsewhere', () => {
  const commands = all('RUN').map(({ words }) => words[0]!);
  assert.ok(commands.length > 3);
  for (const command of commands) {
    assert.match(command, /^scripts\/container\/[a-z-]+$/);
    accessSync(join(ROOT, command), constants.X_OK);
  }
});

test('base images are pinned to a release, and both CUDA images to the same one', () => {
  const names = new Set(stages.map(({ name }) => name));
  const bases = stages.map(({ base }) => base).filter((base) => !names.has(base));
  for (const base of bases) assert.match(base, /^[a-z/]+:\d+\.\d+\.\d+-[\w.-]+(@sha256:\w{64})?$/);
  const releases = bases
    .filter((base) => base.startsWith('nvidia/'))
    .map((base) => base.split('-')[0]);
  assert.equal(releases.length, 2);
  assert.equal(releases[0], releases[1]);
});

test('.dockerignore includes the sources and excludes everything else', () => {
  const inside = ['src/main.ts', 'kernels/kernels.h', 'examples/data/wordnet.arrow', 'LICENSE'];
  const outside = [
    ['.git/config', 'node_modules/fastify/package.json', 'bench/peers/node_modules/a/index.js'],
    ['build/kernels/sagitta.node', 'dist/src/main.js', 'data/lock', 'secret.env', 'src/a.log'],
  ].flat();
  for (const path of inside) assert.ok(!isIgnored(path), `${path} is kept out`);
  for (const path of outside) assert.ok(isIgnored(path), `${path} is let in`);
});

test('the image runs as an unprivileged user who owns the data', () => {
  const user = last('USER').text;
  assert.match(user, /^[1-9]\d*:[1-9]\d*$/);
  const data = image.instructions.find(({ words }) => words.at(-1) === '/data')!;
  assert.equal(data.flags.chown, user);
  assert.equal(last('VOLUME').text, '/data');
  assert.equal(readEnvironment(last('ENV')).SAGITTA_DATA_DIR, '/data');
});

test('the image starts and health-checks files that the bundle contains', () => {
  const files = listRepositoryFiles(ROOT);
  assert.deepEqual(last('ENTRYPOINT').words, ['/app/bin/sagitta']);
  const [node, script] = last('HEALTHCHECK').words;
  assert.equal(node, '/app/runtime/node');
  assert.ok(files.includes(script!.replace('/app/', '')), `${script} is not in the bundle`);
});

test('every setting in the image and in compose.yaml exists', () => {
  const known = describeSettings().map(({ variable }) => variable);
  const set = {
    ...readEnvironment(last('ENV')),
    ...readYaml('compose.yaml').services.sagitta!.environment,
  };
  const ours = Object.keys(set).filter((name) => name.startsWith('SAGITTA_'));
  assert.ok(ours.length > 3);
  assert.deepEqual(
    ours.filter((name) => !known.includes(name)),
    [],
  );
});

test('compose.yaml runs the image read-only, on this machine only, with a GPU and time to stop', () => {
  const { services, volumes } = readYaml('compose.yaml');
  const service = services.sagitta!;
  const environment = readEnvironment(last('ENV'));
  assert.deepEqual(service.build, { context: '.', dockerfile: 'Dockerfile.cuda' });
  const port = environment.SAGITTA_PORT;
  assert.equal(last('EXPOSE').text, port);
  assert.deepEqual(service.ports, [`127.0.0.1:${port}:${port}`]);
  assert.equal(service.read_only, true);
  assert.match(service.tmpfs[0]!, /^\/tmp\b/);
  assert.deepEqual(service.volumes, [`data:${environment.SAGITTA_DATA_DIR}`]);
  assert.ok('data' in volumes);
  assert.deepEqual(service.healthcheck.test, ['CMD', ...last('HEALTHCHECK').words]);
  const graceMs = Number.parseInt(service.stop_grace_period, 10) * 1000;
  assert.ok(graceMs > Number(service.environment.SAGITTA_SHUTDOWN_MS));
  assert.deepEqual(service.deploy!.resources.reservations.devices, [
    { driver: 'nvidia', count: 'all', capabilities: ['gpu'] },
  ]);
});

test('the variant without a GPU removes the reservation of the GPU and nothing else', () => {
  assert.deepEqual(readYaml('compose.cpu.yaml'), { services: { sagitta: { deploy: null } } });
  assert.match(read('compose.cpu.yaml'), /deploy: !reset null/);
});

test('the health check succeeds for a ready server and fails without one', async () => {
  const script = join(ROOT, 'scripts/container/healthcheck.mjs');
  const server = await startTestServer();
  const env = { SAGITTA_HOST: '0.0.0.0', SAGITTA_PORT: new URL(server.url).port };
  const check = () => promisify(execFile)(process.execPath, [script], { env });
  try {
    assert.match((await check()).stdout, /returned status 200/);
  } finally {
    await server.close();
  }
  await assert.rejects(check(), { code: 1, stdout: /is not reachable: .*ECONNREFUSED/ });
});

test('a line of a Dockerfile that the parser does not know is an error', () => {
  const reference = (name: string): string => `\${${name}}`;
  assert.throws(() => parseDockerfile('FROM a\nADD x y\n'), /line 2: .*ADD x y/);
  assert.throws(
    () => parseDockerfile(`FROM ${reference('NOWHERE')}\n`),
    /line 1: there is no ARG NOWHERE/,
  );
  assert.throws(() => parseDockerfile('RUN x\n'), /before the first FROM/);
  const [stage] = parseDockerfile(`ARG A=b:1\nFROM ${reference('A')} AS c\nENV X=1 \\\n    Y=2\n`);
  assert.deepEqual([stage!.name, stage!.base], ['c', 'b:1']);
  assert.deepEqual(readEnvironment(stage!.instructions[0]!), { X: '1', Y: '2' });
});
