import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Logger } from '../../src/common/logger.js';
import { silentLogger } from '../../src/common/logger.js';
import { createEngine } from '../../src/engine/choose-engine.js';
import { loadKernels } from '../../src/engine/simd/simd-kernels.js';
import { createInlinePool } from '../../src/platform/pool.js';

const pool = createInlinePool();

function createRecordingLogger(): Logger & { messages: string[] } {
  const messages: string[] = [];
  return {
    ...silentLogger,
    messages,
    info: (_, message) => messages.push(`info: ${message}`),
    warn: (_, message) => messages.push(`warn: ${message}`),
    error: (_, message) => messages.push(`error: ${message}`),
  };
}

/** A path without an addon, because these tests must not find a GPU. */
const cudaAddonPath = 'no-such-addon.node';

/** False without a C++ compiler. */
const hasKernels = canLoadKernels();

function canLoadKernels(): boolean {
  try {
    loadKernels();
    return true;
  } catch {
    return false;
  }
}

describe('the choice of an engine', () => {
  it('uses the engine requested by name', async (test) => {
    for (const requested of ['reference', 'wasm', 'simd'] as const) {
      if (requested === 'simd' && !hasKernels) continue;
      const { engine, reason } = await createEngine({ requested, pool });
      test.after(() => engine.close());
      assert.equal(engine.name, requested);
      assert.match(reason, /^requested by name/);
      assert.deepEqual(engine.bytesUsed('engine probe'), { hostBytes: 0, deviceBytes: 0 });
    }
  });

  it('uses simd on the fastest target by default if the kernels are built', async (test) => {
    if (!hasKernels) return test.skip('no C++ compiler');
    const logger = createRecordingLogger();
    const { engine, reason } = await createEngine({
      requested: 'auto',
      pool,
      logger,
      cudaAddonPath,
    });
    test.after(() => engine.close());
    assert.equal(engine.name, 'simd');
    const target = loadKernels().targets()[0];
    assert.ok(reason.startsWith(`int8 kernels for ${target}; cuda is not available: `), reason);
    assert.deepEqual(logger.messages, [
      'info: the cuda engine is not available',
      'info: the tensorflow engine is not available',
    ]);
  });

  it('uses wasm by default and gives the reason if simd does not work', async (test) => {
    const logger = createRecordingLogger();
    const simdTarget = 'no such target';
    const { engine, reason } = await createEngine({
      requested: 'auto',
      pool,
      logger,
      cudaAddonPath,
      simdTarget,
    });
    test.after(() => engine.close());
    assert.equal(engine.name, 'wasm');
    assert.match(reason, /cuda is not available: [^;/]+;/, 'a path, or a command for this machine');
    assert.match(
      reason,
      /^WebAssembly works on this machine; cuda is not available: .*; simd does not work: /,
    );
    assert.deepEqual(logger.messages, [
      'info: the cuda engine is not available',
      'info: the tensorflow engine is not available',
      'warn: the simd engine does not work',
    ]);
  });

  for (const [fault, worker, cause] of [
    ['does not start', './there-is-no-such-worker.js', /no-such-worker/],
    ['answers wrongly', './cuda/lying-worker.js', /is wrong/],
    ['dies at its first search', './cuda/dying-worker.js', /thrown for a test/],
  ] as const) {
    const workerUrl = new URL(worker, import.meta.url);

    it(`uses the reference engine and gives the reasons if simd does not work and wasm ${fault}`, async (test) => {
      const logger = createRecordingLogger();
      const { engine, reason } = await createEngine({
        requested: 'auto',
        simdTarget: 'no such target',
        cudaAddonPath,
        pool,
        logger,
        workerUrl,
      });
      test.after(() => engine.close());
      assert.equal(engine.name, 'reference');
      assert.match(
        reason,
        /^cuda is not available: .*; simd does not work: .*; wasm does not work: /,
      );
      assert.match(reason, cause);
      assert.equal(logger.messages.filter((message) => message.startsWith('warn')).length, 2);
    });

    it(`fails when wasm is requested by name and ${fault}`, async () => {
      await assert.rejects(createEngine({ requested: 'wasm', pool, workerUrl }), cause);
    });
  }

  it('fails when simd is requested by name and the processor does not support the target', async () => {
    const simdTarget = 'no such target';
    await assert.rejects(
      createEngine({ requested: 'simd', pool, simdTarget }),
      /no such target|not built/,
    );
  });

  it('fails with build instructions when cuda is requested by name and not built', async () => {
    await assert.rejects(
      createEngine({ requested: 'cuda', pool, cudaAddonPath }),
      /CUDA kernels are not built; run `node .*scripts\/build-kernels.mjs cuda`/,
    );
  });
});
