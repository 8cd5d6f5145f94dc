import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { METRIC_TABLE } from '../../src/platform/metric-table.js';
import { createMetrics } from '../../src/platform/metrics.js';

/** The lines of one metric, without help and type. */
async function linesOf(metrics: ReturnType<typeof createMetrics>, name: string): Promise<string[]> {
  const text = await metrics.render();
  return text.split('\n').filter((line) => new RegExp(`^${name}(_\\w+)?[ {]`).test(line));
}

describe('metrics', () => {
  it('start counters at zero, for every known label value', async () => {
    const metrics = createMetrics();
    const countPlain = metrics.addCounter('sagitta_vectors_deleted_total');
    const countLabelled = metrics.addCounter('sagitta_vectors_written_total');
    assert.deepEqual(await linesOf(metrics, 'sagitta_vectors_deleted_total'), [
      'sagitta_vectors_deleted_total 0',
    ]);
    countPlain(2);
    countPlain(0.5);
    countLabelled(3, { kind: 'updated' });
    assert.deepEqual(await linesOf(metrics, 'sagitta_vectors_deleted_total'), [
      'sagitta_vectors_deleted_total 2.5',
    ]);
    assert.deepEqual(await linesOf(metrics, 'sagitta_vectors_written_total'), [
      'sagitta_vectors_written_total{kind="inserted"} 0',
      'sagitta_vectors_written_total{kind="updated"} 3',
    ]);
  });

  it('count a value in every bucket whose bound is not below it', async () => {
    const metrics = createMetrics();
    const observe = metrics.addHistogram('sagitta_query_phase_seconds');
    observe(0.25, { phase: 'filter' });
    observe(5, { phase: 'filter' });
    const lines = await linesOf(metrics, 'sagitta_query_phase_seconds');
    for (const [bound, count] of [
      ['0.1', 0],
      ['0.25', 1],
      ['1', 1],
      ['5', 2],
      ['+Inf', 2],
    ]) {
      const line = `sagitta_query_phase_seconds_bucket{le="${bound}",phase="filter"} ${count}`;
      assert.ok(lines.includes(line), line);
    }
    assert.ok(lines.includes('sagitta_query_phase_seconds_sum{phase="filter"} 5.25'));
    assert.ok(lines.includes('sagitta_query_phase_seconds_count{phase="filter"} 2'));
  });

  it('read gauges and counters at each scrape', async () => {
    const metrics = createMetrics();
    let value = 7;
    let readCount = 0;
    metrics.addReading('sagitta_rows', () => {
      readCount++;
      return value;
    });
    metrics.addReading('sagitta_join_rows_total', async () => value * 10);
    assert.equal(readCount, 0);
    assert.deepEqual(await linesOf(metrics, 'sagitta_rows'), ['sagitta_rows 7']);
    value = 8;
    const text = await metrics.render();
    assert.equal(readCount, 2);
    assert.match(text, /# TYPE sagitta_rows gauge\nsagitta_rows 8\n/);
    assert.match(text, /# TYPE sagitta_join_rows_total counter\nsagitta_join_rows_total 80\n/);
  });

  it('are counters exactly where their names end in _total', () => {
    for (const [name, { type }] of Object.entries(METRIC_TABLE)) {
      assert.equal(type === 'counter', name.endsWith('_total'), name);
    }
  });

  it('report on the process without a timer', async () => {
    const before = process.getActiveResourcesInfo().length;
    const metrics = createMetrics();
    metrics.addInfo('sagitta_build_info', { version: '1', node: '2', engine: '3' });
    const text = await metrics.render();
    assert.match(text, /^sagitta_build_info\{version="1",node="2",engine="3"\} 1$/m);
    assert.match(text, /^process_resident_memory_bytes \d{7,}$/m);
    assert.match(text, /# TYPE process_cpu_seconds_total counter\n/);
    assert.match(text, /^nodejs_eventloop_utilization (0|1|0\.\d+)(e-\d+)?$/m);
    assert.equal(process.getActiveResourcesInfo().length, before);
  });
});
