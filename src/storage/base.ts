// Writes a base: a file with the whole state, after which the logs before it are needed only for the records and values
// in them that it refers to. A backup is a base that refers to nothing.

import { open } from 'node:fs/promises';
import { FILE_MODE, writeAll } from './disk.js';
import {
  BASE_SEED,
  type EntryToWrite,
  entriesOf,
  FrameBuilder,
  type Head,
  NO_FRAME,
  placeOf,
} from './frame.js';
import { isPlace, isSamePlace, type Place } from './place.js';
import { ALL_KEYS, FORMAT_VERSION, nameOfKey } from './store-format.js';
import type { Move, StoreState } from './store-state.js';

/** Other work is done between two frames. */
const FRAME_BYTES_MAX = 1024 * 1024;

export interface BaseSource {
  /** The state, which nobody changes meanwhile. */
  readonly state: StoreState;
  /** How far the journal was at the moment of the state. */
  readonly head: Head;
  readonly seed: number;
  /** What a record or value is to have in the base; undefined for one that stays where it is. */
  content(place: Place, what: () => string): Uint8Array | undefined;
  /** Called before each frame; throws to end the work. */
  onFrame?(): void;
}

/** Writes and syncs the file, which is to have this number. Throws errors of the system, and those of the source. */
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
  /** The places that the entries of the frame have had. */
  let places: (Place | undefined)[] = [];
  const writeFrame = async () => {
    source.onFrame?.();
    const { parts, frame } = builder.finish(head, offset, BASE_SEED);
    await writeAll(file.fd, parts, offset);
    let i = 0;
    for (const entry of entriesOf(frame, number)) {
      const from = places[i++];
      const to = placeOf(entry);
      if (from === undefined || to === undefined || isSamePlace(from, to)) continue;
      moves.push({ entry: entry as Move['entry'], from, to });
    }
    ({ head, end: offset } = frame);
    builder = new FrameBuilder();
    places = [];
  };
  try {
    for (const { entry, place } of entriesFor(source)) {
      builder.add(entry);
      places.push(place);
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
): Iterable<{ readonly entry: EntryToWrite; readonly place?: Place }> {
  const { state, head, seed } = source;
  yield { entry: { kind: 'format', version: FORMAT_VERSION, seed } };
  for (const [log, { last, trimmedThrough, records }] of state.logs) {
    yield { entry: { kind: 'log', log, last, through: trimmedThrough } };
    for (const { sequence, place } of records.after(0)) {
      const content = source.content(place, () => `record ${sequence} of log ${log}`) ?? place;
      yield { entry: { kind: 'append', log, sequence, place: content }, place };
    }
  }
  for (const [key, value] of state.values.entries(ALL_KEYS.start, ALL_KEYS.end)) {
    if (!isPlace(value)) yield { entry: { kind: 'put', key, value } };
    else {
      const content = source.content(value, () => nameOfKey(key)) ?? value;
      yield { entry: { kind: 'put', key, value: content }, place: value };
    }
  }
  yield { entry: { kind: 'end', ...head } };
}
