// Compares the dashboard and docs/metrics.md with the metrics of a real server after some traffic: the dashboard shows
// only metrics that exist, and the document describes every metric.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { addClusterGauges, countFetchedBlocks } from '../../src/cluster/nodes/cluster-metrics.js';
import { silentLogger } from '../../src/common/logger.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { NodeKeys } from '../../src/platform/node-keys.js';
import { PeerSearches } from '../../src/server/cluster/peer-searches.js';
import { RequestForwarder } from '../../src/server/cluster/request-forwarder.js';
import { MemoryCluster, type TestNode } from '../cluster/memory-cluster.js';
import { startTestServer, type TestServer } from '../support/server-in-process.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Metrics that exist only with certain engines or with TLS. */
const CONDITIONAL = /^sagitta_(device_\w+_total|engine_fallbacks_total|tls_\w+)$/;
/** The labels that Prometheus adds, and the label of histogram buckets. */
const LABELS_OF_ALL = ['job', 'instance', 'le'];

interface Metric {
  readonly type: string;
  readonly labels: Set<string>;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: {
    readonly h: number;
    readonly w: number;
    readonly x: number;
    readonly y: number;
  };
  readonly datasource?: { readonly type: string; readonly uid: string };
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly legendFormat: string;
  }[];
  readonly fieldConfig?: { readonly defaults: { readonly unit: string } };
}
interface Dashboard {
  readonly title: string;
  readonly uid: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly query: unknown;
    }[];
  };
}

const dashboard = JSON.parse(read('docs/grafana-dashboard.json')) as Dashboard;
const shown = dashboard.panels.filter(({ type }) => type !== 'row');
const targets = shown.flatMap(({ title, targets = [] }) =>
  targets.map((target) => ({ title, ...target })),
);
/** The metrics in the document's tables: name, type and labels. */
const described = new Map(
  [...read('docs/metrics.md').matchAll(/^\| `(\w+)` \| (\w+) \|([^|]*)\| ([^|]+) \|$/gm)].map(
    ([, name, type, labels]) => [
      name!,
      { type: type!, labels: [...labels!.matchAll(/`(\w+)`/g)].map((match) => match[1]!) },
    ],
  ),
);

