// Tracks the frames of a Zstandard stream (RFC 8878, section 3.1) without decoding them, to detect truncation: Node's
// decoder treats a truncated stream as complete and drops the unfinished part. Other errors are left to the decoder.

const MAGIC = 0xfd2fb528;
/** Length of the dictionary id, by its flag. */
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
/** Length of the content size field, by its flag. */
const CONTENT_LENGTH_BYTES = [0, 2, 4, 8] as const;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
const RLE_BLOCK = 1;

type Part = 'magic' | 'skippable length' | 'descriptor' | 'block';

export class ZstdBounds {
  /** The part whose header is read after `#skipCount` more bytes. */
  #part: Part = 'magic';
  #skipCount = 0;
  /** The header of the part, of which `#headerCount` bytes have arrived. */
  readonly #header = Buffer.alloc(4);
  #headerCount = 0;
  #hasChecksum = false;

  /** Whether the stream may end at this point. */
  get isComplete(): boolean {
    return this.#part === 'magic' && this.#skipCount === 0 && this.#headerCount === 0;
  }

  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      const skipped = Math.min(this.#skipCount, chunk.length - at);
      this.#skipCount -= skipped;
      at += skipped;
      if (at === chunk.length) return;
      this.#header[this.#headerCount++] = chunk[at++]!;
      if (this.#headerCount < headerBytesOf(this.#part)) continue;
      this.#headerCount = 0;
      this.#enter();
    }
  }

  /** Interprets a complete header. */
  #enter(): void {
    switch (this.#part) {
      case 'magic':
        // The decoder rejects anything that is not a skippable frame.
        this.#part = this.#header.readUInt32LE() === MAGIC ? 'descriptor' : 'skippable length';
        return;
      case 'skippable length':
        this.#skipCount = this.#header.readUInt32LE();
        this.#part = 'magic';
        return;
      case 'descriptor': {
        const descriptor = this.#header[0]!;
        const isSingleSegment = (descriptor & 0x20) !== 0;
        this.#hasChecksum = (descriptor & 0x04) !== 0;
        const lengthFlag = descriptor >>> 6;
        const lengthBytes =
          isSingleSegment && lengthFlag === 0 ? 1 : CONTENT_LENGTH_BYTES[lengthFlag]!;
        const windowBytes = isSingleSegment ? 0 : 1;
        this.#skipCount = windowBytes + DICTIONARY_BYTES[descriptor & 3]! + lengthBytes;
        this.#part = 'block';
        return;
      }
      case 'block': {
        const header = this.#header.readUIntLE(0, BLOCK_HEADER_BYTES);
        const isLast = (header & 1) !== 0;
        this.#skipCount = ((header >>> 1) & 3) === RLE_BLOCK ? 1 : header >>> 3;
        if (!isLast) return;
        if (this.#hasChecksum) this.#skipCount += CHECKSUM_BYTES;
        this.#part = 'magic';
        return;
      }
    }
  }
}

function headerBytesOf(part: Part): number {
  if (part === 'descriptor') return 1;
  return part === 'block' ? BLOCK_HEADER_BYTES : 4;
}
