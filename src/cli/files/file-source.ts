// Opens files, gzip files, pipes and stdin for the readers.

import {
  closeSync,
  constants,
  createReadStream,
  openAsBlob,
  open as openDescriptor,
  openSync,
  read as readDescriptor,
  type Stats,
} from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip } from 'node:zlib';
import { startsWith } from '../../common/bytes.js';
import { loadOptional } from '../../platform/optional-package.js';
import {
  HEAD_BYTES,
  headOf,
  type InputSource,
  type RandomFile,
  skipBytes,
} from '../../readers/input-source.js';
import { ReadError } from '../../readers/read-error.js';
import { CliError, fileErrorText } from '../terminal/failure.js';

/** A file whose beginning has been read, or a pipe that is not open yet. */
export interface Input {
  readonly name: string;
  /** Size on disk; undefined for a pipe. */
  readonly byteCount: number | undefined;
  /**
   * Called once. A pipe is opened only when its turn comes: its writer may wait until the pipes before it have been
   * read.
   */
  open(): Promise<InputSource>;
}

/** The path that stands for stdin. */
export const STDIN = '-';
const STDIN_DEVICE = '/dev/stdin';

const readPart = promisify(readDescriptor);
const GZIP_MAGIC = Uint8Array.of(0x1f, 0x8b);
/** Progress is shown in steps of this size; texts of one step can take seconds to become vectors. */
const CHUNK_BYTES = 1 << 17;
const INFLATED_CHUNK_BYTES = 1 << 18;

/** Throws CliError when the file does not exist or cannot be read. */
export async function openInput(path: string): Promise<InputSource> {
  return (await findInput(path)).open();
}

/** Throws CliError when the file does not exist or cannot be read. */
export function findInput(path: string): Promise<Input> {
  return withPath(path, async () => {
    const found = path === STDIN ? undefined : await stat(path);
    if (found?.isDirectory()) throw new CliError(`${path} is a directory, expected a file`);
    if (found?.isFile()) {
      const source = await openFile(path, found.size);
      return { name: path, byteCount: found.size, open: async () => source };
    }
    const name = path === STDIN ? 'stdin' : path;
    const openPipe = () =>
      withPath(path, async () => openStream(name, await streamOf(path, found)));
    return { name, byteCount: undefined, open: openPipe };
  });
}

/** Whether the path is stdin, a pipe, or anything else that can be read only once. False if it does not exist. */
export async function isPipe(path: string): Promise<boolean> {
  if (path === STDIN) return true;
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && !found.isFile();
}

async function withPath<Value>(path: string, read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof CliError || cause instanceof ReadError) throw cause;
    throw new CliError(fileErrorText(cause, path), { cause });
  }
}

async function streamOf(path: string, found: Stats | undefined): Promise<AsyncIterable<unknown>> {
  // The system cannot open stdin by its path if it is a socket.
  if (path === STDIN || path === STDIN_DEVICE) return process.stdin;
  if (found?.isFIFO() !== true) return createReadStream(path);
  // Unlike a file stream, a socket can be closed while it waits for data. Opening does not wait for a writer, since the
  // process could not end while it waits.
  const fd = await promisify(openDescriptor)(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return new Socket({ fd, readable: true, writable: false });
}

async function openFile(path: string, byteCount: number): Promise<InputSource> {
  let bytesRead = 0;
  const raw = async function* (start: number): AsyncGenerator<Uint8Array> {
    bytesRead = start;
    for await (const chunk of createReadStream(path, { start, highWaterMark: CHUNK_BYTES })) {
      bytesRead += (chunk as Buffer).length;
      yield chunk as Buffer;
    }
  };
  const rawHead = await readHead(path);
  const isCompressed = startsWith(rawHead, GZIP_MAGIC);
  const chunks = (start = 0): AsyncIterable<Uint8Array> =>
    isCompressed ? skipBytes(gunzip(path, raw(0)), start) : raw(start);
  const head = isCompressed ? await headOf(chunks()) : rawHead;
  bytesRead = 0;
  const onRead = (end: number) => {
    bytesRead = end;
  };
  return {
    name: path,
    byteCount,
    contentBytes: isCompressed ? undefined : byteCount,
    isCompressed,
    head,
    bytesRead: () => bytesRead,
    chunks,
    file: isCompressed ? undefined : randomFile(path, byteCount, onRead),
  };
}

function randomFile(path: string, byteCount: number, onRead: (end: number) => void): RandomFile {
  return {
    byteCount,
    async read(start, end) {
      const bytes = new Uint8Array(end - start);
      // The file is opened for each read: an import may have more files than a process may keep open.
      const fd = openSync(path, 'r');
      try {
        for (let done = 0; done < bytes.length; ) {
          const left = bytes.length - done;
          const { bytesRead } = await readPart(fd, bytes, done, left, start + done);
          if (bytesRead === 0) {
            throw new ReadError(`${path}: the file ends at byte ${start + done}, expected more`);
          }
          done += bytesRead;
        }
      } finally {
        closeSync(fd);
      }
      onRead(end);
      return bytes;
    },
    blob: () => openAsBlob(path),
    packages: {
      parquet: () => loadOptional('parquet-wasm', `${path}: reading Parquet`),
      hdf5: async () => {
        const loaded = await loadOptional<typeof import('h5wasm/node')>(
          'h5wasm/node',
          `${path}: reading HDF5`,
        );
        return { library: loaded.default, path };
      },
    },
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
    isCompressed,
    head,
    bytesRead: () => bytesRead,
    chunks: (start = 0) => skipBytes(all, start),
    file: undefined,
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

/** Throws ReadError for bytes that are not gzip. */
async function* gunzip(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const inflated = createGunzip({ chunkSize: INFLATED_CHUNK_BYTES });
  // Errors of the source reach the loop below: pipeline destroys the stream with them.
  pipeline(chunks, inflated, () => {});
  try {
    for await (const chunk of inflated) yield chunk as Buffer;
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new ReadError(`${name}: cannot be decompressed: ${reason}`, { cause });
  }
}