describe('the metrics of a server', () => {
  let server: TestServer;
  let live: Map<string, Metric>;
  before(async () => {
    server = await startTestServer();
    await makeTraffic(server.url);
    const text = await (await fetch(`${server.url}/metrics`)).text();
    live = new Map([...(await metricsOfNode()), ...parseMetrics(text)]);
  });
  after(() => server.close());

  it('are all described with their type and labels', () => {
    for (const [name, { type, labels }] of live) {
      const found = described.get(name);
      assert.ok(found, `docs/metrics.md does not describe ${name}`);
      assert.equal(found.type, type, name);
      assert.deepEqual([...found.labels].sort(), [...labels].sort(), name);
    }
    const gone = [...described.keys()].filter((name) => !live.has(name) && !CONDITIONAL.test(name));
    assert.deepEqual(gone, [], 'described, and not there');
  });

  it('are named by the conventions of Prometheus', () => {
    for (const [name, { type }] of live) {
      assert.match(name, /^(sagitta|process|nodejs)_[a-z_]+$/);
      assert.equal(name.endsWith('_total'), type === 'counter', name);
      if (type === 'histogram') assert.match(name, /_(seconds|bytes|queries)$/);
      assert.doesNotMatch(name, /_(ms|milliseconds|kb|mb)(_|$)/);
    }
  });

  it('count its traffic', async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    for (const line of [
      /^sagitta_queries_total 4$/m,
      /^sagitta_vectors_written_total\{kind="inserted"\} 3$/m,
      /^sagitta_vectors_deleted_total 1$/m,
      /^sagitta_cursors_issued_total 2$/m,
      /^sagitta_cursors_resumed_total 1$/m,
      /^sagitta_cursors_refused_total\{code="cursor_invalid"\} 1$/m,
      /^sagitta_idempotent_requests_total\{outcome="kept"\} 1$/m,
      /^sagitta_idempotent_requests_total\{outcome="replayed"\} 1$/m,
      /^sagitta_http_refusals_total\{code="cursor_invalid"\} 1$/m,
      /^sagitta_http_refusals_total\{code="route_not_found"\} 1$/m,
      /^sagitta_http_refusals_total\{code="overloaded"\} 0$/m,
      /^sagitta_filter_cache_misses_total [1-9]$/m,
      /^sagitta_filter_cache_hits_total [1-9]$/m,
      /^sagitta_engine_batch_queries_sum 4$/m,
      /^sagitta_query_phase_seconds_count\{phase="wait"\} 4$/m,
      /^sagitta_http_connections [1-9]/m,
      /^sagitta_log_bytes [1-9]\d+$/m,
      /^sagitta_rows 4$/m,
      /^sagitta_vectors 2$/m,
    ]) {
      assert.match(text, line);
    }
  });

  it('include all metrics in the dashboard', () => {
    const names = targets.flatMap(({ title, expr }) => {
      const found = metricsOf(expr);
      assert.ok(found.length > 0, `${title}: ${expr}`);
      return found.map(({ name, labels }) => ({ title, name, labels }));
    });
    for (const { title, name, labels } of names) {
      const metric = findMetric(live, name);
      const isThere = metric !== undefined || CONDITIONAL.test(name);
      assert.ok(isThere, `"${title}" shows ${name}, which does not exist`);
      for (const label of labels) {
        assert.ok(
          metric?.labels.has(label) || LABELS_OF_ALL.includes(label),
          `"${title}" asks ${name} for ${label}, which it does not have`,
        );
      }
    }
    for (const { title, expr, legendFormat } of targets) {
      const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) =>
        list!.split(',').map((label) => label.trim()),
      );
      const known = metricsOf(expr).flatMap(({ name }) => [...findMetric(live, name)!.labels]);
      for (const label of grouped) {
        assert.ok(known.includes(label) || LABELS_OF_ALL.includes(label), `"${title}" by ${label}`);
      }
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        assert.ok(grouped.includes(label!), `"${title}" has no ${label} for its legend`);
      }
    }
  });
});

describe('the dashboard', () => {
  it('shows every metric of clusters', () => {
    const names = targets.flatMap(({ expr }) => metricsOf(expr).map(({ name }) => name));
    const ofClusters = [...described].filter(([name]) => name.startsWith('sagitta_cluster_'));
    const isShown = (name: string, type: string) =>
      names.includes(type === 'histogram' ? `${name}_bucket` : name);
    assert.deepEqual(
      ofClusters.filter(([name, { type }]) => !isShown(name, type)),
      [],
    );
  });

  it('defines the fields that Grafana needs in each panel and every variable in use', () => {
    assert.ok(dashboard.title !== '' && dashboard.uid !== '' && dashboard.schemaVersion >= 30);
    const variables = dashboard.templating.list.map(({ name }) => name);
    assert.equal(dashboard.templating.list[0]?.type, 'datasource');
    const used = [...JSON.stringify(dashboard).matchAll(/\$\{?([a-z]\w*)/g)].map(
      ([, name]) => name!,
    );
    assert.deepEqual([...new Set(used)].sort(), [...variables].sort());
    assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
    for (const { title, targets = [], datasource, fieldConfig } of shown) {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how Grafana writes a variable
      assert.deepEqual(datasource, { type: 'prometheus', uid: '${datasource}' }, title);
      assert.ok(targets.length > 0 && (fieldConfig?.defaults.unit ?? '') !== '', title);
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
      for (const { expr } of targets) assert.ok(isBalanced(expr), expr);
    }
    const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    for (const title of [
      'Traffic',
      'Latency',
      'Engine',
      'Storage',
      'Resources',
      'Errors',
      'Cluster',
    ]) {
      assert.ok(rows.includes(title), title);
    }
  });

  it('has no panel that overlaps another or exceeds the 24 columns', () => {
    const taken = new Set<string>();
    for (const { title, gridPos } of dashboard.panels) {
      assert.ok(gridPos.x + gridPos.w <= 24, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(!taken.has(`${x} ${y}`), `${title} overlaps another panel`);
          taken.add(`${x} ${y}`);
        }
      }
    }
  });
});

