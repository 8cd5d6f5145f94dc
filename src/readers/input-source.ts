// Where readers get their bytes: a file on disk or in a browser, a pipe, or the content of a gzip file.

export interface InputSource {
  /** Path, file name or `stdin`, for messages. */
  readonly name: string;
  /** Size as stored, before decompression; undefined for a pipe. */
  readonly byteCount: number | undefined;
  /** Size of the content, after decompression; undefined where it is not known. */
  readonly contentBytes: number | undefined;
  readonly isCompressed: boolean;
  /** The first bytes of the content, at most HEAD_BYTES. */
  readonly head: Uint8Array;
  /** Stored bytes read so far, for progress. */
  bytesRead(): number;
  /** The content from this offset on. A pipe can be read only once. */
  chunks(start?: number): AsyncIterable<Uint8Array>;
  /** Undefined for pipes and compressed files, which can be read only in order. */
  readonly file: RandomFile | undefined;
}

/** A file whose bytes can be read in any order. */
export interface RandomFile {
  readonly byteCount: number;
  /** The bytes from `start` to before `end`. Throws ReadError when the file ends earlier. */
  read(start: number, end: number): Promise<Uint8Array>;
  /** The file as a Blob, for libraries that read it themselves. */
  blob(): Promise<Blob>;
  readonly packages: ReaderPackages;
}

/** Loads large packages, which Node and browsers do in different ways. */
export interface ReaderPackages {
  parquet(): Promise<typeof import('parquet-wasm')>;
  /** The library, and the path under which it opens the file. */
  hdf5(): Promise<{ readonly library: Hdf5Package; readonly path: string }>;
}

type Hdf5Package = Pick<typeof import('h5wasm/node'), 'ready' | 'File' | 'Dataset'>;

/** Enough for the header of any format. Opening a slow pipe waits until it has sent this many bytes. */
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
