// Gives readers the bytes of a file in the browser; gzip files are decompressed.

import { joinBytes, startsWith } from '../../../../../src/common/bytes.js';
import {
  HEAD_BYTES,
  headOf,
  type InputSource,
  type RandomFile,
  type ReaderPackages,
  skipBytes,
} from '../../../../../src/readers/input-source.js';
import { ReadError } from '../../../../../src/readers/read-error.js';

const GZIP_MAGIC = Uint8Array.of(0x1f, 0x8b);
/** Progress is shown in steps of this size; texts of one step can take seconds to become vectors. */
const CHUNK_BYTES = 256 * 1024;

/** Throws ReadError for a damaged gzip file. */
export async function openBrowserFile(file: File): Promise<InputSource> {
  let bytesRead = 0;
  async function read(start: number, end: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(await file.slice(start, end).arrayBuffer());
    bytesRead = start + bytes.length;
    return bytes;
  }
  async function* raw(start: number): AsyncGenerator<Uint8Array> {
    for (let at = start; at < file.size; at += CHUNK_BYTES) yield await read(at, at + CHUNK_BYTES);
  }
  const rawHead = await read(0, HEAD_BYTES);
  const isCompressed = startsWith(rawHead, GZIP_MAGIC);
  const chunks = (start = 0): AsyncIterable<Uint8Array> =>
    isCompressed ? skipBytes(gunzip(file.name, raw(0)), start) : raw(start);
  const head = isCompressed ? await headOf(chunks()) : rawHead;
  bytesRead = 0;
  const random: RandomFile = {
    byteCount: file.size,
    async read(start, end) {
      const bytes = await read(start, end);
      if (bytes.length === end - start) return bytes;
      throw new ReadError(`${file.name}: the file ends at byte ${file.size}, expected more`);
    },
    blob: async () => file,
    packages: packagesFor(file),
  };
  return {
    name: file.name,
    byteCount: file.size,
    contentBytes: isCompressed ? undefined : file.size,
    isCompressed,
    head,
    bytesRead: () => bytesRead,
    chunks,
    file: isCompressed ? undefined : random,
  };
}

async function* gunzip(
  name: string,
  chunks: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const compressed = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const next = await chunks.next();
      if (next.done) controller.close();
      else controller.enqueue(joinBytes([next.value]) as Uint8Array<ArrayBuffer>);
    },
  });
  const reader = compressed.pipeThrough(new DecompressionStream('gzip')).getReader();
  try {
    while (true) {
      const next = await reader.read();
      if (next.done) return;
      yield next.value;
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ReadError(`${name}: cannot be decompressed: ${reason}`, { cause });
  } finally {
    void reader.cancel().catch(() => {});
  }
}

function packagesFor(file: File): ReaderPackages {
  return {
    async parquet() {
      const parquet = await import('parquet-wasm/esm');
      await parquet.default();
      return parquet as unknown as Awaited<ReturnType<ReaderPackages['parquet']>>;
    },
    async hdf5() {
      // Its library takes 5 MB, more than the whole console, for a format used by benchmarks.
      throw new ReadError(`${file.name}: the console does not read HDF5; use \`sagitta import\``);
    },
  };
}
