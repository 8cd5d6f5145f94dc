// Renders the manifests for Kubernetes and checks them: every object has the members and types of its kind,
// what refers to something else finds it, and the settings, ports and paths are those of the server.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeSettings, loadConfig } from '../../src/platform/config.js';
import type { Kinds } from './kubernetes-kinds.js';

type Kind = keyof Kinds;
type KubernetesObject = Kinds[Kind];
type StatefulSet = Kinds['apps/v1 StatefulSet'];
type Service = Kinds['v1 Service'];
type ServiceMonitor = Kinds['monitoring.coreos.com/v1 ServiceMonitor'];

/** The compiled test is at dist/test. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FOLDER = join(ROOT, 'deploy/kubernetes');

const hasKubectl = spawnSync('kubectl', ['kustomize', '--help']).status === 0;
const skip = hasKubectl ? false : 'kubectl, which renders the manifests, is not installed';

function parseObjects(text: string): KubernetesObject[] {
  const require = createRequire(createRequire(import.meta.url).resolve('@fastify/swagger'));
  const { parseAllDocuments } = require('yaml') as {
    parseAllDocuments(text: string): { errors: Error[]; toJS(): KubernetesObject }[];
  };
  return parseAllDocuments(text).map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS();
  });
}

/** The objects of the base as they are written; nothing in them depends on kustomize. */
function readBase(): KubernetesObject[] {
  const files = readdirSync(join(FOLDER, 'base')).filter((name) => name !== 'kustomization.yaml');
  return files.flatMap((name) => parseObjects(readFileSync(join(FOLDER, 'base', name), 'utf8')));
}

/** Throws what kubectl prints when it fails. */
function render(folder: string): KubernetesObject[] {
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return parseObjects(stdout);
}

