// A file to import: finds out by its first bytes what it is (NDJSON, Arrow file, Arrow stream, any
// of them in gzip but the Arrow file) and gives its rows. Counts what has been read, for progress.

import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { readArrowRows } from './arrow-rows.js';
import { CliError } from './failure.js';
import type { ImportRow, RowFields } from './import-row.js';
import { readNdjsonRows } from './ndjson-rows.js';

export interface InputFile {
  readonly name: string;
  readonly byteCount: number;
  /** Bytes of the file, as it lies on the disk, that have been read. */
  bytesRead(): number;
  rows(fields: RowFields): AsyncIterable<ImportRow>;
}

const ARROW_FILE_MAGIC = Buffer.from('ARROW1');
const ARROW_STREAM_MAGIC = Buffer.from([0xff, 0xff, 0xff, 0xff]);
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

export async function openInput(path: string): Promise<InputFile> {
  const { byteCount, head } = await inspect(path);
  let bytesRead = 0;
  const count = (share: number): void => {
    bytesRead = share * byteCount;
  };
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of createReadStream(path)) {
      bytesRead += (chunk as Buffer).length;
      yield chunk as Buffer;
    }
  };
  return {
    name: path,
    byteCount,
    bytesRead: () => bytesRead,
    rows(fields) {
      if (startsWith(head, ARROW_FILE_MAGIC)) {
        return readArrowRows(path, { kind: 'file', path, onProgress: count }, fields);
      }
      const chunks = startsWith(head, GZIP_MAGIC) ? gunzip(path, bytes()) : bytes();
      return readRows(path, chunks, fields);
    },
  };
}

async function inspect(path: string): Promise<{ byteCount: number; head: Buffer }> {
  try {
    const found = await stat(path);
    // The head is read before the rest, which a pipe would not survive.
    if (!found.isFile()) throw new CliError(`${path}: expected a file, found a folder or a pipe`);
    const handle = await open(path);
    try {
      const head = Buffer.alloc(ARROW_FILE_MAGIC.length);
      const { bytesRead } = await handle.read(head, 0, head.length, 0);
      return { byteCount: found.size, head: head.subarray(0, bytesRead) };
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    throw new CliError(`${path}: cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** NDJSON or an Arrow stream, told apart by what comes first. */
async function* readRows(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  fields: RowFields,
): AsyncGenerator<ImportRow> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return;
  const all: AsyncIterable<Uint8Array> = (async function* () {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => iterator };
  })();
  if (startsWith(first.value, ARROW_FILE_MAGIC)) {
    throw new CliError(`${name}: an Arrow file cannot be read inside gzip; unpack it first`);
  }
  yield* startsWith(first.value, ARROW_STREAM_MAGIC)
    ? readArrowRows(name, { kind: 'stream', chunks: all }, fields)
    : readNdjsonRows(name, all, fields);
}

async function* gunzip(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const unpacked = createGunzip();
  // Errors of the source reach whoever reads `unpacked`, which pipeline destroys with them.
  pipeline(chunks, unpacked, () => {});
  try {
    for await (const chunk of unpacked) yield chunk as Buffer;
  } catch (cause) {
    throw new CliError(`${name}: cannot be unpacked: ${(cause as Error).message}`, { cause });
  }
}

function startsWith(bytes: Uint8Array, magic: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(0, magic.length), magic) === 0;
}
