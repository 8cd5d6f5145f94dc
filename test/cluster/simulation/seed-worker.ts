// A thread that simulates seeds, since a simulation replaces the clocks and timers of its thread.

import { parentPort } from 'node:worker_threads';
import { simulate } from './simulate.js';

parentPort!.on('message', async (seed: number) => {
  parentPort!.postMessage(await simulate(seed));
});
