// The contract on the simd engine for every processor target that this machine supports, with codes in rows and
// in tiles and without codes: the cases that the quick test leaves out.

import { describe, test } from 'node:test';
import { createSimdEngine } from '../../../src/engine/simd/simd-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { withCodes } from '../../../src/tools/selftest/encoding-engine.js';
import { engineContract } from '../contract.js';
import { loadedKernels } from './loaded-kernels.js';

const kernels = loadedKernels();
if (kernels === null) {
  test('the simd engine', { skip: 'the kernels are not built: no C++ compiler' }, () => {});
} else {
  for (const [index, target] of kernels.targets().entries()) {
    describe(`with the target ${target}`, () => {
      engineContract('simd', index === 0 ? 'rest' : 'all', async () =>
        withCodes(createSimdEngine({ pool: createInlinePool(), target })),
      );
    });
  }

  describe('with codes in tiles', () => {
    engineContract('simd', 'all', async () =>
      withCodes(createSimdEngine({ pool: createInlinePool() }), 'tiles'),
    );
  });

  describe('without codes, from values', () => {
    engineContract('simd', 'all', async () => createSimdEngine({ pool: createInlinePool() }));
  });
}
