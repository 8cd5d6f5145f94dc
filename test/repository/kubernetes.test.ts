// Renders the manifests for Kubernetes and checks them: every object has the members and types of its kind, every
// reference leads to an object, and the settings, ports and paths match those of the server.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { describeSettings, loadConfig } from '../../src/platform/config.js';
import { NATS_PROGRAM, natsMissing } from '../cluster/nats-servers.js';
import type { Kinds } from './kubernetes-kinds.js';

type Kind = keyof Kinds;
type KubernetesObject = Kinds[Kind];
type StatefulSet = Kinds['apps/v1 StatefulSet'];
type Service = Kinds['v1 Service'];
type NetworkPolicy = Kinds['networking.k8s.io/v1 NetworkPolicy'];
type ServiceMonitor = Kinds['monitoring.coreos.com/v1 ServiceMonitor'];

/** The compiled test is at dist/test. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FOLDER = join(ROOT, 'deploy/kubernetes');

const hasKubectl = spawnSync('kubectl', ['kustomize', '--help']).status === 0;
const skip = hasKubectl ? false : 'kubectl, which renders the manifests, is not installed';

function parseObjects(text: string): KubernetesObject[] {
  return parseAllDocuments(text).map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS() as KubernetesObject;
  });
}

/** The objects of the base as they are written, since nothing in them depends on kustomize. */
function readBase(): KubernetesObject[] {
  const files = readdirSync(join(FOLDER, 'base')).filter((name) => name !== 'kustomization.yaml');
  return files.flatMap((name) => parseObjects(readFileSync(join(FOLDER, 'base', name), 'utf8')));
}

/** Renders a folder with kubectl. Throws with its output if it fails. */
function render(folder: string): KubernetesObject[] {
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return parseObjects(stdout);
}

/** Renders the base with both components in a copy of the folder, because kustomize accepts only relative paths. */
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

/** Returns the compiler's errors about the objects as values of the types of their kinds. */
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

/** Whether the selector selects an object with these labels. */
function isSelected(
  selector: { readonly matchLabels?: Readonly<Record<string, string>> } | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  const wanted = Object.entries(selector?.matchLabels ?? {});
  return wanted.length > 0 && wanted.every(([name, value]) => labels?.[name] === value);
}

/** References from objects to objects that do not exist. */
function brokenReferences(objects: readonly KubernetesObject[]): string[] {
  const sets = objectsOf(objects, 'apps/v1 StatefulSet');
  const services = objectsOf(objects, 'v1 Service');
  const names = services.map(({ metadata }) => metadata?.name);
  return [
    ...sets
      .map(({ spec }) => spec!.serviceName)
      .filter((name) => !names.includes(name))
      .map((name) => `service ${name}`),
    ...brokenSelectors(objects, sets),
    ...brokenPorts(objects, sets),
    ...sets.flatMap(brokenVolumes),
    ...sets.flatMap((set) => brokenConfigMaps(objects, set)),
    ...objectsOf(objects, 'monitoring.coreos.com/v1 ServiceMonitor')
      .filter(({ spec }) => services.filter((service) => isMonitored(service, spec)).length !== 1)
      .map(({ metadata }) => `one service and port of monitor ${metadata.name}`),
  ];
}

/** The sets whose pods a selector selects. */
function selectedBy(
  selector: Parameters<typeof isSelected>[0],
  sets: readonly StatefulSet[],
): readonly StatefulSet[] {
  return sets.filter(({ spec }) => isSelected(selector, spec!.template.metadata!.labels));
}

/** Selectors that do not select the pods of exactly one set, and selectors of sets that miss their own pods. */
function brokenSelectors(
  objects: readonly KubernetesObject[],
  sets: readonly StatefulSet[],
): string[] {
  const services = objectsOf(objects, 'v1 Service');
  const policies = objectsOf(objects, 'networking.k8s.io/v1 NetworkPolicy');
  const budgets = objectsOf(objects, 'policy/v1 PodDisruptionBudget');
  const broken = [
    ...services.map(({ spec }) => ({ matchLabels: spec!.selector! })),
    ...policies.map(({ spec }) => spec!.podSelector),
    ...policies.flatMap(({ spec }) => neighboursIn(spec!).map(({ selector }) => selector)),
    ...budgets.map(({ spec }) => spec!.selector),
  ].filter((each) => selectedBy(each, sets).length !== 1);
  const ofOthers = sets
    .filter((set) => !selectedBy(set.spec!.selector, sets).includes(set))
    .map(({ spec }) => spec!.selector);
  return [...ofOthers, ...broken].map((each) => `selector ${JSON.stringify(each)}`);
}

