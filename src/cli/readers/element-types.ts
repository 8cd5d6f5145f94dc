// Numbers as files of vectors hold them, and how they become float32: half floats by arithmetic,
// the others as typed arrays convert them. Little-endian, as every machine that Node runs on is.

export const ELEMENT_TYPES = {
  float16: 2,
  float32: 4,
  float64: 8,
  int8: 1,
  uint8: 1,
  int16: 2,
  uint16: 2,
  int32: 4,
  uint32: 4,
  int64: 8,
  uint64: 8,
} as const;

export type ElementType = keyof typeof ELEMENT_TYPES;

/** `bytes` holds whole elements and is not changed, unless they are big-endian: then in place. */
export function toFloats(type: ElementType, bytes: Uint8Array, isBigEndian = false): Float32Array {
  const size = ELEMENT_TYPES[type];
  // A view needs an aligned start.
  const aligned = bytes.byteOffset % size === 0 ? bytes : bytes.slice();
  if (isBigEndian) swap(aligned, size);
  const { buffer, byteOffset } = aligned;
  const count = aligned.byteLength / size;
  switch (type) {
    case 'float32':
      return new Float32Array(buffer, byteOffset, count);
    case 'float16':
      return Float32Array.from(new Uint16Array(buffer, byteOffset, count), floatOfHalf);
    case 'float64':
      return new Float32Array(new Float64Array(buffer, byteOffset, count));
    case 'int8':
      return new Float32Array(new Int8Array(buffer, byteOffset, count));
    case 'uint8':
      return new Float32Array(new Uint8Array(buffer, byteOffset, count));
    case 'int16':
      return new Float32Array(new Int16Array(buffer, byteOffset, count));
    case 'uint16':
      return new Float32Array(new Uint16Array(buffer, byteOffset, count));
    case 'int32':
      return new Float32Array(new Int32Array(buffer, byteOffset, count));
    case 'uint32':
      return new Float32Array(new Uint32Array(buffer, byteOffset, count));
    case 'int64':
      return Float32Array.from(new BigInt64Array(buffer, byteOffset, count), Number);
    case 'uint64':
      return Float32Array.from(new BigUint64Array(buffer, byteOffset, count), Number);
  }
}

/** One sign bit, five of the exponent (biased by 15), ten of the fraction. */
function floatOfHalf(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function swap(bytes: Uint8Array, size: number): void {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (size === 2) buffer.swap16();
  else if (size === 4) buffer.swap32();
  else if (size === 8) buffer.swap64();
}
