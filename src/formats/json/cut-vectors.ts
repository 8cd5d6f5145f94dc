// Cuts vectors that are arrays of numbers out of JSON text, in the native addon, so that no JavaScript value is created
// for a number. Each is replaced by a 0. Without the addon, and for text unlike what clients usually send, nothing is
// cut out, and the caller parses the whole text.

import { addonPath, loadAddon } from '../../platform/native-addon.js';

/** Which members of the outermost object hold vectors; '' for none. */
export interface VectorMembers {
  /** A member that is a vector. */
  readonly member: string;
  /** A member that is an array. */
  readonly list: string;
  /** The member of the objects in `list` that is a vector. If empty, the elements of `list` are vectors. */
  readonly listMember: string;
}

export interface CutOptions extends VectorMembers {
  /** Longer vectors are not cut out. */
  readonly dimensionMax: number;
  /** Whether the text consists of lines, each empty or an object. */
  readonly isLines: boolean;
  /** Memory for the elements, aligned to 4 bytes. If it is null or too short, they get a new buffer. */
  readonly room: Uint8Array | null;
}

interface CutArrays {
  readonly rest: Uint8Array;
  readonly values: Float32Array;
  readonly lengths: Int32Array;
}

interface JsonAddon {
  /**
   * The members of `CutOptions`, and those of `CutArrays` with the number of elements. If these have no array of their
   * own, they are at the start of the room. Lists instead of objects, since the addon takes half a microsecond to look
   * up a member.
   */
  cutVectors(
    bytes: Uint8Array,
    member: string,
    list: string,
    listMember: string,
    dimensionMax: number,
    isLines: boolean,
    room: Float32Array,
  ):
    | readonly [
        rest: Uint8Array,
        lengths: Int32Array,
        valueCount: number,
        values: Float32Array | undefined,
      ]
    | null;
}

/** The value that replaces a vector. */
export const CUT = 0;

/** The vectors that were cut out of one text. */
export class VectorsCut {
  /** The text without the vectors. It is JSON only if the text was. */
  readonly rest: Uint8Array;
  /** The elements of all vectors in sequence, all finite. */
  readonly values: Float32Array;
  readonly #lengths: Int32Array;
  #nextIndex = 0;
  #nextStart = 0;

  constructor({ rest, values, lengths }: CutArrays) {
    this.rest = rest;
    this.values = values;
    this.#lengths = lengths;
  }

  get count(): number {
    return this.#lengths.length;
  }

  /** Returns the vector of the next CUT. Call it once per CUT, in the order of the text. */
  next(): Float32Array {
    const start = this.#nextStart;
    this.#nextStart = start + this.#lengths[this.#nextIndex++]!;
    return this.values.subarray(start, this.#nextStart);
  }
}

/** If it returns vectors, the members that hold vectors hold no other numbers than CUT. */
export type CutVectors = (bytes: Uint8Array, options: CutOptions) => VectorsCut | null;

const addon = load();

export const cutVectors: CutVectors = (bytes, options) => {
  const room = options.room === null ? NO_ROOM : floatsOf(options.room);
  const { member, list, listMember, dimensionMax, isLines } = options;
  const found =
    addon?.cutVectors(bytes, member, list, listMember, dimensionMax, isLines, room) ?? null;
  if (found === null) return null;
  const [rest, lengths, valueCount, values = room.subarray(0, valueCount)] = found;
  return new VectorsCut({ rest, lengths, values });
};

const NO_ROOM = new Float32Array(0);

/** Returns memory, which must be aligned to 4 bytes, as float32. */
export function floatsOf({ buffer, byteOffset, byteLength }: Uint8Array): Float32Array {
  return new Float32Array(buffer, byteOffset, Math.floor(byteLength / 4));
}

function load(): JsonAddon | null {
  try {
    return loadAddon<JsonAddon>(addonPath('sagitta.node'), 'the addon is not built');
  } catch {
    // The choice of the engine reports it.
    return null;
  }
}
