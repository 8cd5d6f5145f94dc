// Checks that the files for containers agree with the repository and with each other: the files that the Dockerfiles
// copy exist, and so do the settings in them and in the compose files. scripts/container/replay.mjs tests whether the
// commands of the images work.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { DockerfileParser } from 'dockerfile-ast';
import { parse } from 'yaml';
import { describeSettings } from '../../src/platform/config.js';

/** The compiled test is at dist/test. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

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
const dockerfileOf = (path: string) => DockerfileParser.parse(read(path));

const { listRepositoryFiles } = (await import(
  pathToFileURL(join(ROOT, 'scripts/bundle/files.mjs')).href
)) as { listRepositoryFiles(root: string): string[] };

const DOCKERFILES = ['Dockerfile', 'Dockerfile.cuda'];
const COMPOSE = 'deploy/compose/compose.yaml';
/** The arguments of the last instruction with the keyword. */
const last = (path: string, keyword: string): string =>
  dockerfileOf(path)
    .getInstructions()
    .findLast((instruction) => instruction.getKeyword() === keyword)!
    .getArgumentsContent()!;
/** The words of the last instruction with the keyword, which lists them in brackets. */
const wordsOf = (path: string, keyword: string): string[] =>
  JSON.parse(/\[.*\]$/.exec(last(path, keyword))![0]) as string[];

function environmentOf(path: string): Record<string, string> {
  const properties = dockerfileOf(path)
    .getENVs()
    .flatMap((instruction) => instruction.getProperties());
  return Object.fromEntries(
    properties.map((property) => [property.getName(), property.getValue()!]),
  );
}

/** The base images, with their arguments at their defaults. */
function basesOf(path: string): string[] {
  const dockerfile = dockerfileOf(path);
  return dockerfile.getFROMs().flatMap((from) => {
    const [, name] = /^\$\{(\w+)\}$/.exec(from.getImage()!) ?? [];
    if (name === undefined) return [];
    return [dockerfile.resolveVariable(name, from.getRange().start.line)!];
  });
}

function readYaml<Content = Compose>(path: string): Content {
  return parse(read(path), { merge: true }) as Content;
}

for (const path of DOCKERFILES) {
  test(`every file that ${path} copies exists and passes .dockerignore`, () => {
    const included = includedPaths();
    const sources = dockerfileOf(path)
      .getCOPYs()
      .filter((copy) => copy.getFlags().every((flag) => flag.getName() !== 'from'))
      .flatMap((copy) => copy.getArguments().slice(0, -1));
    assert.ok(sources.length > 3);
    for (const source of sources.map((argument) => argument.getValue())) {
      assert.ok(existsSync(join(ROOT, source)), `${source} is copied but does not exist`);
      const isIncluded = source === '.' || included.includes(source.split('/')[0]!);
      assert.ok(isIncluded, `${source} is copied but excluded by .dockerignore`);
    }
  });

  test(`the base images of ${path} are pinned to a release, and Node to a supported one`, () => {
    const bases = basesOf(path);
    assert.ok(bases.length > 1);
    for (const base of bases) assert.match(base, /^[a-z/]+:\d+\.\d+(\.\d+)?-[\w.-]+$/);
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    const numbersOf = (text: string) => /(\d+)\.(\d+)/.exec(text)!.slice(1).map(Number);
    const [major, minor] = numbersOf(bases.find((base) => base.startsWith('node:'))!);
    const [majorMin, minorMin] = numbersOf(engines.node);
    assert.ok(major! > majorMin! || (major === majorMin && minor! >= minorMin!), engines.node);
  });

  test(`the image of ${path} runs as an unprivileged user that owns the data`, () => {
    const user = last(path, 'USER');
    assert.match(user, /^[1-9]\d*:[1-9]\d*$/);
    assert.match(
      read(path),
      new RegExp(`^COPY --from=build --chown=${user} /image/data /data$`, 'm'),
    );
    assert.equal(last(path, 'VOLUME'), '/data');
    assert.equal(environmentOf(path).SAGITTA_DATA_DIR, '/data');
  });

  test(`the image of ${path} starts and health-checks files that the bundle contains`, () => {
    const files = listRepositoryFiles(ROOT);
    assert.deepEqual(wordsOf(path, 'ENTRYPOINT'), ['/app/bin/sagitta']);
    const [node, script] = wordsOf(path, 'HEALTHCHECK');
    assert.equal(node, '/app/runtime/node');
    assert.ok(files.includes(script!.replace('/app/', '')), `${script} is not in the bundle`);
  });

  test(`every setting in ${path} exists`, () => {
    assert.deepEqual(unknownSettings(environmentOf(path)), []);
  });
}

