// The thread that serves the requests for blocks of partial blobs: it reads them from a pipe, so that it needs no other
// thread. Any thread may be waiting for it, the main one included. For the same reason, nothing here waits for the pool of
// libuv except where the source does.

import { Socket } from 'node:net';
import { endianness } from 'node:os';
import {
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from 'node:worker_threads';
import { assert } from '../common/errors.js';
import {
  blocksOf,
  loadNativeFiles,
  type NativeBlocks,
  REQUEST_BYTES,
  UNMAPPED_REQUEST,
} from '../platform/native-files.js';
import { BlockCache, type BlockCacheOptions, type MappedFile } from './block-cache.js';
import { type BlockSourceModule, type FetchedBlock, openBlockSource } from './block-source.js';

export interface BlockThreadData extends Pick<BlockCacheOptions, 'blockCountMax' | 'deadlines'> {
  readonly source: BlockSourceModule;
  /** The queue, and the end of its pipe from which requests are read. */
  readonly queue: number;
  readonly descriptor: number;
}

export type BlockThreadReply =
  | { readonly kind: 'ready' }
  /** The descriptor of a mapped file is no longer needed. */
  | { readonly kind: 'released'; readonly descriptor: number }
  | { readonly kind: 'unavailable'; readonly source: string; readonly reason: string }
  | { readonly kind: 'fetched'; readonly fetched: FetchedBlock }
  /** The number of fetched blocks on the disk has changed. */
  | { readonly kind: 'cached'; readonly blockCount: number };

const port = parentPort;
const native = loadNativeFiles();
const blocks = typeof native === 'string' ? null : blocksOf(native);
assert(
  port !== null && blocks !== null,
  'the block thread is a worker of a process with the addon',
);
const data = workerData as BlockThreadData;
blocks.serveQueue(data.queue);
void start(port, blocks);

/** An error ends the thread, which closes the queue. */
async function start(owner: MessagePort, calls: NativeBlocks): Promise<void> {
  const { source, descriptor, blockCountMax, deadlines } = data;
  const reply = (message: BlockThreadReply) => owner.postMessage(message);
  const cache = new BlockCache({
    ...{ native: calls, blockCountMax, deadlines },
    source: await openBlockSource(source),
    onReleased: (released) => reply({ kind: 'released', descriptor: released }),
    onUnavailable: (name, error) =>
      reply({ kind: 'unavailable', source: name, reason: String(error) }),
    onFetched: (fetched) => reply({ kind: 'fetched', fetched }),
    onCached: (blockCount) => reply({ kind: 'cached', blockCount }),
  });
  owner.on('message', (mapped: MappedFile) => cache.add(mapped));
  const requests = new Socket({ fd: descriptor, readable: true, writable: false });
  let rest: Uint8Array = new Uint8Array();
  requests.on('data', (chunk: Buffer) => {
    // A mapping is described before it can be read, so its description is there, though not yet received.
    for (;;) {
      const message = receiveMessageOnPort(owner) as { message: MappedFile } | undefined;
      if (message === undefined) break;
      cache.add(message.message);
    }
    const bytes = rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    for (; at + REQUEST_BYTES <= bytes.byteLength; at += REQUEST_BYTES) {
      const [index, generation, block] = [0, 4, 8].map((offset) => readUInt32(bytes, at + offset));
      if (block === UNMAPPED_REQUEST) cache.remove(index!, generation!);
      else cache.request(index!, generation!, block!);
    }
    rest = bytes.subarray(at);
  });
  reply({ kind: 'ready' });
}

function readUInt32(bytes: Buffer, at: number): number {
  return endianness() === 'LE' ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at);
}
