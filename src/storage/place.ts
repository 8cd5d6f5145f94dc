// Where bytes of the journal are that are not kept in memory: records, and long values.

export interface Place {
  /** The number of the file. */
  readonly file: number;
  /** In bytes, from the start of the file. */
  readonly offset: number;
  readonly byteLength: number;
  /** CRC-32 of the bytes. */
  readonly checksum: number;
}

/** A short value is kept in memory. */
export type StoredValue = Uint8Array | Place;

export function isPlace(value: StoredValue): value is Place {
  return !(value instanceof Uint8Array);
}

export function isSamePlace(a: Place, b: Place): boolean {
  return a.file === b.file && a.offset === b.offset;
}