/** Pods of the same namespace that a policy names and, for egress, the ports it opens to them. */
function neighboursIn({ ingress = [], egress = [] }: NonNullable<NetworkPolicy['spec']>) {
  const rules = [
    ...ingress.map(({ from = [] }) => ({ peers: from, ports: [] as unknown[] })),
    ...egress.map(({ to = [], ports = [] }) => ({
      peers: to,
      ports: ports.map(({ port }) => port as unknown),
    })),
  ];
  return rules.flatMap(({ peers, ports }) =>
    peers
      .filter(({ namespaceSelector }) => namespaceSelector === undefined)
      .map(({ podSelector }) => ({ selector: podSelector, ports })),
  );
}

/** Named ports that no container defines. */
function brokenPorts(objects: readonly KubernetesObject[], sets: readonly StatefulSet[]): string[] {
  const services = objectsOf(objects, 'v1 Service');
  const policies = objectsOf(objects, 'networking.k8s.io/v1 NetworkPolicy');
  const uses = [
    ...services.map(({ spec }) => ({
      pods: selectedBy({ matchLabels: spec!.selector! }, sets),
      ports: spec!.ports!.map(({ targetPort }) => targetPort as unknown),
    })),
    ...policies.map(({ spec }) => ({
      pods: selectedBy(spec!.podSelector, sets),
      ports: (spec!.ingress ?? [])
        .flatMap(({ ports = [] }) => ports)
        .map(({ port }) => port as unknown),
    })),
    ...policies
      .flatMap(({ spec }) => neighboursIn(spec!))
      .map(({ selector, ports }) => ({ pods: selectedBy(selector, sets), ports })),
    ...sets.map((set) => ({
      pods: [set],
      ports: set
        .spec!.template.spec!.containers.flatMap((each) => [
          each.startupProbe,
          each.readinessProbe,
          each.livenessProbe,
        ])
        .map((probe) => probe?.httpGet?.port as unknown),
    })),
  ];
  return uses.flatMap(({ pods, ports }) => {
    const known = pods
      .flatMap(({ spec }) => spec!.template.spec!.containers)
      .flatMap((container) => container.ports ?? [])
      .map(({ name }) => name as unknown);
    return ports.filter((port) => !known.includes(port)).map((port) => `port ${port}`);
  });
}

/** References to missing keys of config maps. */
function brokenConfigMaps(objects: readonly KubernetesObject[], set: StatefulSet): string[] {
  const { containers, volumes = [] } = set.spec!.template.spec!;
  const uses = [
    ...containers
      .flatMap(({ env = [] }) => env)
      .flatMap(({ valueFrom }) => valueFrom?.configMapKeyRef ?? []),
    ...volumes.flatMap(({ configMap }) =>
      (configMap?.items ?? (configMap ? [{ key: null }] : [])).map(({ key }) => ({
        name: configMap!.name,
        key,
      })),
    ),
  ];
  const maps = objectsOf(objects, 'v1 ConfigMap');
  return uses
    .filter(({ name, key }) => {
      const data = maps.find(({ metadata }) => metadata?.name === name)?.data;
      return data === undefined || (key !== null && !(key in data));
    })
    .map(({ name, key }) => `config map ${name}, key ${key}`);
}

/** Mounts of volumes that the pod does not define. */
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

