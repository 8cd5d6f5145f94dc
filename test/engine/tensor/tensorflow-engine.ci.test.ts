// The tensorflow engine on the device that TensorFlow finds, if TensorFlow is installed.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, it } from 'node:test';
import { createReferenceSearch } from '../../../src/engine/core/reference-engine.js';
import { createTensorEngine, type TensorEngine } from '../../../src/engine/tensor/tensor-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { engineContract } from '../contract.js';

/** Null if the install script has not run. An installation that does not work is a failure. */
const engine = await create();

async function create(): Promise<TensorEngine | null> {
  try {
    return await createTensorEngine({
      device: 'tensorflow',
      fallback: createReferenceSearch({ pool: createInlinePool() }),
      onThreadFailure: (error) => {
        throw error;
      },
    });
  } catch (error) {
    if (existsSync(new URL('../../../../build/tensorflow', import.meta.url))) throw error;
    console.log(String(error));
    return null;
  }
}

if (engine === null) {
  it('passes the contract of engines', { skip: 'TensorFlow is not installed' });
} else {
  engineContract('tensorflow', 'all', async () => engine);
  after(() => {
    console.log(`tensorflow: ${engine.device!.name}`);
    assert.equal(engine.fallbackCount, 0, 'the thread answered every search');
  });
}
