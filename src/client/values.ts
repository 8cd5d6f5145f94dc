// Vectors as text: base64 of little-endian float32, which is a third of the bytes of decimal
// numbers and keeps every bit. Works in browsers too, hence no Buffer.

/** Bytes turned to characters at a time: arguments of one call have to fit the stack. */
const CHUNK_BYTES = 0x8000;

export function encodeValues(values: Float32Array): string {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let characters = '';
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    characters += String.fromCharCode(...bytes.subarray(start, start + CHUNK_BYTES));
  }
  return btoa(characters);
}

/** Throws when the text is not base64 of whole float32 numbers. */
export function decodeValues(text: string): Float32Array {
  const characters = atob(text);
  if (characters.length % 4 !== 0) {
    throw new RangeError(
      `expected base64 of float32 numbers, 4 bytes each; found ${characters.length} bytes`,
    );
  }
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return new Float32Array(bytes.buffer);
}
