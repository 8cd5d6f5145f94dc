import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SlowQuery, TrafficInterval } from '@sagitta/client';
import { parseMetrics } from '../src/api/metrics-text.js';
import { limitUsageOf } from '../src/views/overview/limit-usage.js';
import { columnsOf, describeQuery, phasesOf, ratesOf } from '../src/views/overview/traffic.js';

function interval(second: number, part: Partial<TrafficInterval> = {}): TrafficInterval {
  return {
    time: new Date(second * 1000).toISOString(),
    seconds: 30,
    requests: 0,
    errors: 0,
    p50_ms: null,
    p95_ms: null,
    p99_ms: null,
    rows_written: 0,
    ...part,
  };
}

describe('columnsOf', () => {
  test('has rates at the ends of the intervals, and null for unknown latencies', () => {
    const columns = columnsOf([
      interval(0, { requests: 60, errors: 3, rows_written: 900, p50_ms: 2 }),
      interval(30),
    ]);
    assert.deepEqual(columns.times, [30, 60]);
    assert.deepEqual(columns.requestsPerSecond, [2, 0]);
    assert.deepEqual(columns.errorsPerSecond, [0.1, 0]);
    assert.deepEqual(columns.rowsPerSecond, [30, 0]);
    assert.deepEqual(columns.p50, [2, null]);
  });

  test('leaves out a current interval that is too short for a rate', () => {
    const short = interval(30, { seconds: 0.5, requests: 9 });
    assert.deepEqual(columnsOf([interval(0), short]).times, [30]);
  });

  test('shows the first interval from its beginning on', () => {
    const columns = columnsOf([interval(0, { seconds: 0.5, requests: 9 })]);
    assert.deepEqual(columns.times, [0.5]);
    assert.deepEqual(columns.requestsPerSecond, [9]);
  });
});

test('rates of collections are per minute of the time that the server has kept', () => {
  const rates = ratesOf({
    node: null,
    intervals: [interval(0, { seconds: 15 }), interval(15)],
    collections: [
      { id: 'docs', queries: 3, rows_written: 6, p50_ms: 1, p95_ms: 2, p99_ms: 3 },
      { id: null, queries: 9, rows_written: 9, p50_ms: 1, p95_ms: 2, p99_ms: 3 },
    ],
    slow_queries: [],
  });
  assert.deepEqual(rates('docs'), { queriesPerMinute: 4, writesPerMinute: 8, p50: 1, p99: 3 });
  const idle = { queriesPerMinute: 0, writesPerMinute: 0, p50: null, p99: null };
  assert.deepEqual(rates('other'), idle);
});

describe('slow queries', () => {
  const query: SlowQuery = {
    time: '2026-11-21T08:00:00.000Z',
    collection: 'docs',
    request_id: 'r',
    milliseconds: 33,
    kind: 'vector',
  };

  test('have their phases in the order of their durations', () => {
    const phases = phasesOf({ ...query, filter_ms: 3, search_ms: 30, wait_ms: 0 });
    assert.deepEqual(phases, [
      { name: 'search', ms: 30 },
      { name: 'filter', ms: 3 },
    ]);
  });

  test('are described in a few words', () => {
    assert.equal(
      describeQuery({ ...query, top_k: 10, filter: '{f1:?}' }),
      'by vector, 10 results, filter',
    );
    assert.equal(
      describeQuery({ ...query, kind: 'continued', limit: 5 }),
      'next page, 5 results, no filter',
    );
    assert.equal(
      describeQuery({ ...query, kind: 'batch', query_count: 600 }),
      'batch of 600, no filter',
    );
  });
});

describe('limitUsageOf', () => {
  test('compares gauges with limits', () => {
    const metrics = parseMetrics('sagitta_http_connections 50\nsagitta_http_requests_waiting 1024');
    const limits = { connections_max: 200, queued_requests_max: 4_096, collections_max: 10 };
    assert.deepEqual(limitUsageOf(metrics, limits), [
      { label: 'Connections', used: '50', limit: '200', share: 0.25 },
      { label: 'Waiting requests', used: '1,024', limit: '4,096', share: 0.25 },
    ]);
  });

  test('compares the memory of the process and the used disk with the machine', () => {
    const metrics = parseMetrics(
      'process_resident_memory_bytes 1e9\nprocess_memory_limit_bytes 4e9\n' +
        'sagitta_disk_total_bytes 100e9\nsagitta_disk_free_bytes 25e9',
    );
    assert.deepEqual(limitUsageOf(metrics, {}), [
      { label: 'Memory', used: '1.0 GB', limit: '4.0 GB', share: 0.25 },
      { label: 'Disk', used: '75 GB', limit: '100 GB', share: 0.75 },
    ]);
  });
});
