import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { ProbeError, probe } from '../../src/engine/probe.js';
import { createInlinePool } from '../../src/platform/pool.js';

test('the reference engine gives the known answer to the probe search', async () => {
  await probe(createReferenceEngine({ pool: createInlinePool() }));
});

test('an engine whose score is off by one bit fails the probe search and is closed', async () => {
  const reference = createReferenceEngine({ pool: createInlinePool() });
  let isClosed = false;
  const wrong = {
    ...reference,
    async search(queries: Parameters<typeof reference.search>[0]) {
      const hits = await reference.search(queries);
      hits[2]!.scores[9]! *= 1 + Number.EPSILON;
      return hits;
    },
    async close() {
      isClosed = true;
    },
  };
  await assert.rejects(probe(wrong), ProbeError);
  assert.ok(isClosed);
});
