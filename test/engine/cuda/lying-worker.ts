// A thread of the tensor engine that answers every search without hits.

import { parentPort } from 'node:worker_threads';
import type { TensorReply, TensorRequest } from '../../../src/engine/tensor/tensor-worker.js';

const port = parentPort!;

port.on('message', (request: TensorRequest) => {
  if (request.kind !== 'search') return;
  const hits = request.packed.queries.map(() => ({
    rows: new Uint32Array(0),
    scores: new Float64Array(0),
    scannedCount: 0,
    rescoredCount: 0,
  }));
  const reply: TensorReply = { kind: 'hits', searchId: request.searchId, hits, usage: [] };
  port.postMessage(reply);
});
const ready: TensorReply = { kind: 'ready', device: { name: 'none', hasOwnMemory: false } };
port.postMessage(ready);
