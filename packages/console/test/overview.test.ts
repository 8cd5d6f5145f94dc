import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CollectionRecord } from '@sagitta/client';
import { parseMetrics } from '../src/api/metrics-text.js';
import { limitUsageOf } from '../src/views/overview/limit-usage.js';
import { trafficOf } from '../src/views/overview/traffic.js';
import { addSequences, writesOf } from '../src/views/overview/write-activity.js';

const COUNT = 'sagitta_http_request_duration_seconds_count';

function scrape(timeMs: number, counts: Readonly<Record<string, number>>) {
  const lines = Object.entries(counts).map(([labels, count]) => `${COUNT}{${labels}} ${count}`);
  return { timeMs, metrics: parseMetrics(lines.join('\n')) };
}

describe('trafficOf', () => {
  const query = 'route="/collections/{id}/query"';
  const history = [
    scrape(1_000, { [`${query},status="200"`]: 10, 'route="/metrics",status="200"': 1 }),
    scrape(3_000, {
      [`${query},status="200"`]: 30,
      [`${query},status="429"`]: 4,
      'route="/metrics",status="200"': 90,
    }),
  ];

  test('rates are per second, without the requests for metrics', () => {
    const traffic = trafficOf(history);
    assert.deepEqual(traffic.times, [3]);
    assert.deepEqual(traffic.requestsPerSecond, [12]);
    assert.deepEqual(traffic.errorsPerSecond, [2]);
  });

  test('latencies are null if no request ended', () => {
    assert.deepEqual(trafficOf(history).p99, [null]);
  });

  test('a single scrape gives no rates', () => {
    assert.deepEqual(trafficOf(history.slice(1)).times, []);
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

describe('writesOf', () => {
  const at = (sequences: Readonly<Record<string, number>>) =>
    Object.entries(sequences).map(([id, sequence]) => ({ id, sequence }) as CollectionRecord);

  test('counts writes between moments, and none before a collection was first seen', () => {
    const history = [at({ a: 5 }), at({ a: 7, b: 40 }), at({ a: 7, b: 41 })].reduce(
      addSequences,
      [],
    );
    assert.deepEqual(writesOf(history, 'a'), [2, 0]);
    assert.deepEqual(writesOf(history, 'b'), [0, 1]);
  });

  test('a recreated collection has no negative writes', () => {
    assert.deepEqual(writesOf([at({ a: 9 }), at({ a: 1 })].reduce(addSequences, []), 'a'), [0]);
  });

  test('forgets the oldest moments', () => {
    let history = addSequences([], at({ a: 0 }));
    for (let sequence = 1; sequence < 200; sequence++) {
      history = addSequences(history, at({ a: sequence }));
    }
    assert.equal(history.length, 60);
  });
});