/** The base with both components. Kustomize takes relative paths only, so it is made in a copy. */
function renderWithGpu(): KubernetesObject[] {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-kubernetes-'));
  try {
    cpSync(FOLDER, folder, { recursive: true });
    const components = ['components/gpu', 'components/monitoring'];
    const kustomization = { resources: ['base'], components };
    writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization));
    return render(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function objectsOf<K extends Kind>(objects: readonly KubernetesObject[], kind: K): Kinds[K][] {
  return objects.filter((object): object is Kinds[K] => kindOf(object) === kind);
}

const kindOf = ({ apiVersion, kind }: KubernetesObject) => `${apiVersion} ${kind}`;

/** What the compiler says about the objects as values of the types of their kinds. */
function checkTypes(objects: readonly unknown[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-kubernetes-'));
  const kinds = JSON.stringify(join(ROOT, 'test/repository/kubernetes-kinds.js'));
  const lines = objects.map((object, at) => {
    const type = JSON.stringify(kindOf(object as KubernetesObject));
    return `export const object${at}: Kinds[${type}] = ${JSON.stringify(object, null, 1)};\n`;
  });
  const flags = '--noEmit --strict --skipLibCheck --module esnext --moduleResolution bundler';
  try {
    const path = join(folder, 'objects.ts');
    writeFileSync(path, `import type { Kinds } from ${kinds};\n${lines.join('')}`);
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    const args = [compiler, ...flags.split(' '), '--types', '', path];
    return spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' }).stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Whether an object with the labels is selected. */
function isSelected(
  selector: { readonly matchLabels?: Readonly<Record<string, string>> } | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  const wanted = Object.entries(selector?.matchLabels ?? {});
  return wanted.length > 0 && wanted.every(([name, value]) => labels?.[name] === value);
}

/** The references between the objects that lead nowhere. */
function brokenReferences(objects: readonly KubernetesObject[]): string[] {
  const [set] = objectsOf(objects, 'apps/v1 StatefulSet');
  const services = objectsOf(objects, 'v1 Service');
  const names = services.map(({ metadata }) => metadata?.name);
  const { serviceName } = set!.spec!;
  return [
    ...(names.includes(serviceName) ? [] : [`service ${serviceName}`]),
    ...brokenSelectors(objects, set!),
    ...brokenPorts(objects, set!),
    ...brokenVolumes(set!),
    ...objectsOf(objects, 'monitoring.coreos.com/v1 ServiceMonitor')
      .filter(({ spec }) => services.filter((service) => isMonitored(service, spec)).length !== 1)
      .map(({ metadata }) => `one service and port of monitor ${metadata.name}`),
  ];
}

/** Selectors that do not select the pod. */
function brokenSelectors(objects: readonly KubernetesObject[], set: StatefulSet): string[] {
  const { selector, template } = set.spec!;
  const services = objectsOf(objects, 'v1 Service');
  const policies = objectsOf(objects, 'networking.k8s.io/v1 NetworkPolicy');
  const budgets = objectsOf(objects, 'policy/v1 PodDisruptionBudget');
  return [
    selector,
    ...services.map(({ spec }) => ({ matchLabels: spec!.selector! })),
    ...policies.map(({ spec }) => spec!.podSelector),
    ...budgets.map(({ spec }) => spec!.selector),
  ]
    .filter((each) => !isSelected(each, template.metadata!.labels))
    .map((each) => `selector ${JSON.stringify(each)}`);
}

/** Names of ports that no container has. */
function brokenPorts(objects: readonly KubernetesObject[], set: StatefulSet): string[] {
  const { containers } = set.spec!.template.spec!;
  const services = objectsOf(objects, 'v1 Service');
  const policies = objectsOf(objects, 'networking.k8s.io/v1 NetworkPolicy');
  const known = containers.flatMap(({ ports = [] }) => ports).map(({ name }) => name as unknown);
  return [
    ...services.flatMap(({ spec }) => spec!.ports!).map(({ targetPort }) => targetPort),
    ...policies
      .flatMap(({ spec }) => spec!.ingress!)
      .flatMap(({ ports = [] }) => ports)
      .map(({ port }) => port),
    ...containers
      .flatMap((each) => [each.startupProbe, each.readinessProbe, each.livenessProbe])
      .map((probe) => probe?.httpGet?.port),
  ]
    .filter((port) => !known.includes(port))
    .map((port) => `port ${port}`);
}

/** Mounts of volumes that the pod does not have. */
function brokenVolumes(set: StatefulSet): string[] {
  const { template, volumeClaimTemplates = [] } = set.spec!;
  const { containers, initContainers = [], volumes = [] } = template.spec!;
  const claims = volumeClaimTemplates.map(({ metadata }) => metadata?.name);
  const known = [...volumes.map(({ name }) => name), ...claims];
  return [...containers, ...initContainers]
    .flatMap(({ volumeMounts = [] }) => volumeMounts)
    .filter(({ name }) => !known.includes(name))
    .map(({ name }) => `volume ${name}`);
}

function isMonitored({ metadata, spec }: Service, monitor: ServiceMonitor['spec']): boolean {
  const names = spec!.ports!.map(({ name }) => name);
  return (
    isSelected(monitor.selector, metadata?.labels) &&
    monitor.endpoints.every(({ port }) => names.includes(port))
  );
}

test('the objects of the base have the members and types of their kinds', () => {
  const objects = readBase();
  assert.equal(objects.length, 5);
  assert.equal(checkTypes(objects), '');
  const [set] = objectsOf(structuredClone(objects), 'apps/v1 StatefulSet');
  const complaints = checkTypes([
    { ...set, spec: { ...set!.spec, replicas: '1' } },
    { ...set, spec: { ...set!.spec, serviceNam: 'x' } },
    { ...set, spec: { ...set!.spec, serviceName: undefined } },
  ]);
  assert.match(complaints, /'string' is not assignable to type 'number'/);
  assert.match(complaints, /'"serviceNam"' does not exist/);
  assert.match(complaints, /'serviceName' is missing/);
});

test('what the base refers to exists', () => {
  assert.deepEqual(brokenReferences(readBase()), []);
  const text = JSON.stringify(readBase());
  for (const [found, replacement, broken] of [
    ['"targetPort":"https"', '"targetPort":"http"', ['port http', 'port http']],
    ['"serviceName":"sagitta-headless"', '"serviceName":"other"', ['service other']],
    ['"name":"backups","mountPath"', '"name":"backup","mountPath"', ['volume backup']],
    [
      '"maxUnavailable":0,"unhealthyPodEvictionPolicy":"AlwaysAllow","selector":{"matchLabels":{',
      '"selector":{"matchLabels":{"a":"b",',
      ['selector {"matchLabels":{"a":"b","app.kubernetes.io/name":"sagitta"}}'],
    ],
  ] as const) {
    const changed = JSON.parse(text.replaceAll(found, replacement)) as KubernetesObject[];
    assert.deepEqual(brokenReferences(changed), broken);
  }
});

test('the example and both components render to objects of their kinds that fit together', {
  skip,
}, () => {
  for (const [objects, expected] of [
    [render(join(FOLDER, 'overlays/example')), 'registry.example/sagitta:0.1.0'],
    [renderWithGpu(), 'sagitta-cuda'],
  ] as const) {
    assert.equal(checkTypes(objects), '');
    assert.deepEqual(brokenReferences(objects), []);
    assert.equal(objectsOf(objects, 'monitoring.coreos.com/v1 ServiceMonitor').length, 1);
    const [policy] = objectsOf(objects, 'networking.k8s.io/v1 NetworkPolicy');
    assert.equal(policy!.spec!.ingress!.length, 2);
    const [set] = objectsOf(objects, 'apps/v1 StatefulSet');
    const { containers, initContainers = [] } = set!.spec!.template.spec!;
    for (const { image } of [...containers, ...initContainers]) assert.equal(image, expected);
  }
});

test('the pod has settings, ports and paths of the server, and time to stop', () => {
  const [set] = objectsOf(readBase(), 'apps/v1 StatefulSet');
  const pod = set!.spec!.template.spec!;
  const [container] = pod.containers;
  const environment = container!.env!.map(({ name, value = '2' }) => [name, value] as const);
  const known = describeSettings().map(({ variable }) => variable);
  assert.deepEqual(
    environment.filter(([name]) => !known.includes(name)),
    [],
  );
  // Those of the image, which the Dockerfile sets.
  const image = { SAGITTA_HOST: '0.0.0.0', SAGITTA_DATA_DIR: '/data' };
  const config = loadConfig({ env: { ...image, ...Object.fromEntries(environment) } });
  const mounts = container!.volumeMounts!.map(({ mountPath }) => mountPath);
  for (const path of [config.dataDir, config.backupDir!, config.tlsCert!, config.tlsKey!]) {
    assert.ok(
      mounts.some((mount) => path === mount || path.startsWith(`${mount}/`)),
      path,
    );
  }
  assert.deepEqual(container!.ports, [{ name: 'https', containerPort: config.port }]);
  const { paths } = JSON.parse(readFileSync(join(ROOT, 'openapi.json'), 'utf8')) as {
    paths: Record<string, unknown>;
  };
  for (const probe of [
    container!.startupProbe,
    container!.readinessProbe,
    container!.livenessProbe,
  ]) {
    assert.ok(probe!.httpGet!.path! in paths, probe!.httpGet!.path);
    assert.equal(probe!.httpGet!.scheme, 'HTTPS');
  }
  const waitMs = Number(container!.lifecycle!.preStop!.exec!.command!.at(-1)) * 1000;
  assert.ok(pod.terminationGracePeriodSeconds! * 1000 > waitMs + config.shutdownMs);
});

test('the pod may do nothing that the restricted pod security standard forbids', () => {
  const [set] = objectsOf(readBase(), 'apps/v1 StatefulSet');
  const pod = set!.spec!.template.spec!;
  assert.equal(pod.enableServiceLinks, false);
  assert.equal(pod.automountServiceAccountToken, false);
  assert.equal(pod.securityContext!.runAsNonRoot, true);
  assert.deepEqual(pod.securityContext!.seccompProfile, { type: 'RuntimeDefault' });
  const { runAsUser, runAsGroup, fsGroup } = pod.securityContext!;
  const [, user, group] = /^USER (\d+):(\d+)$/m.exec(
    readFileSync(join(ROOT, 'Dockerfile'), 'utf8'),
  )!;
  assert.deepEqual([runAsUser, runAsGroup, fsGroup], [user, group, group].map(Number));
  for (const { securityContext, resources } of [...pod.containers, ...pod.initContainers!]) {
    assert.deepEqual(securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    assert.ok(resources!.requests!.cpu && resources!.limits!.memory);
  }
});
