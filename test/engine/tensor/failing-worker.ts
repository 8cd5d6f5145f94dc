// A thread of the tensor engine that fails for blocks with certain keys and otherwise behaves like the real one.

import { parentPort } from 'node:worker_threads';
import type { TensorRequest } from '../../../src/engine/tensor/tensor-worker.js';

const port = parentPort!;
const listen = port.on.bind(port);

// The real thread listens once it is ready; until then messages wait, and must do so here, too.
port.on = (event: string, listener: (...values: never[]) => void) =>
  listen(event, (request: TensorRequest) => {
    const key = request.kind === 'search' ? request.block.key : '';
    if (key.startsWith('throws')) throw new Error('thrown for a test');
    if (key.startsWith('exits')) process.exit(7);
    listener(request as never);
  });
await import('../../../src/engine/tensor/tensor-worker.js');
