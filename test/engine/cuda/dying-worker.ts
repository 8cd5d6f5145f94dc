// A thread of the tensor engine that fails at its first search.

import { parentPort } from 'node:worker_threads';
import type { TensorReply } from '../../../src/engine/tensor/tensor-worker.js';

const ready: TensorReply = { kind: 'ready', device: { name: 'none', hasOwnMemory: false } };
parentPort!.on('message', () => {
  throw new Error('thrown for a test');
});
parentPort!.postMessage(ready);
