import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createEngine } from '../../src/engine/choose-engine.js';
import type { Logger } from '../../src/logger.js';
import { silentLogger } from '../../src/logger.js';
import { createInlinePool } from '../../src/pool.js';

const pool = createInlinePool();

function createRecordingLogger(): Logger & { messages: string[] } {
  const messages: string[] = [];
  return {
    ...silentLogger,
    messages,
    warn: (_, message) => messages.push(`warn: ${message}`),
    error: (_, message) => messages.push(`error: ${message}`),
  };
}

describe('the choice of an engine', () => {
  it('is the one asked for by name', async (test) => {
    for (const requested of ['reference', 'wasm'] as const) {
      const { engine, reason } = await createEngine({ requested, pool });
      test.after(() => engine.close());
      assert.equal(engine.name, requested);
      assert.equal(reason, 'asked for by name');
      assert.deepEqual(engine.bytesUsed('engine probe'), { hostBytes: 0, deviceBytes: 0 });
    }
  });

  it('is wasm by default, where it works', async (test) => {
    const logger = createRecordingLogger();
    const { engine, reason } = await createEngine({ requested: 'auto', pool, logger });
    test.after(() => engine.close());
    assert.equal(engine.name, 'wasm');
    assert.equal(reason, 'WebAssembly works on this machine');
    assert.deepEqual(logger.messages, []);
  });

  for (const [fault, worker, cause] of [
    ['does not start', './there-is-no-such-worker.js', /no-such-worker/],
    ['answers wrongly', './lying-worker.js', /not that of the reference/],
    ['dies at its first search', './dying-worker.js', /thrown for a test/],
  ] as const) {
    const workerUrl = new URL(worker, import.meta.url);

    it(`is the reference engine by default, with the reason, when wasm ${fault}`, async (test) => {
      const logger = createRecordingLogger();
      const { engine, reason } = await createEngine({
        requested: 'auto',
        pool,
        logger,
        workerUrl,
      });
      test.after(() => engine.close());
      assert.equal(engine.name, 'reference');
      assert.match(reason, /^the wasm engine does not work here: /);
      assert.match(reason, cause);
      assert.equal(logger.messages.filter((message) => message.startsWith('warn')).length, 1);
    });

    it(`fails when wasm is asked for by name and ${fault}`, async () => {
      await assert.rejects(createEngine({ requested: 'wasm', pool, workerUrl }), cause);
    });
  }
});
