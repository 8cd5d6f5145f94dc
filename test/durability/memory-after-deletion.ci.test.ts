// A real server returns the memory of deleted collections.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { addonPath, loadAddon } from '../../src/platform/native-addon.js';
import { createCaller, startServerProcess } from '../support/server-process.js';
import { eventually } from '../support/waiting.js';

const COLLECTIONS = 20;
const ROWS = 10_000;
const ROWS_PER_WRITE = 2_500;
const DIMENSION = 128;
const VALUE_BYTES = COLLECTIONS * ROWS * DIMENSION * 4;

it('a server returns the memory of deleted collections', {
  timeout: 180_000,
}, async (t) => {
  const { trimMemory } = loadAddon<{ trimMemory?: unknown }>(
    addonPath('sagitta.node'),
    'not built',
  );
  if (trimMemory === undefined) return t.skip('the addon or the C library cannot trim memory');
  const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-memory-'));
  const server = await startServerProcess({ dataDirectory, settings: { SAGITTA_THREADS: '2' } });
  const { call, close } = createCaller(server.url);
  const residentBytes = async () => {
    const { text } = await call('GET', '/metrics');
    return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)![1]);
  };
  const loadAndDelete = async (count: number): Promise<number> => {
    for (let n = 0; n < count; n++) {
      await call('POST', '/v1/collections', { id: `c${n}`, dimension: DIMENSION, metric: 'dot' });
      for (let first = 0; first < ROWS; first += ROWS_PER_WRITE) {
        const reply = await call('POST', `/v1/collections/c${n}/vectors`, rowsFrom(first));
        assert.equal(reply.status, 200, reply.text);
      }
      const query = { vector: Array(DIMENSION).fill(1), filter: { n: { $lt: 500 } } };
      assert.equal((await call('POST', `/v1/collections/c${n}/query`, query)).status, 200);
    }
    const loadedBytes = await residentBytes();
    for (let n = 0; n < count; n++) {
      assert.equal((await call('DELETE', `/v1/collections/c${n}`)).status, 200);
    }
    return loadedBytes;
  };
  try {
    // The first collection also loads code and fills caches.
    await loadAndDelete(1);
    const beforeBytes = await residentBytes();
    const loadedBytes = await loadAndDelete(COLLECTIONS);
    assert.ok(loadedBytes - beforeBytes > VALUE_BYTES, `${loadedBytes - beforeBytes} bytes`);
    const allowedBytes = beforeBytes + (loadedBytes - beforeBytes) / 8;
    await eventually(
      'the memory is given back',
      async () => (await residentBytes()) < allowedBytes,
    );
    const [before, loaded, after] = [beforeBytes, loadedBytes, await residentBytes()];
    const megabytes = (byteCount: number) => Math.round(byteCount / 1e6);
    t.diagnostic(`${megabytes(before)} MB, ${megabytes(loaded)} loaded, ${megabytes(after)} after`);
  } finally {
    await server.stop();
    close();
    await rm(dataDirectory, { recursive: true });
  }
});

function rowsFrom(first: number): object {
  return {
    vectors: Array.from({ length: ROWS_PER_WRITE }, (_, i) => ({
      id: `v${first + i}`,
      values: Array.from({ length: DIMENSION }, (_, d) => ((first + i) * 31 + d * 7) % 97),
      metadata: { n: first + i, word: `w${i % 100}` },
    })),
  };
}