async function makeTraffic(url: string): Promise<void> {
  const call = async (method: string, path: string, body?: object, headers = {}) => {
    const reply = await fetch(`${url}/v1${path}`, {
      method,
      headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await reply.json()) as { next_cursor: string };
  };
  await call('POST', '/collections', { id: 'c', dimension: 2, metric: 'dot' });
  const vectors = ['a', 'b', 'd'].map((id) => ({ id, values: [1, 2], metadata: { x: id } }));
  const key = { 'idempotency-key': 'k' };
  await call('POST', '/collections/c/vectors', { vectors }, key);
  await call('POST', '/collections/c/vectors', { vectors }, key);
  await call('PATCH', '/collections/c/vectors/a', { metadata: { y: 1 } });
  const query = { vector: [1, 0], limit: 1, filter: { x: { $ne: 'b' } } };
  const page = await call('POST', '/collections/c/query', query);
  await call('POST', '/collections/c/query', { cursor: page.next_cursor });
  await call('POST', '/collections/c/query', query);
  await call('POST', '/collections/c/query', { vector: [1, 0] });
  await call('POST', '/collections/c/query', { cursor: 'nonsense' });
  await call('DELETE', '/collections/c/vectors/d');
  await call('GET', '/no/such/route');
}

/** The metrics of a server that is a node of a cluster. */
async function metricsOfNode(): Promise<Map<string, Metric>> {
  const cluster = await MemoryCluster.start(['n1']);
  const [{ node }] = cluster.nodes as [TestNode];
  const metrics = createMetrics();
  const partialUse = { keptBytes: 0, cachedBytes: 0, cacheBytesMax: 0 };
  addClusterGauges(metrics, node, { partialUse });
  countFetchedBlocks(metrics);
  const keys = new NodeKeys([], 'test');
  const forwarder = new RequestForwarder({ cluster: node, keys, metrics, logger: silentLogger });
  new PeerSearches({ forwarder, metrics, valuesMin: 1 });
  forwarder.close();
  const text = await metrics.render();
  await cluster.stop();
  return parseMetrics(text);
}

/** Metrics by name; the names of histograms lose their suffixes. */
function parseMetrics(text: string): Map<string, Metric> {
  const metrics = new Map<string, Metric>();
  for (const [, name, type] of text.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    metrics.set(name!, { type: type!, labels: new Set() });
  }
  for (const [, name, labels] of text.matchAll(/^(\w+)\{([^}]*(?:\{\w+\}[^}]*)*)\} /gm)) {
    const metric = findMetric(metrics, name!);
    assert.ok(metric, name);
    for (const [, label] of labels!.matchAll(/(\w+)="/g)) {
      if (label !== 'le') metric.labels.add(label!);
    }
  }
  return metrics;
}

function findMetric(metrics: Map<string, Metric>, name: string): Metric | undefined {
  const histogram = metrics.get(name.replace(/_(bucket|sum|count)$/, ''));
  return metrics.get(name) ?? (histogram?.type === 'histogram' ? histogram : undefined);
}

/** The metrics in an expression and the labels it selects by. */
function metricsOf(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/\b((?:sagitta|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, name, selector]) => ({
      name: name!,
      labels: [...(selector ?? '').matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map((m) => m[1]!),
    }),
  );
}

function isBalanced(expr: string): boolean {
  const open: string[] = [];
  for (const character of expr.replace(/"[^"]*"/g, '')) {
    if ('([{'.includes(character)) open.push(character);
    const pair = { ')': '(', ']': '[', '}': '{' }[character];
    if (pair !== undefined && open.pop() !== pair) return false;
  }
  return open.length === 0;
}
