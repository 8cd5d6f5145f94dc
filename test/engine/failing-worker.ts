// A thread of the tensor engine that goes wrong for blocks with certain keys, and is the real one for
// all others.

import { parentPort } from 'node:worker_threads';
import type { TensorRequest } from '../../src/engine/tensor-worker.js';

parentPort!.on('message', (request: TensorRequest) => {
  if (request.kind !== 'search') return;
  if (request.block.key.startsWith('throws')) throw new Error('thrown for a test');
  if (request.block.key.startsWith('exits')) process.exit(7);
});
await import('../../src/engine/tensor-worker.js');
