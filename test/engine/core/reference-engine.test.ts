import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { engineContract } from '../contract.js';

// Small ranges, so that every search is cut and merged.
engineContract('reference', 'quick', async () =>
  createReferenceEngine({ pool: createInlinePool(), rangeRowCount: 37 }),
);