test('everything that the base refers to exists', () => {
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

test('the example and both components render to valid objects that fit together', {
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

test('the cluster renders to nodes and NATS servers that know, reach and admit each other', {
  skip,
}, () => {
  const objects = render(join(FOLDER, 'overlays/cluster'));
  assert.equal(checkTypes(objects), '');
  assert.deepEqual(brokenReferences(objects), []);
  const text = JSON.stringify(objects);
  for (const [found, replacement, broken] of [
    ['{"port":"monitor"}', '{"port":"monitors"}', ['port monitors', 'port monitors']],
    ['"key":"blobs"', '"key":"blob"', ['config map sagitta-cluster, key blob']],
    ['"serviceName":"nats"', '"serviceName":"other"', ['service other']],
  ] as const) {
    const changed = JSON.parse(text.replaceAll(found, replacement)) as KubernetesObject[];
    assert.deepEqual(brokenReferences(changed), broken);
  }
  const sets = objectsOf(objects, 'apps/v1 StatefulSet');
  const [nats, sagitta] = ['nats', 'sagitta'].map((name) =>
    sets.find(({ metadata }) => metadata!.name === name),
  ) as [StatefulSet, StatefulSet];
  for (const { spec } of sets) {
    const { affinity } = spec!.template.spec!;
    const [apart] = affinity!.podAntiAffinity!.requiredDuringSchedulingIgnoredDuringExecution!;
    assert.equal(apart!.topologyKey, 'kubernetes.io/hostname');
    assert.ok(isSelected(apart!.labelSelector, spec!.template.metadata!.labels));
    const [spread] = spec!.template.spec!.topologySpreadConstraints!;
    assert.equal(spread!.topologyKey, 'topology.kubernetes.io/zone');
    assert.ok(isSelected(spread!.labelSelector, spec!.template.metadata!.labels));
    // Machines may lack this label.
    assert.equal(spread!.whenUnsatisfiable, 'ScheduleAnyway');
    assert.equal(spec!.replicas, 3);
    assert.equal(spec!.podManagementPolicy, 'Parallel');
  }
  for (const { spec } of objectsOf(objects, 'policy/v1 PodDisruptionBudget')) {
    assert.equal(spec!.maxUnavailable, 1);
  }
  const config = configOfNode(objects, sagitta, { zone: 'eu-central-1a' });
  assert.equal(config.clusterZone, 'eu-central-1a');
  // Older versions of Kubernetes do not copy the label to pods.
  assert.equal(configOfNode(objects, sagitta, { zone: '' }).clusterZone, null);
  const servers = podsOf(nats);
  assert.deepEqual(
    config.cluster,
    servers.map((host) => `nats://${host}:${portOf(nats, 'client')}`),
  );
  assert.deepEqual(
    config.clusterMonitors,
    servers.map((host) => `http://${host}:${portOf(nats, 'monitor')}`),
  );
  assert.equal(config.clusterUser, 'sagitta');
  assert.ok(config.clusterPassword !== null && config.clusterSecret !== null);
  assert.equal(config.clusterUrl, `https://sagitta-0.sagitta-headless:${config.port}`);
  assert.equal(podsOf(sagitta)[0], new URL(config.clusterUrl!).hostname);
  // It would create a data directory that a node cannot use.
  assert.deepEqual(sagitta.spec!.template.spec!.initContainers ?? [], []);
  assert.notEqual(config.tlsPrincipals, null);
});

test('the NATS servers accept their configuration, which meets the demands of nodes', {
  skip: natsMissing() ?? false,
}, () => {
  const path = join(FOLDER, 'components/cluster/nats.conf');
  const text = readFileSync(path, 'utf8');
  assert.match(text, /^ {2}sync_interval: always$/m);
  const [nats] = parseObjects(
    readFileSync(join(FOLDER, 'components/cluster/nats.yaml'), 'utf8'),
  ).filter((object) => kindOf(object) === 'apps/v1 StatefulSet') as [StatefulSet];
  const environment: Record<string, string> = {};
  for (const { name, value } of nats.spec!.template.spec!.containers[0]!.env!) {
    // Without quotes, digits alone would be a number.
    environment[name] = value?.replaceAll('$(PASSWORD)', '123456') ?? '';
  }
  const { status, stderr } = spawnSync(NATS_PROGRAM, ['--config', path, '-t'], {
    encoding: 'utf8',
    env: environment,
  });
  assert.equal(status, 0, stderr);
  for (const [name, line] of [
    ['client', /^port: (\d+)$/m],
    ['monitor', /^http_port: (\d+)$/m],
    ['route', /^ {2}port: (\d+)$/m],
  ] as const) {
    assert.equal(Number(line.exec(text)![1]), portOf(nats, name), name);
  }
  assert.deepEqual(
    [0, 1, 2].map((i) => environment[`NATS_ROUTE_${i}`]),
    podsOf(nats).map((host) => `"nats://route:123456@${host}:${portOf(nats, 'route')}"`),
  );
  // Nodes, servers and operators need a password.
  assert.deepEqual(
    [...text.matchAll(/user: (\w+)[,\n] *password: (\$\w+)/g)].map(([, ...login]) => login),
    [
      ['sagitta', '$NATS_PASSWORD'],
      ['admin', '$NATS_ADMIN_PASSWORD'],
      ['route', '$NATS_PASSWORD'],
    ],
  );
  const mounts = nats.spec!.template.spec!.containers[0]!.volumeMounts!;
  assert.equal(mounts[0]!.mountPath, /store_dir: (.*)/.exec(text)![1]);
});

/** The host names that the headless Service of a set gives its pods. */
function podsOf({ metadata, spec }: StatefulSet): string[] {
  return Array.from({ length: spec!.replicas! }, (_, i) => {
    return `${metadata!.name}-${i}.${spec!.serviceName}`;
  });
}

function portOf({ spec }: StatefulSet, name: string): number | undefined {
  const [container] = spec!.template.spec!.containers;
  return container!.ports!.find((port) => port.name === name)?.containerPort;
}

/** The configuration of the first node, on a machine in the given zone, from the environment that Kubernetes sets. */
function configOfNode(
  objects: readonly KubernetesObject[],
  set: StatefulSet,
  { zone }: { readonly zone: string },
) {
  const fields: Readonly<Record<string, string>> = {
    'metadata.name': `${set.metadata!.name}-0`,
    "metadata.labels['topology.kubernetes.io/zone']": zone,
  };
  const environment: Record<string, string> = {
    SAGITTA_HOST: '0.0.0.0',
    SAGITTA_DATA_DIR: '/data',
  };
  const maps = objectsOf(objects, 'v1 ConfigMap');
  for (const { name, value, valueFrom } of set.spec!.template.spec!.containers[0]!.env!) {
    const { fieldRef, configMapKeyRef: entry, secretKeyRef } = valueFrom ?? {};
    const map = maps.find(({ metadata }) => metadata!.name === entry?.name);
    const found =
      // Names in parentheses refer to earlier variables.
      value?.replaceAll(/\$\((\w+)\)/g, (text, variable) => environment[variable] ?? text) ??
      map?.data?.[entry!.key] ??
      (fieldRef === undefined
        ? '2'.repeat(secretKeyRef === undefined ? 1 : 32)
        : fields[fieldRef.fieldPath]);
    assert.ok(found !== undefined, `${name} refers to a field that the test does not know`);
    environment[name] = found;
  }
  return loadConfig({ env: environment });
}

test('the pod uses settings, ports and paths of the server and has time to stop', () => {
  const [set] = objectsOf(readBase(), 'apps/v1 StatefulSet');
  const pod = set!.spec!.template.spec!;
  const [container] = pod.containers;
  const environment = container!.env!.map(({ name, value = '2' }) => [name, value] as const);
  const known = describeSettings().map(({ variable }) => variable);
  assert.deepEqual(
    environment.filter(([name]) => !known.includes(name)),
    [],
  );
  // The Dockerfile sets these.
  const image = { SAGITTA_HOST: '0.0.0.0', SAGITTA_DATA_DIR: '/data' };
  const config = loadConfig({ env: { ...image, ...Object.fromEntries(environment) } });
  const mounts = container!.volumeMounts!.map(({ mountPath }) => mountPath);
  for (const path of [config.dataDir, config.backupDir!, config.tlsCert!, config.tlsKey!]) {
    assert.ok(
      mounts.some((mount) => path === mount || path.startsWith(`${mount}/`)),
      path,
    );
  }
  assert.deepEqual(container!.ports, [
    { name: 'https', containerPort: config.port },
    { name: 'liveness', containerPort: config.livenessPort },
  ]);
  const { paths } = JSON.parse(readFileSync(join(ROOT, 'openapi.json'), 'utf8')) as {
    paths: Record<string, unknown>;
  };
  for (const probe of [
    container!.startupProbe,
    container!.readinessProbe,
    container!.livenessProbe,
  ]) {
    assert.ok(probe!.httpGet!.path! in paths, probe!.httpGet!.path);
    const isSecure = probe!.httpGet!.port === 'https';
    assert.equal(probe!.httpGet!.scheme, isSecure ? 'HTTPS' : undefined);
  }
  const waitMs = Number(container!.lifecycle!.preStop!.exec!.command!.at(-1)) * 1000;
  assert.ok(pod.terminationGracePeriodSeconds! * 1000 > waitMs + config.shutdownMs);
});

test('the NATS servers meet the restricted pod security standard', () => {
  const file = join(FOLDER, 'components/cluster/nats.yaml');
  const objects = parseObjects(readFileSync(file, 'utf8'));
  assert.equal(checkTypes(objects), '');
  const [set] = objectsOf(objects, 'apps/v1 StatefulSet');
  const { securityContext, containers, enableServiceLinks } = set!.spec!.template.spec!;
  assert.equal(enableServiceLinks, false);
  assert.equal(securityContext!.runAsNonRoot, true);
  assert.deepEqual(securityContext!.seccompProfile, { type: 'RuntimeDefault' });
  assert.deepEqual(containers[0]!.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
});

test('the pod meets the restricted pod security standard', () => {
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
