// A thread that reads numbers of a blob (made-blocks.ts) at random places, or all in sequence, and reports how many of
// them are wrong.

import { parentPort, workerData } from 'node:worker_threads';
import { BLOCK_BYTES } from '../../src/platform/blocks.js';
import { createRandom } from '../support/random.js';
import { wordAt } from './made-blocks.js';

export interface ReaderData {
  readonly buffer: SharedArrayBuffer;
  readonly wordCount: number;
  /** Of the blob. */
  readonly seed: number;
  /** Of the places; null reads all in sequence. */
  readonly placeSeed: number | null;
  readonly readCount: number;
}

const { buffer, wordCount, seed, placeSeed, readCount } = workerData as ReaderData;
const words = new Int32Array(buffer, 0, wordCount);
const random = createRandom(placeSeed ?? 0);
/** Reads whole pages, of which a wrong mapping would change all. */
const RUN = 1024;

let wrongCount = 0;
const check = (from: number) => {
  for (let i = from; i < Math.min(from + RUN, wordCount); i++) {
    if (words[i] !== wordAt(seed, i)) wrongCount++;
  }
};
if (placeSeed === null) {
  for (let at = 0; at < wordCount; at += RUN) check(at);
} else {
  for (let i = 0; i < readCount; i++) {
    // Often near the border of two blocks.
    const any = Math.floor(random() * wordCount);
    const border = Math.max(0, any - (any % (BLOCK_BYTES / 4)) - RUN / 2);
    check(random() < 0.5 ? any : border);
  }
}
parentPort!.postMessage(wrongCount);
