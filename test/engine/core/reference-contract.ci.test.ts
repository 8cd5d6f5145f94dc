// The contract cases that the quick test of the reference engine leaves out.

import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { engineContract } from '../contract.js';

// Small ranges, so that every search is cut and merged.
engineContract('reference', 'rest', async () =>
  createReferenceEngine({ pool: createInlinePool(), rangeRowCount: 37 }),
);
