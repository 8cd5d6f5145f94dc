// Where the frames of a file of the journal are, found without the code that reads them: damage can be done to a certain
// part of a frame, and to whole frames.

export interface FrameRange {
  readonly at: number;
  readonly directoryAt: number;
  readonly bodiesAt: number;
  readonly end: number;
}

const MARK = Buffer.from('SGF1');
const HEADER_BYTES = 48;

/** The frames of an intact file, from its start on. */
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
