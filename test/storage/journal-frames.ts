// Finds the frames of a journal file without the code that reads them, so that tests can damage certain parts of a
// frame, or whole frames.

export interface FrameRange {
  readonly at: number;
  readonly directoryAt: number;
  readonly bodiesAt: number;
  readonly end: number;
}

const MARK = Buffer.from('SGF1');
const HEADER_BYTES = 48;

/** The frames of an intact file in order. */
export function framesIn(bytes: Buffer): FrameRange[] {
  const frames: FrameRange[] = [];
  let at = 0;
  while (bytes.subarray(at, at + MARK.length).equals(MARK)) {
    const directoryAt = at + HEADER_BYTES;
    const bodiesAt = directoryAt + bytes.readUInt32LE(at + 16);
    const end = bodiesAt + bytes.readDoubleLE(at + 24);
    frames.push({ at, directoryAt, bodiesAt, end });
    at = end;
  }
  return frames;
}
