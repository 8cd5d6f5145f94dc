// Writes a base: a file with the whole state. Earlier logs are then needed only for the records and values that the
// base refers to. A backup is a base that contains everything itself.

import { open } from 'node:fs/promises';
import { FILE_MODE, writeParts } from './disk.js';
import { type Extent, isExtent, isSameExtent } from './extent.js';
import {
  BASE_SEED,
  type EntryToWrite,
  entriesOf,
  extentOf,
  FrameBuilder,
  type Head,
  NO_FRAME,
} from './frame.js';
import { ALL_KEYS, nameOfKey, STORE_FORMAT_VERSION } from './store-format.js';
import type { Move, StoreState } from './store-state.js';

/** The event loop handles other work between two frames. */
const FRAME_BYTES_MAX = 1024 * 1024;

export interface BaseSource {
  /** Must not change while the base is being written. */
  readonly state: StoreState;
  /** The last frame of the journal that the state includes. */
  readonly head: Head;
  readonly seed: number;
  /** The bytes to copy into the base; undefined for content that stays where it is. */
  content(extent: Extent, what: () => string): Uint8Array | undefined;
  /** Called before each frame; may throw to cancel. */
  onFrame?(): void;
}

/** Writes and syncs the file. Throws errors of the system, and those of the source. */
export async function writeBase(
  path: string,
  number: number,
  source: BaseSource,
): Promise<{ byteLength: number; moves: Move[] }> {
  const file = await open(path, 'w', FILE_MODE);
  const moves: Move[] = [];
  let head = NO_FRAME;
  let offset = 0;
  let builder = new FrameBuilder();
  /** Previous extents of the entries in the current frame. */
  let extents: (Extent | undefined)[] = [];
  const writeFrame = async () => {
    source.onFrame?.();
    const { parts, frame } = builder.finish(head, offset, BASE_SEED);
    await writeParts(file.fd, parts, offset);
    let i = 0;
    for (const entry of entriesOf(frame, number)) {
      const from = extents[i++];
      const to = extentOf(entry);
      if (from === undefined || to === undefined || isSameExtent(from, to)) continue;
      moves.push({ entry: entry as Move['entry'], from, to });
    }
    ({ head, end: offset } = frame);
    builder = new FrameBuilder();
    extents = [];
  };
  try {
    for (const { entry, extent } of entriesFor(source)) {
      builder.add(entry);
      extents.push(extent);
      if (builder.byteLength > FRAME_BYTES_MAX) await writeFrame();
    }
    await writeFrame();
    await file.sync();
  } finally {
    await file.close();
  }
  return { byteLength: offset, moves };
}

function* entriesFor(
  source: BaseSource,
): Iterable<{ readonly entry: EntryToWrite; readonly extent?: Extent }> {
  const { state, head, seed } = source;
  yield { entry: { kind: 'format', version: STORE_FORMAT_VERSION, seed } };
  for (const [log, { last, trimmedThrough, records }] of state.logs) {
    yield { entry: { kind: 'log', log, last, through: trimmedThrough } };
    for (const { sequence, extent } of records.after(0)) {
      const content = source.content(extent, () => `record ${sequence} of log ${log}`) ?? extent;
      yield { entry: { kind: 'append', log, sequence, extent: content }, extent };
    }
  }
  for (const [key, value] of state.values.entries(ALL_KEYS.start, ALL_KEYS.end)) {
    if (!isExtent(value)) yield { entry: { kind: 'put', key, value } };
    else {
      const content = source.content(value, () => nameOfKey(key)) ?? value;
      yield { entry: { kind: 'put', key, value: content }, extent: value };
    }
  }
  yield { entry: { kind: 'end', ...head } };
}
