// Zeroed typed arrays in shared memory, which all threads can read without a copy.

export type SharedArray = Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array;

/** Not shared in a browser that has no shared memory: pages need to be isolated for it. */
export function sharedMemory(byteCount: number): ArrayBufferLike {
  return typeof SharedArrayBuffer === 'undefined'
    ? new ArrayBuffer(byteCount)
    : new SharedArrayBuffer(byteCount);
}

export function sharedBytes(length: number): Uint8Array {
  return new Uint8Array(sharedMemory(length));
}

export function sharedInt32(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * 4));
}

export function sharedUint32(length: number): Uint32Array {
  return new Uint32Array(new SharedArrayBuffer(length * 4));
}

export function sharedFloat32(length: number): Float32Array {
  return new Float32Array(new SharedArrayBuffer(length * 4));
}

export function sharedFloat64(length: number): Float64Array {
  return new Float64Array(new SharedArrayBuffer(length * 8));
}

/** Creates an array of the same type. */
export function sharedLike<T extends SharedArray>(array: T, length = array.length): T {
  const ArrayType = array.constructor as new (buffer: SharedArrayBuffer) => T;
  return new ArrayType(new SharedArrayBuffer(length * array.BYTES_PER_ELEMENT));
}