test('both CUDA images are from the same release', () => {
  const releases = basesOf('Dockerfile.cuda')
    .filter((base) => base.startsWith('nvidia/'))
    .map((base) => base.split('-')[0]);
  assert.equal(releases.length, 2);
  assert.equal(releases[0], releases[1]);
});

test('the images with and without CUDA are built and started in the same way', () => {
  const [cpu, cuda] = DOCKERFILES.map((path) => {
    const instructions = read(path).replace(/^FROM \S+ AS cuda$[\s\S]*?(?=^FROM)/m, '');
    const isShared = (line: string) => line !== '' && !/^(#|ARG|FROM)|--from=cuda/.test(line);
    return instructions.split('\n').filter(isShared);
  });
  assert.deepEqual(cpu, cuda);
});

function unknownSettings(environment: Readonly<Record<string, string>>): string[] {
  const known = describeSettings().map(({ variable }) => variable);
  const ours = Object.keys(environment).filter((name) => name.startsWith('SAGITTA_'));
  assert.ok(ours.length > 1);
  return ours.filter((name) => !known.includes(name));
}

/** The files and folders that .dockerignore includes. */
function includedPaths(): string[] {
  return [...read('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, path]) => path!);
}

test('compose.yaml runs the image read-only, reachable only from this machine, with time to stop', () => {
  const { services, volumes } = readYaml(COMPOSE);
  const service = services.sagitta!;
  const environment = environmentOf('Dockerfile');
  assert.deepEqual(service.build, { context: '../..', dockerfile: 'Dockerfile' });
  const port = environment.SAGITTA_PORT;
  assert.equal(last('Dockerfile', 'EXPOSE'), port);
  assert.deepEqual(service.ports, [`127.0.0.1:${port}:${port}`]);
  assert.equal(service.read_only, true);
  assert.match(service.tmpfs[0]!, /^\/tmp\b/);
  assert.deepEqual(service.volumes, [`data:${environment.SAGITTA_DATA_DIR}`]);
  assert.ok('data' in volumes);
  assert.deepEqual(service.healthcheck.test, ['CMD', ...wordsOf('Dockerfile', 'HEALTHCHECK')]);
  assert.deepEqual(unknownSettings(service.environment), []);
  const graceMs = Number.parseInt(service.stop_grace_period, 10) * 1000;
  assert.ok(graceMs > Number(service.environment.SAGITTA_SHUTDOWN_MS));
});

test('compose.cuda.yaml only changes the image and adds the GPU', () => {
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

test('compose.cluster.yaml runs three nodes on three NATS servers, each with its own folder', () => {
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
    // Compose refuses to start anything without a password and a secret.
    assert.equal(environment.SAGITTA_CLUSTER_USER, 'sagitta');
    assert.match(environment.SAGITTA_CLUSTER_PASSWORD!, /^\$\{NATS_PASSWORD:\?/);
    assert.match(environment.SAGITTA_CLUSTER_SECRET!, /^\$\{SAGITTA_CLUSTER_SECRET:\?/);
    assert.ok(environment.SAGITTA_HOST_NAMES!.split(',').includes(name));
    assert.match(ports[0]!, /^127\.0\.0\.1:\d+:8484$/);
    assert.deepEqual(volumes, [`${name}:/data`, `blobs:${environment.SAGITTA_BLOBS}`]);
    assert.equal(isReadOnly, true);
  }
  const user = last('Dockerfile', 'USER');
  assert.deepEqual(services.blobs!.command, ['chown', user, '/blobs']);
});
