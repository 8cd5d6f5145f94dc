// Checks that the files of the container images agree with the repository and with each other: what the
// Dockerfiles copy and run exists, and so do the settings of them and of the compose files. Whether the
// commands of the images work is tested by scripts/container/replay.mjs.

import assert from 'node:assert/strict';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parse } from 'yaml';
import { describeSettings } from '../../src/platform/config.js';

/** The compiled test is at dist/test. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

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
  readonly command?: readonly string[];
  readonly build: { readonly context: string; readonly dockerfile: string };
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const scriptUrl = (path: string): string => pathToFileURL(join(ROOT, path)).href;

const { parseDockerfile, readEnvironment, createIgnore } = (await import(
  scriptUrl('scripts/container/dockerfile.mjs')
)) as Dockerfiles;
const { listRepositoryFiles } = (await import(scriptUrl('scripts/bundle/files.mjs'))) as {
  listRepositoryFiles(root: string): string[];
};

const DOCKERFILES = ['Dockerfile', 'Dockerfile.cuda'];
const COMPOSE = 'deploy/compose/compose.yaml';
const stagesOf = (path: string): Stage[] => parseDockerfile(read(path));
const isIgnored = createIgnore(read('.dockerignore'));
/** The last instruction with the keyword in the stage that becomes the image. */
const last = (path: string, keyword: string): Instruction =>
  stagesOf(path)
    .at(-1)!
    .instructions.findLast((instruction) => instruction.keyword === keyword)!;
const all = (path: string, keyword: string): Instruction[] =>
  stagesOf(path).flatMap(({ instructions }) =>
    instructions.filter((each) => each.keyword === keyword),
  );

function readYaml<Content = Compose>(path: string): Content {
  return parse(read(path), { merge: true }) as Content;
}

for (const path of DOCKERFILES) {
  test(`every file that ${path} copies exists and is not excluded by .dockerignore`, () => {
    const sources = all(path, 'COPY')
      .filter(({ flags }) => flags.from === undefined)
      .flatMap(({ words }) => words.slice(0, -1));
    assert.ok(sources.length > 5);
    for (const source of sources) {
      assert.ok(existsSync(join(ROOT, source)), `${source} is copied but is not there`);
      assert.ok(!isIgnored(source), `${source} is copied but .dockerignore keeps it out`);
    }
  });

  test(`a stage of ${path} copies only from stages before it`, () => {
    const stages = stagesOf(path);
    stages.forEach(({ instructions }, at) => {
      const before = stages.slice(0, at).map(({ name }) => name);
      for (const { line, flags } of instructions) {
        if (flags.from !== undefined) assert.ok(before.includes(flags.from), `line ${line}`);
      }
    });
  });

  test(`${path} runs only scripts, which can also be run elsewhere`, () => {
    const commands = all(path, 'RUN').map(({ words }) => words[0]!);
    assert.ok(commands.length > 3);
    for (const command of commands) {
      assert.match(command, /^scripts\/container\/[a-z-]+$/);
      accessSync(join(ROOT, command), constants.X_OK);
    }
  });

  test(`the base images of ${path} are pinned to a release`, () => {
    const stages = stagesOf(path);
    const names = new Set(stages.map(({ name }) => name));
    const bases = stages.map(({ base }) => base).filter((base) => !names.has(base));
    assert.ok(bases.length > 1);
    for (const base of bases) assert.match(base, /^[a-z/]+:\d+\.\d+(\.\d+)?-[\w.-]+$/);
  });

  test(`the image of ${path} runs as an unprivileged user who owns the data`, () => {
    const user = last(path, 'USER').text;
    assert.match(user, /^[1-9]\d*:[1-9]\d*$/);
    const { instructions } = stagesOf(path).at(-1)!;
    const data = instructions.find(({ words }) => words.at(-1) === '/data')!;
    assert.equal(data.flags.chown, user);
    assert.equal(last(path, 'VOLUME').text, '/data');
    assert.equal(readEnvironment(last(path, 'ENV')).SAGITTA_DATA_DIR, '/data');
  });

  test(`the image of ${path} starts and health-checks files that the bundle contains`, () => {
    const files = listRepositoryFiles(ROOT);
    assert.deepEqual(last(path, 'ENTRYPOINT').words, ['/app/bin/sagitta']);
    const [node, script] = last(path, 'HEALTHCHECK').words;
    assert.equal(node, '/app/runtime/node');
    assert.ok(files.includes(script!.replace('/app/', '')), `${script} is not in the bundle`);
  });

  test(`every setting in ${path} exists`, () => {
    assert.deepEqual(unknownSettings(readEnvironment(last(path, 'ENV'))), []);
  });
}

test('both CUDA images are of the same release', () => {
  const releases = stagesOf('Dockerfile.cuda')
    .map(({ base }) => base)
    .filter((base) => base.startsWith('nvidia/'))
    .map((base) => base.split('-')[0]);
  assert.equal(releases.length, 2);
  assert.equal(releases[0], releases[1]);
});

