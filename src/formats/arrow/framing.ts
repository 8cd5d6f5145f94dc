// The marks that frame Arrow IPC streams and files.

/** The first and the last bytes of a file. */
export const FILE_MAGIC = new TextEncoder().encode('ARROW1');
/** Begins a message; a uint32. */
export const CONTINUATION = 0xffffffff;
/** A message begins with the continuation mark and the length of its metadata. */
export const PREFIX_BYTES = 8;
export const END_OF_STREAM = Int32Array.of(CONTINUATION, 0);
