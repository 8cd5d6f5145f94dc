import { createReferenceEngine } from '../../src/engine/reference-engine.js';
import { createTensorEngine } from '../../src/engine/tensor-engine.js';
import { createInlinePool } from '../../src/pool.js';
import { engineContract } from './contract.js';

engineContract('wasm', async () =>
  createTensorEngine({
    fallback: createReferenceEngine({ pool: createInlinePool() }),
    // The contract is for the thread: an answer of the fallback must not pass for its own.
    onDeath: (error) => {
      throw error;
    },
  }),
);
