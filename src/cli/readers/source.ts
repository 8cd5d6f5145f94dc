// Input bytes: a file, a gzip file, a pipe or stdin. Provides the first decompressed bytes for format
// detection and the content from any offset on, and counts the bytes read, for progress.

import { constants, createReadStream, open as openDescriptor, type Stats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip } from 'node:zlib';
import { CliError, fileErrorText } from '../failure.js';

export interface InputSource {
  /** Path or `stdin`, for messages. */
  readonly name: string;
  /** Size on disk, compressed if the file is; undefined for a pipe. */
  readonly byteCount: number | undefined;
  /** Size of the decompressed content, where that is known. */
  readonly contentBytes: number | undefined;
  /** How many of the bytes on disk have been read. */
  bytesRead(): number;
  /** Sets the progress, for readers that open the file themselves. */
  markRead(share: number): void;
  /** Path for formats that need random access; undefined for pipes and gzip. */
  readonly path: string | undefined;
  readonly isCompressed: boolean;
  /** The first decompressed bytes, at most HEAD_BYTES. */
  readonly head: Uint8Array;
  /** The decompressed content from this offset on; of a pipe only once. */
  chunks(start?: number): AsyncIterable<Uint8Array>;
}

/** A file whose beginning has been read, or a pipe that nobody has opened yet. */
export interface Input {
  readonly name: string;
  /** Size on disk; undefined for a pipe. */
  readonly byteCount: number | undefined;
  /**
   * To be called once, for a pipe when its turn has come: what writes it may wait until the pipes before it
   * have been read.
   */
  open(): Promise<InputSource>;
}

/** The path that stands for stdin. */
export const STDIN = '-';
const STDIN_DEVICE = '/dev/stdin';

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
export const HEAD_BYTES = 512;
export const CHUNK_BYTES = 1 << 20;
export const INFLATE_OPTIONS = { chunkSize: 1 << 18 } as const;

/** Throws CliError when the file does not exist or cannot be read. */
export async function openSource(path: string): Promise<InputSource> {
  return (await findInput(path)).open();
}

/** Throws CliError when the file does not exist or cannot be read. */
export function findInput(path: string): Promise<Input> {
  return named(path, async () => {
    const found = path === STDIN ? undefined : await stat(path);
    if (found?.isDirectory()) throw new CliError(`${path} is a directory, expected a file`);
    if (found?.isFile()) {
      const source = await openFile(path, found.size);
      return { name: path, byteCount: found.size, open: async () => source };
    }
    const name = path === STDIN ? 'stdin' : path;
    const open = () => named(path, async () => openStream(name, await openPipe(path, found)));
    return { name, byteCount: undefined, open };
  });
}

/** Whether it is stdin, a pipe, or anything else that can be read only once. False for what does not exist. */
export async function isPipe(path: string): Promise<boolean> {
  if (path === STDIN) return true;
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && !found.isFile();
}

async function named<Value>(path: string, read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    throw new CliError(fileErrorText(cause, path), { cause });
  }
}

async function openPipe(path: string, found: Stats | undefined): Promise<AsyncIterable<unknown>> {
  // If stdin is a socket, the system does not open it a second time.
  if (path === STDIN || path === STDIN_DEVICE) return process.stdin;
  if (found?.isFIFO() !== true) return createReadStream(path);
  // Unlike the stream of a file, it can be closed while it waits for data; and opened without waiting for a writer,
  // since the process could not end meanwhile.
  const fd = await promisify(openDescriptor)(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return new Socket({ fd, readable: true, writable: false });
}

async function openFile(path: string, byteCount: number): Promise<InputSource> {
  let bytesRead = 0;
  const raw = async function* (start: number): AsyncGenerator<Uint8Array> {
    const options = { start, highWaterMark: CHUNK_BYTES };
    bytesRead = start;
    for await (const chunk of createReadStream(path, options)) {
      bytesRead += (chunk as Buffer).length;
      yield chunk as Buffer;
    }
  };
  const rawHead = await readHead(path);
  const isCompressed = startsWith(rawHead, GZIP_MAGIC);
  const chunks = (start = 0): AsyncIterable<Uint8Array> =>
    isCompressed ? skipBytes(gunzip(path, raw(0)), start) : raw(start);
  const head = isCompressed ? await firstBytes(chunks()) : rawHead;
  bytesRead = 0;
  return {
    name: path,
    byteCount,
    contentBytes: isCompressed ? undefined : byteCount,
    bytesRead: () => bytesRead,
    markRead: (share) => {
      bytesRead = share * byteCount;
    },
    path: isCompressed ? undefined : path,
    isCompressed,
    head,
    chunks,
  };
}

async function openStream(name: string, stream: AsyncIterable<unknown>): Promise<InputSource> {
  let bytesRead = 0;
  const counted = (async function* () {
    for await (const chunk of stream) {
      bytesRead += (chunk as Buffer).length;
      yield chunk as Uint8Array;
    }
  })();
  const raw = await peek(counted);
  const isCompressed = startsWith(raw.head, GZIP_MAGIC);
  const { head, all } = isCompressed ? await peek(gunzip(name, raw.all)) : raw;
  return {
    name,
    byteCount: undefined,
    contentBytes: undefined,
    bytesRead: () => bytesRead,
    markRead: () => {},
    path: undefined,
    isCompressed,
    head,
    chunks: (start = 0) => skipBytes(all, start),
  };
}

async function readHead(path: string): Promise<Uint8Array> {
  const handle = await open(path);
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function firstBytes(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  for await (const chunk of chunks) return chunk.subarray(0, HEAD_BYTES);
  return new Uint8Array(0);
}

async function peek(
  chunks: AsyncGenerator<Uint8Array>,
): Promise<{ head: Uint8Array; all: AsyncGenerator<Uint8Array> }> {
  // Chunks of a pipe can be as small as one byte.
  const parts: Uint8Array[] = [];
  let byteCount = 0;
  while (byteCount < HEAD_BYTES) {
    const next = await chunks.next();
    if (next.done) break;
    parts.push(next.value);
    byteCount += next.value.length;
  }
  const all = (async function* () {
    yield* parts;
    yield* chunks;
  })();
  return { head: Buffer.concat(parts).subarray(0, HEAD_BYTES), all };
}

export async function* skipBytes(
  chunks: AsyncIterable<Uint8Array>,
  count: number,
): AsyncGenerator<Uint8Array> {
  let left = count;
  for await (const chunk of chunks) {
    if (left < chunk.length) yield left === 0 ? chunk : chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}

function gunzip(name: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  return decompress(name, chunks, createGunzip(INFLATE_OPTIONS));
}

/** The bytes through a stream of zlib. Throws CliError for invalid ones. */
export async function* decompress(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  decompressed: Duplex,
): AsyncGenerator<Uint8Array> {
  // Errors of the source reach the loop below: pipeline destroys the stream with them.
  pipeline(chunks, decompressed, () => {});
  try {
    for await (const chunk of decompressed) yield chunk as Buffer;
  } catch (cause) {
    throw new CliError(`${name}: cannot be decompressed: ${(cause as Error).message}`, { cause });
  }
}

export function startsWith(bytes: Uint8Array, magic: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(0, magic.length), magic) === 0;
}
