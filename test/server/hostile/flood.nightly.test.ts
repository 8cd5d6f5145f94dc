// More requests than the service can handle for 20 seconds: reads and writes on 64 connections, and a short queue in
// front of a slow engine. Acknowledged writes survive, also a restart, refusals contain Retry-After, and the process
// recovers.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import autocannon, { type FloodRequest } from 'autocannon';
import { createCaller, startServerProcess } from '../../support/server-process.js';

const SECONDS = 20;
const CONNECTIONS = 64;
const DIMENSION = 32;
const ROWS = 20_000;
const FETCHED_AT_ONCE = 500;
/** The allowed growth of resident memory, for written rows and buffers. */
const GROWTH_BYTES_MAX = 400 * 1024 * 1024;

type Call = ReturnType<typeof createCaller>['call'];

const valuesOf = (number: number) =>
  Array.from({ length: DIMENSION }, (_, i) => ((number * 31 + i * 17) % 1000) / 8 + 1);

it(`a server survives a flood of ${SECONDS} s and keeps acknowledged writes`, async (t) => {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-flood-'));
  const settings = {
    SAGITTA_ENGINE: 'reference',
    SAGITTA_THREADS: '1',
    SAGITTA_QUEUED_QUERIES_MAX: '4',
    SAGITTA_SEGMENT_ROWS_MAX: '8192',
    SAGITTA_LOG_LEVEL: 'error',
  };
  try {
    const server = await startServerProcess({ dataDirectory, settings });
    const { call, close } = createCaller(server.url);
    await fill(call);
    const bytesBefore = await residentBytes(call);

    const acknowledged: number[] = [];
    const counts: Record<string, number> = {};
    let next = 0;
    const count = (kind: string, status: number) => {
      const key = `${kind} ${status}`;
      counts[key] = (counts[key] ?? 0) + 1;
    };
    const headers = { 'content-type': 'application/json' };
    const write: FloodRequest = {
      method: 'POST',
      path: '/v1/collections/f/vectors',
      headers,
      setupRequest(request, context) {
        const number = next++;
        context.number = number;
        const vector = { id: `w${number}`, values: valuesOf(number), metadata: { number } };
        return { ...request, body: JSON.stringify({ vectors: [vector] }) };
      },
      onResponse(status, _body, context) {
        count('write', status);
        if (status === 200) acknowledged.push(context.number as number);
      },
    };
    const query: FloodRequest = {
      method: 'POST',
      path: '/v1/collections/f/query',
      headers,
      setupRequest: (request) => ({
        ...request,
        body: JSON.stringify({ vector: valuesOf(next), top_k: 10, filter: { part: next % 4 } }),
      }),
      onResponse: (status, body) => {
        count('query', status);
        if (status === 503) assert.equal(JSON.parse(body).code, 'overloaded');
      },
    };
    const read: FloodRequest = {
      method: 'GET',
      path: '/v1/collections/f/vectors/r1',
      onResponse: (status) => count('read', status),
    };
    const result = await autocannon({
      url: server.url,
      connections: CONNECTIONS,
      duration: SECONDS,
      timeout: 30,
      requests: [write, query, query, read, query],
    });
    t.diagnostic(
      JSON.stringify({ ...counts, p99: result.latency.p99, total: result.requests.total }),
    );

    assert.deepEqual([result.errors, result.timeouts], [0, 0]);
    const known = ['write 200', 'write 503', 'query 200', 'query 503', 'read 200', 'read 503'];
    assert.deepEqual(
      Object.keys(counts).filter((key) => !known.includes(key)),
      [],
    );
    assert.ok(acknowledged.length > 100, `${acknowledged.length} writes were acknowledged`);
    assert.ok((counts['query 200'] ?? 0) > 100, 'queries were answered');
    assert.ok((counts['query 503'] ?? 0) > 0, 'the queue was full at times');

    await checkHealth(call);
    const growth = (await residentBytes(call)) - bytesBefore;
    assert.ok(growth < GROWTH_BYTES_MAX, `resident memory grew by ${growth} bytes`);
    await checkWritten(call, acknowledged);
    close();
    await server.stop();

    const restarted = await startServerProcess({ dataDirectory, settings });
    const again = createCaller(restarted.url);
    await checkWritten(again.call, acknowledged);
    again.close();
    await restarted.stop();
  } finally {
    await rm(dataDirectory, { recursive: true });
  }
});

async function fill(call: Call): Promise<void> {
  const created = await call('POST', '/v1/collections', { id: 'f', dimension: DIMENSION });
  assert.equal(created.status, 200, created.text);
  for (let start = 0; start < ROWS; start += 5_000) {
    const vectors = Array.from({ length: 5_000 }, (_, i) => ({
      id: `r${start + i}`,
      values: valuesOf(start + i),
      metadata: { part: i % 4 },
    }));
    const { status, text } = await call('POST', '/v1/collections/f/vectors', { vectors });
    assert.equal(status, 200, text);
  }
}

async function checkHealth(call: Call): Promise<void> {
  for (const path of ['/livez', '/readyz', '/v1/collections/f']) {
    const startMs = performance.now();
    assert.equal((await call('GET', path)).status, 200, path);
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs < 60_000, `${path} took ${tookMs} ms`);
  }
  const { status, text } = await call('POST', '/v1/collections/f/query', { vector: valuesOf(7) });
  assert.equal(status, 200, text);
}

async function residentBytes(call: Call): Promise<number> {
  const { text } = await call('GET', '/metrics');
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)![1]);
}

/** Checks that every acknowledged vector exists with the values that were sent. */
async function checkWritten(call: Call, numbers: readonly number[]): Promise<void> {
  for (let start = 0; start < numbers.length; start += FETCHED_AT_ONCE) {
    const wanted = numbers.slice(start, start + FETCHED_AT_ONCE);
    const reply = await call('POST', '/v1/collections/f/vectors/fetch', {
      ids: wanted.map((number) => `w${number}`),
    });
    assert.equal(reply.status, 200, reply.text);
    const found = reply.json<{
      vectors: { id: string; values: number[] }[];
      not_found: string[];
    }>();
    assert.deepEqual(found.not_found, []);
    for (const [i, vector] of found.vectors.entries()) {
      assert.deepEqual(vector.values, valuesOf(wanted[i]!));
    }
  }
}
