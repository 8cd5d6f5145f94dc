// Compares the alerts with what they refer to: metrics and their labels, runbooks, unit tests, and the documents that say
// how to load them.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { ERROR_TITLES } from '../../src/common/errors.js';
import { METRIC_TABLE, type MetricEntry } from '../../src/platform/metric-table.js';
import { ROOT, type RuleFile, read, readAlerts, readRules, readRuleTests } from './rule-file.js';

const METRICS: Readonly<Record<string, MetricEntry>> = METRIC_TABLE;
/** Labels that Prometheus adds, and the one of buckets. */
const LABELS_OF_ALL = ['job', 'instance', 'le'];

const alerts = readAlerts();

test('every alert has a unique name, a severity, and annotations', () => {
  assert.deepEqual(
    readRules().groups.map(({ name }) => name),
    ['sagitta', 'sagitta-cluster'],
  );
  assert.equal(new Set(alerts.map(({ alert }) => alert)).size, alerts.length);
  for (const { alert, labels, annotations } of alerts) {
    assert.match(alert, /^Sagitta[A-Z][A-Za-z]+$/);
    assert.match(labels.severity!, /^(page|ticket)$/, alert);
    assert.deepEqual(Object.keys(annotations), ['summary', 'description', 'runbook_url'], alert);
  }
});

test('every metric and label in an alert exists', () => {
  for (const { alert, expr } of alerts) {
    const selectors = [...expr.matchAll(/\b((?:sagitta|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)];
    for (const [, name, selector = ''] of selectors) {
      const metric = METRICS[name!] ?? METRICS[name!.replace(/_(bucket|count|sum)$/, '')];
      assert.ok(metric !== undefined, `${alert} uses ${name}, which does not exist`);
      for (const [, label, operator, value] of selector.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)) {
        if (LABELS_OF_ALL.includes(label!)) continue;
        const values = metric.labels?.[label!];
        assert.ok(values !== undefined, `${alert} selects ${name} by ${label}`);
        // Tables list no values of labels whose values depend on the requests.
        if (values.length === 0) continue;
        for (const each of /~/.test(operator!) ? value!.split('|') : [value!]) {
          assert.ok(values.includes(each), `${alert}: ${name} has no ${label} "${each}"`);
        }
      }
    }
    const isKnown = selectors.length > 0 || /\bup\{job=~"sagitta\.\*"\}/.test(expr);
    assert.ok(isKnown, `${alert} uses no metric of Sagitta: ${expr}`);
  }
});

test('every alert has a runbook, which tells what it means, how to confirm it, and when it ends', () => {
  const [, ...sections] = read(join(ROOT, 'docs/runbooks.md')).split(/^## /m);
  assert.deepEqual(
    sections.map((text) => text.slice(0, text.indexOf('\n'))),
    alerts.map(({ alert }) => alert),
    'the sections are in the order of the alerts',
  );
  for (const text of sections) {
    const parts = [...text.matchAll(/^\*\*(\w+)\.?\*\*|^(?:1\.|\| (?:reason|code) \|)/gm)];
    assert.deepEqual(
      parts.map(([, part]) => part ?? 'steps'),
      ['Means', 'Confirm', 'steps', 'Ends'],
      text.slice(0, text.indexOf('\n')),
    );
    for (const [, anchor] of text.matchAll(/\]\(#(\w+)\)/g)) {
      assert.ok(
        alerts.some(({ alert }) => alert.toLowerCase() === anchor),
        `there is no runbook #${anchor}`,
      );
    }
  }
  for (const { alert, annotations } of alerts) {
    assert.equal(annotations.runbook_url, `docs/runbooks.md#${alert.toLowerCase()}`);
  }
});

test('every metric and error code in a runbook exists', () => {
  const text = read(join(ROOT, 'docs/runbooks.md'));
  for (const [name] of text.matchAll(/\b(?:sagitta|process|nodejs)_\w+/g)) {
    const isKnown = name in METRICS || name.replace(/_(bucket|count|sum)$/, '') in METRICS;
    assert.ok(isKnown, `there is no metric ${name}`);
  }
  const table = text.slice(text.indexOf('| code |'), text.indexOf('## SagittaInternalErrors'));
  const codes = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell]) => cell!.split(', '));
  assert.ok(codes.length > 10);
  for (const code of codes) assert.ok(code.replaceAll('`', '') in ERROR_TITLES, code);
});

test('every alert has a unit test in which it does not fire at first, and fires later', () => {
  const tests = readRuleTests();
  for (const { alert } of alerts) {
    const own = tests.filter(({ name }) => name.split(',')[0] === alert);
    assert.ok(own.length > 0, `expected a test named ${alert} in sagitta.rules.test.yaml`);
    for (const { name, promql_expr_test } of own) {
      const [before, ...later] = promql_expr_test.map(({ exp_samples }) =>
        exp_samples.some(({ labels }) => labels.includes(`alertname="${alert}"`)),
      );
      assert.equal(before, false, `${name} fires at first`);
      assert.ok(later.includes(true), `${name} never fires`);
    }
  }
  const quiet = tests.filter(({ name }) => name.startsWith('nothing fires'));
  assert.ok(quiet.length >= 5);
  for (const { name, promql_expr_test } of quiet) {
    assert.deepEqual(
      promql_expr_test.map(({ exp_samples }) => exp_samples),
      [[]],
      name,
    );
  }
});

test('the documented command makes an object for the Prometheus operator from the rules', () => {
  const [, command] = /```sh\n(\{\n[^`]*)\| kubectl [^`]*```/.exec(
    read(join(ROOT, 'docs/metrics.md')),
  )!;
  const text = execFileSync('sh', ['-c', command!], { cwd: ROOT, encoding: 'utf8' });
  const { kind, spec } = parse(text) as { kind: string; spec: RuleFile };
  assert.equal(kind, 'PrometheusRule');
  assert.deepEqual(spec, readRules());
});
