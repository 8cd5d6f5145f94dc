// The contract of engines on a device that returns the best rows and multiplies as TF32 does.

import assert from 'node:assert/strict';
import type { Engine } from '../../../src/engine/core/engine.js';
import { cutBatch, packQueries } from '../../../src/engine/core/packed-queries.js';
import { searchPerBlock } from '../../../src/engine/core/per-block.js';
import { engineContract } from '../contract.js';
import { createDevice, createProgram } from './top-device.js';

engineContract('tensorflow', 'all', async () => createEngine());

/** Creates an engine in this thread whose device has room for three chunks. */
function createEngine(): Engine {
  const device = createDevice(true);
  device.chunkValuesMax = 2 ** 18;
  device.chunkRowsMax = 2_048;
  const program = createProgram(device);
  return {
    name: 'tensorflow',
    rowEncoder: null,
    search: (queries, options = {}) =>
      searchPerBlock(
        queries,
        async (block, asked) => {
          await new Promise(setImmediate);
          options.signal?.throwIfAborted();
          return cutBatch(asked).flatMap((slice) => {
            const hits = program.search(block, packQueries(block, slice));
            assert.ok(hits !== null);
            return hits;
          });
        },
        options,
      ),
    unload: (key) => program.unload(key),
    bytesUsed: () => ({ hostBytes: 0, deviceBytes: 0 }),
    close: async () => {
      program.unloadAll();
      assert.equal(device.matrixCount(), 0, 'nothing is left on the device');
      assert.equal(device.waiting.size, 0);
    },
  };
}
