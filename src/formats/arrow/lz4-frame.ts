// Decodes LZ4 frames (format 1.6) into a buffer of known length. Every length is checked before bytes are copied, so a
// frame cannot write outside the target. The time is linear in both lengths. Checksums are not compared, because the
// transport has its own and the decoded data is checked as Arrow.

const MAGIC = 0x184d2204;
const VERSION_MASK = 0xc0;
const VERSION = 0x40;
const BLOCKS_ARE_INDEPENDENT = 0x20;
const HAS_BLOCK_CHECKSUMS = 0x10;
const HAS_CONTENT_SIZE = 0x08;
const HAS_CONTENT_CHECKSUM = 0x04;
const HAS_DICTIONARY = 0x01;
const IS_STORED = 0x80000000;
const MATCH_MIN = 4;
/** Up to this length a loop is faster than a call. */
const LOOP_BYTES_MAX = 32;

/** Returns the number of bytes written to `target`. Throws an Error if the frame is damaged. */
export function decodeLz4Frame(frame: Uint8Array, target: Uint8Array): number {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  if (frame.length < 7 || view.getUint32(0, true) !== MAGIC) throw new Error('not an LZ4 frame');
  const flags = frame[4]!;
  if ((flags & VERSION_MASK) !== VERSION) throw new Error('an unknown version');
  if ((flags & HAS_DICTIONARY) !== 0) throw new Error('a dictionary');
  // Magic, flags, block size, perhaps the content size, header checksum.
  let at = 4 + 2 + ((flags & HAS_CONTENT_SIZE) !== 0 ? 8 : 0) + 1;
  let end = 0;
  while (true) {
    if (at + 4 > frame.length) throw new Error('no end mark');
    const word = view.getUint32(at, true);
    at += 4;
    if (word === 0) break;
    const isStored = word >= IS_STORED;
    const length = isStored ? word - IS_STORED : word;
    if (at + length > frame.length) throw new Error('a block beyond the frame');
    if (isStored) {
      if (end + length > target.length) throw new Error('more bytes than announced');
      target.set(frame.subarray(at, at + length), end);
      end += length;
    } else {
      const windowStart = (flags & BLOCKS_ARE_INDEPENDENT) !== 0 ? end : 0;
      end = decodeBlock(frame.subarray(at, at + length), target, end, windowStart);
    }
    at += length + ((flags & HAS_BLOCK_CHECKSUMS) !== 0 ? 4 : 0);
  }
  at += (flags & HAS_CONTENT_CHECKSUM) !== 0 ? 4 : 0;
  if (at !== frame.length) throw new Error('bytes after the frame');
  return end;
}

/** Writes from target[start] on and returns the end. Matches reach back at most to `windowStart`. */
function decodeBlock(
  block: Uint8Array,
  target: Uint8Array,
  start: number,
  windowStart: number,
): number {
  let at = 0;
  let end = start;
  while (true) {
    // Beyond the end the token is undefined, which acts as 0, and the check below throws.
    const token = block[at++]!;
    let literals = token >> 4;
    if (literals === 15) {
      let more = 255;
      while (more === 255) {
        more = block[at++] ?? -1;
        if (more < 0) throw new Error('a length beyond the block');
        literals += more;
      }
    }
    if (at + literals > block.length) throw new Error('literals beyond the block');
    if (end + literals > target.length) throw new Error('more bytes than announced');
    if (literals > LOOP_BYTES_MAX) {
      target.set(block.subarray(at, at + literals), end);
      at += literals;
      end += literals;
    } else {
      for (let i = 0; i < literals; i++) target[end++] = block[at++]!;
    }
    if (at === block.length) return end;
    if (at + 2 > block.length) throw new Error('a match beyond the block');
    const distance = block[at]! | (block[at + 1]! << 8);
    at += 2;
    let length = token & 15;
    if (length === 15) {
      let more = 255;
      while (more === 255) {
        more = block[at++] ?? -1;
        if (more < 0) throw new Error('a length beyond the block');
        length += more;
      }
    }
    length += MATCH_MIN;
    const from = end - distance;
    if (distance === 0 || from < windowStart) throw new Error('a match before the window');
    if (end + length > target.length) throw new Error('more bytes than announced');
    if (length > LOOP_BYTES_MAX && distance >= length) {
      target.copyWithin(end, from, from + length);
      end += length;
    } else {
      for (let i = 0; i < length; i++) target[end + i] = target[from + i]!;
      end += length;
    }
  }
}
