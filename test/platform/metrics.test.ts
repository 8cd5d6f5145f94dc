import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createMetrics } from '../../src/platform/metrics.js';

/** The lines of one metric, without help and type. */
async function linesOf(metrics: ReturnType<typeof createMetrics>, name: string): Promise<string[]> {
  const text = await metrics.render();
  return text.split('\n').filter((line) => new RegExp(`^${name}(_\\w+)?[ {]`).test(line));
}

describe('metrics', () => {
  it('start counters at zero, for every known label value', async () => {
    const metrics = createMetrics();
    const countPlain = metrics.addCounter('a_total', 'A.');
    const countLabelled = metrics.addCounter('b_total', 'B.', { name: 'kind', values: ['x', 'y'] });
    assert.deepEqual(await linesOf(metrics, 'a_total'), ['a_total 0']);
    countPlain(2);
    countPlain(0.5);
    countLabelled(3, { kind: 'y' });
    assert.deepEqual(await linesOf(metrics, 'a_total'), ['a_total 2.5']);
    assert.deepEqual(await linesOf(metrics, 'b_total'), [
      'b_total{kind="x"} 0',
      'b_total{kind="y"} 3',
    ]);
  });

  it('count a value in every bucket whose bound is not below it', async () => {
    const metrics = createMetrics();
    const observe = metrics.addHistogram('c_seconds', 'C.', { buckets: [0.1, 1], labels: ['to'] });
    observe(0.1, { to: 'q' });
    observe(5, { to: 'q' });
    assert.deepEqual(await linesOf(metrics, 'c_seconds'), [
      'c_seconds_bucket{le="0.1",to="q"} 1',
      'c_seconds_bucket{le="1",to="q"} 1',
      'c_seconds_bucket{le="+Inf",to="q"} 2',
      'c_seconds_sum{to="q"} 5.1',
      'c_seconds_count{to="q"} 2',
    ]);
  });

  it('read gauges at each scrape, and make them counters if the name ends in _total', async () => {
    const metrics = createMetrics();
    let value = 7;
    let readCount = 0;
    metrics.addGauge('d_bytes', 'D.', () => {
      readCount++;
      return value;
    });
    metrics.addGauge('e_total', 'E.', async () => value * 10);
    assert.equal(readCount, 0);
    assert.deepEqual(await linesOf(metrics, 'd_bytes'), ['d_bytes 7']);
    value = 8;
    const text = await metrics.render();
    assert.equal(readCount, 2);
    assert.match(text, /# TYPE d_bytes gauge\nd_bytes 8\n/);
    assert.match(text, /# TYPE e_total counter\ne_total 80\n/);
  });

  it('report on the process without a timer', async () => {
    const before = process.getActiveResourcesInfo().length;
    const metrics = createMetrics();
    metrics.addInfo('f_info', 'F.', { version: '1' });
    const text = await metrics.render();
    assert.match(text, /^f_info\{version="1"\} 1$/m);
    assert.match(text, /^process_resident_memory_bytes \d{7,}$/m);
    assert.match(text, /# TYPE process_cpu_seconds_total counter\n/);
    assert.match(text, /^nodejs_eventloop_utilization (0|1|0\.\d+)(e-\d+)?$/m);
    assert.equal(process.getActiveResourcesInfo().length, before);
  });
});
