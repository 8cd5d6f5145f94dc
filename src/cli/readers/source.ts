// Where bytes come from: a file, a file in gzip, a pipe, stdin. Gives the first unpacked bytes, by
// which formats are told apart, and the content from any byte on; counts what was read, for progress.

import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { CliError, reasonOf } from '../failure.js';

export interface InputSource {
  /** For messages. */
  readonly name: string;
  /** As it lies on the disk; undefined for a pipe. */
  readonly byteCount: number | undefined;
  /** Of those, how many have been read. */
  bytesRead(): number;
  /** For a reader that reads by itself. */
  markRead(share: number): void;
  /** For formats that are read here and there; undefined for what comes as a stream only. */
  readonly path: string | undefined;
  readonly isPacked: boolean;
  /** The first bytes, unpacked; fewer where there are fewer. */
  readonly head: Uint8Array;
  /** The content, unpacked, from this byte on. Of a pipe it can be had once. */
  chunks(start?: number): AsyncIterable<Uint8Array>;
}

/** Stands for stdin among paths. */
export const STDIN = '-';

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
const HEAD_BYTES = 512;
const CHUNK_BYTES = 1 << 20;

/** Throws CliError when there is nothing that could be read. */
export async function openSource(path: string): Promise<InputSource> {
  if (path === STDIN) return openStream('stdin', process.stdin);
  try {
    const found = await stat(path);
    if (found.isDirectory()) throw new CliError(`${path}: expected a file, found a folder`);
    if (!found.isFile()) return await openStream(path, createReadStream(path));
    return await openFile(path, found.size);
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    throw new CliError(reasonOf(cause, path), { cause });
  }
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
  const packedHead = await readHead(path);
  const isPacked = startsWith(packedHead, GZIP_MAGIC);
  const chunks = (start = 0): AsyncIterable<Uint8Array> =>
    isPacked ? skipBytes(gunzip(path, raw(0)), start) : raw(start);
  const head = isPacked ? await firstBytes(chunks()) : packedHead;
  bytesRead = 0;
  return {
    name: path,
    byteCount,
    bytesRead: () => bytesRead,
    markRead: (share) => {
      bytesRead = share * byteCount;
    },
    path: isPacked ? undefined : path,
    isPacked,
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
  const packed = await peek(counted);
  const isPacked = startsWith(packed.head, GZIP_MAGIC);
  const { head, all } = isPacked ? await peek(gunzip(name, packed.all)) : packed;
  return {
    name,
    byteCount: undefined,
    bytesRead: () => bytesRead,
    markRead: () => {},
    path: undefined,
    isPacked,
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
  // The first chunk of a pipe may be a single byte.
  const pieces: Uint8Array[] = [];
  let byteCount = 0;
  while (byteCount < HEAD_BYTES) {
    const next = await chunks.next();
    if (next.done) break;
    pieces.push(next.value);
    byteCount += next.value.length;
  }
  const all = (async function* () {
    yield* pieces;
    yield* chunks;
  })();
  return { head: Buffer.concat(pieces).subarray(0, HEAD_BYTES), all };
}

async function* skipBytes(
  chunks: AsyncIterable<Uint8Array>,
  count: number,
): AsyncGenerator<Uint8Array> {
  let left = count;
  for await (const chunk of chunks) {
    if (left < chunk.length) yield left === 0 ? chunk : chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}

async function* gunzip(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const unpacked = createGunzip({ chunkSize: 1 << 18 });
  // Errors of the source reach whoever reads `unpacked`, which pipeline destroys with them.
  pipeline(chunks, unpacked, () => {});
  try {
    for await (const chunk of unpacked) yield chunk as Buffer;
  } catch (cause) {
    throw new CliError(`${name}: cannot be unpacked: ${(cause as Error).message}`, { cause });
  }
}

export function startsWith(bytes: Uint8Array, magic: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(0, magic.length), magic) === 0;
}
