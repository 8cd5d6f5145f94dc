// A range of bytes in a journal file. Records and long values stay there and are not kept in memory.

export interface Extent {
  /** Number of the journal file. */
  readonly file: number;
  /** In bytes from the start of the file. */
  readonly offset: number;
  readonly byteLength: number;
  /** CRC-32 of the bytes. */
  readonly checksum: number;
}

/** Only short values are kept in memory. */
export type StoredValue = Uint8Array | Extent;

export function isExtent(value: StoredValue): value is Extent {
  return !(value instanceof Uint8Array);
}

export function isSameExtent(a: Extent, b: Extent): boolean {
  return a.file === b.file && a.offset === b.offset;
}
