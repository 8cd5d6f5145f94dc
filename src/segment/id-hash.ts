// HalfSipHash-1-3 (Aumasson and Bernstein; the 32-bit variant of SipHash), a keyed hash of short byte
// strings. Clients do not know the key and cannot create colliding ids to slow down the id index.

/** Two random 32-bit words. */
export type HashKey = readonly [number, number];

/** Returns an unsigned 32-bit hash. */
export function hashBytes(bytes: Uint8Array, key: HashKey): number {
  let v0 = key[0];
  let v1 = key[1];
  let v2 = 0x6c796765 ^ key[0];
  let v3 = 0x74656462 ^ key[1];
  const { length } = bytes;
  const whole = length & ~3;
  // One compression round per word of four bytes; the last word holds the remaining bytes and the length.
  for (let i = 0; i <= whole; i += 4) {
    let word: number;
    if (i < whole) {
      word = bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    } else {
      word = length << 24;
      for (let j = whole; j < length; j++) word |= bytes[j]! << ((j - whole) * 8);
    }
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  v2 ^= 0xff;
  for (let round = 0; round < 3; round++) {
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
  }
  return (v1 ^ v3) >>> 0;
}