test('the image without CUDA is built and started like the one with CUDA', () => {
  const [cpu, cuda] = DOCKERFILES.map((path) => {
    const stages = stagesOf(path).filter(({ name }) => name !== 'cuda');
    return stages.flatMap(({ instructions }) =>
      instructions
        .filter(({ flags }) => flags.from !== 'cuda')
        .map(({ keyword, flags, text }) => ({ keyword, flags, text })),
    );
  });
  assert.deepEqual(cpu, cuda);
});

function unknownSettings(environment: Readonly<Record<string, string>>): string[] {
  const known = describeSettings().map(({ variable }) => variable);
  const ours = Object.keys(environment).filter((name) => name.startsWith('SAGITTA_'));
  assert.ok(ours.length > 1);
  return ours.filter((name) => !known.includes(name));
}

test('.dockerignore includes the sources and excludes everything else', () => {
  const inside = ['src/main.ts', 'kernels/kernels.h', 'examples/data/wordnet.arrow', 'LICENSE'];
  const outside = [
    ['.git/config', 'node_modules/fastify/package.json', 'bench/peers/node_modules/a/index.js'],
    ['build/kernels/sagitta.node', 'dist/src/main.js', 'data/lock', 'secret.env', 'src/a.log'],
  ].flat();
  for (const path of inside) assert.ok(!isIgnored(path), `${path} is kept out`);
  for (const path of outside) assert.ok(isIgnored(path), `${path} is let in`);
});

test('compose.yaml runs the image read-only, on this machine only, with time to stop', () => {
  const { services, volumes } = readYaml(COMPOSE);
  const service = services.sagitta!;
  const environment = readEnvironment(last('Dockerfile', 'ENV'));
  assert.deepEqual(service.build, { context: '../..', dockerfile: 'Dockerfile' });
  const port = environment.SAGITTA_PORT;
  assert.equal(last('Dockerfile', 'EXPOSE').text, port);
  assert.deepEqual(service.ports, [`127.0.0.1:${port}:${port}`]);
  assert.equal(service.read_only, true);
  assert.match(service.tmpfs[0]!, /^\/tmp\b/);
  assert.deepEqual(service.volumes, [`data:${environment.SAGITTA_DATA_DIR}`]);
  assert.ok('data' in volumes);
  assert.deepEqual(service.healthcheck.test, ['CMD', ...last('Dockerfile', 'HEALTHCHECK').words]);
  assert.deepEqual(unknownSettings(service.environment), []);
  const graceMs = Number.parseInt(service.stop_grace_period, 10) * 1000;
  assert.ok(graceMs > Number(service.environment.SAGITTA_SHUTDOWN_MS));
});

test('compose.cuda.yaml changes the image, adds the GPU, and nothing else', () => {
  const devices = [{ driver: 'nvidia', count: 'all', capabilities: ['gpu'] }];
  const expected = {
    build: { dockerfile: 'Dockerfile.cuda' },
    image: 'sagitta:cuda',
    deploy: { resources: { reservations: { devices } } },
  };
  assert.deepEqual(readYaml<object>('deploy/compose/compose.cuda.yaml'), {
    services: { sagitta: expected },
  });
});

test('compose.cluster.yaml runs three nodes on three NATS servers, each with a folder of its own', () => {
  const { services } = readYaml('deploy/compose/compose.cluster.yaml');
  const servers = Object.keys(services).filter((name) => name.startsWith('nats-'));
  const nodes = Object.keys(services).filter((name) => name.startsWith('node-'));
  assert.equal(servers.length, 3);
  assert.equal(nodes.length, 3);
  const zones = nodes.map((name) => services[name]!.environment.SAGITTA_CLUSTER_ZONE);
  assert.equal(new Set(zones).size, 3);
  for (const name of nodes) {
    const { environment, ports, volumes, read_only: isReadOnly } = services[name]!;
    assert.deepEqual(unknownSettings(environment), []);
    assert.equal(
      environment.SAGITTA_CLUSTER,
      servers.map((server) => `nats://${server}:4222`).join(','),
    );
    assert.equal(environment.SAGITTA_CLUSTER_URL, `http://${name}:8484`);
    // Whoever has not said what they are does not get servers that let everybody in.
    assert.equal(environment.SAGITTA_CLUSTER_USER, 'sagitta');
    assert.match(environment.SAGITTA_CLUSTER_PASSWORD!, /^\$\{NATS_PASSWORD:\?/);
    assert.match(environment.SAGITTA_CLUSTER_SECRET!, /^\$\{SAGITTA_CLUSTER_SECRET:\?/);
    assert.ok(environment.SAGITTA_HOST_NAMES!.split(',').includes(name));
    assert.match(ports[0]!, /^127\.0\.0\.1:\d+:8484$/);
    assert.deepEqual(volumes, [`${name}:/data`, `blobs:${environment.SAGITTA_BLOBS}`]);
    assert.equal(isReadOnly, true);
  }
  const [user] = last('Dockerfile', 'USER').words;
  assert.deepEqual(services.blobs!.command, ['chown', user, '/blobs']);
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
