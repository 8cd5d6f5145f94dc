// A file as bytes that are read in pieces, never as a whole.

/** What this needs of a `File`. */
export interface SliceableFile {
  readonly name: string;
  readonly size: number;
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

export const CHUNK_BYTES = 4 * 1024 * 1024;

export async function readBytes(
  file: SliceableFile,
  start: number,
  end: number,
): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await file.slice(start, end).arrayBuffer());
}

/** The bytes from `start` to the end; `onRead` gets the position after each chunk. */
export async function* chunksOf(
  file: SliceableFile,
  start: number,
  onRead: (position: number) => void,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let at = start; at < file.size; at += CHUNK_BYTES) {
    const end = Math.min(file.size, at + CHUNK_BYTES);
    const chunk = await readBytes(file, at, end);
    onRead(end);
    yield chunk;
  }
}

/** The same as text; the byte order mark is left out. */
export async function* textsOf(
  file: SliceableFile,
  onRead: (position: number) => void,
): AsyncGenerator<string> {
  // Throws for bytes that are not UTF-8: replacement characters would be imported in their place.
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const chunk of chunksOf(file, 0, onRead)) {
    yield decoder.decode(chunk, { stream: true });
  }
  yield decoder.decode();
}
