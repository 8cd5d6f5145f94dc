// The bytes that readers read: a file, a file of a browser, a pipe, or the content of a gzip file.

export interface InputSource {
  /** Path, file name or `stdin`, for messages. */
  readonly name: string;
  /** Bytes as stored, compressed if they are; undefined for a pipe. */
  readonly byteCount: number | undefined;
  /** Bytes of the content, where that is known. */
  readonly contentBytes: number | undefined;
  readonly isCompressed: boolean;
  /** The first bytes of the content, at most HEAD_BYTES. */
  readonly head: Uint8Array;
  /** How many of the stored bytes have been read, for progress. */
  bytesRead(): number;
  /** The content from this offset on; of a pipe only once. */
  chunks(start?: number): AsyncIterable<Uint8Array>;
  /** Undefined for pipes and compressed files, which can only be read in order. */
  readonly file: RandomFile | undefined;
}

/** A file whose bytes can be read in any order. */
export interface RandomFile {
  readonly byteCount: number;
  /** The bytes start..end. Throws ReadError when the file ends before. */
  read(start: number, end: number): Promise<Uint8Array>;
  /** The file for libraries that read one themselves. */
  blob(): Promise<Blob>;
  readonly packages: ReaderPackages;
}

/** Large packages, which Node and browsers load in different ways. */
export interface ReaderPackages {
  parquet(): Promise<typeof import('parquet-wasm')>;
  /** The library, and the path under which it opens the file. */
  hdf5(): Promise<{ readonly library: Hdf5Package; readonly path: string }>;
}

type Hdf5Package = Pick<typeof import('h5wasm/node'), 'ready' | 'File' | 'Dataset'>;

/** Enough for the header of any format; a slow pipe is waited for until it has sent as many. */
export const HEAD_BYTES = 512;

/** The first bytes of the content. */
export async function headOf(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const head = new Uint8Array(HEAD_BYTES);
  let byteCount = 0;
  for await (const chunk of chunks) {
    const taken = chunk.subarray(0, HEAD_BYTES - byteCount);
    head.set(taken, byteCount);
    byteCount += taken.length;
    if (byteCount === HEAD_BYTES) break;
  }
  return head.subarray(0, byteCount);
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
