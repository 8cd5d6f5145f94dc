// A process that reads a partial blob, and is killed, or ends while a thread waits for a block. The content is that of
// made-blocks.ts.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { openStore } from '../../src/storage/open-store.js';
import { eventually } from '../support/waiting.js';
import type { ReaderData } from './block-reader.js';
import { SourceControl } from './made-blocks.js';

const [directory, name, ending] = process.argv.slice(2);
const control = new SourceControl();
const module = new URL('./made-blocks.js', import.meta.url).href;
const store = await openStore({
  directory: directory!,
  blocks: { module, data: control.shared },
  blockCacheBytes: 0,
  blockDeadlines: { retryMsMax: 600_000, answerMsMax: 600_000 },
});
const { bytes } = (await store.mapBlob(name!))!;
if (ending !== 'read') control.behave('hang');
const workerData: ReaderData = {
  buffer: bytes.buffer as SharedArrayBuffer,
  wordCount: bytes.byteLength >> 2,
  seed: 0,
  placeSeed: ending === 'read' ? 1 : null,
  readCount: 1_000_000,
};
const reader = new Worker(new URL('./block-reader.js', import.meta.url), { workerData });
await once(reader, 'online');
await eventually('a fetch', () => control.readCount > (ending === 'read' ? 30 : 0));
if (ending === 'exit') process.exit(7);
if (ending === 'throw') throw new Error('the end');
process.send!('fetching');
