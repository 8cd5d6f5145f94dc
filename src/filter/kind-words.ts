// The kinds of 32 rows at once: eight 32-bit words of four kinds each become 32 bits. Most columns
// hold one kind, and then eight comparisons with a word of that kind say it all.

/** As words, low byte first: kind i is byte i & 3 of word i >>> 2. Kinds after the last four are left out. */
export function kindWordsOf(kinds: Uint8Array): Uint32Array {
  // Words start at multiples of four only; a column of another file may begin elsewhere.
  const { buffer, byteOffset, length } = kinds.byteOffset % 4 === 0 ? kinds : kinds.slice();
  return new Uint32Array(buffer, byteOffset, length >>> 2);
}

/** Bit i is 1 where row 32 × `index` + i is of the kind. Kinds are below 8. */
export function kindMask(kindWords: Uint32Array, index: number, kind: number): number {
  const four = Math.imul(kind, 0x01010101);
  const first = index << 3;
  const a = kindWords[first] ^ four;
  const b = kindWords[first + 1] ^ four;
  const c = kindWords[first + 2] ^ four;
  const d = kindWords[first + 3] ^ four;
  const e = kindWords[first + 4] ^ four;
  const f = kindWords[first + 5] ^ four;
  const g = kindWords[first + 6] ^ four;
  const h = kindWords[first + 7] ^ four;
  if ((a | b | c | d | e | f | g | h) === 0) return -1;
  return (
    zeroBytes(a) |
    (zeroBytes(b) << 4) |
    (zeroBytes(c) << 8) |
    (zeroBytes(d) << 12) |
    (zeroBytes(e) << 16) |
    (zeroBytes(f) << 20) |
    (zeroBytes(g) << 24) |
    (zeroBytes(h) << 28)
  );
}

/** Bit i is 1 where byte i is 0; every byte is below 8. */
function zeroBytes(word: number): number {
  // Adding 7 carries into bit 3 of every byte but a zero, and no further.
  const isZero = (~(word + 0x07070707) >>> 3) & 0x01010101;
  // The product moves the bits 0, 8, 16 and 24 to 28, 29, 30 and 31; nothing carries into them.
  return Math.imul(isZero, 0x10204080) >>> 28;
}
