// Cuts vectors that are arrays of numbers out of JSON text, in the native addon, so that no JavaScript value
// is made for a number. A 0 is left in the place of each. Without the addon, and for text that is not what
// clients usually send, nothing is cut out, and the caller parses all of the text.

import { addonPath, loadAddon } from '../../platform/native-addon.js';

/** Where vectors are, by the names of members; an empty name stands for no such place. */
export interface VectorPlaces {
  /** A member of the outermost object that is a vector. */
  readonly member: string;
  /** A member of the outermost object that is an array, */
  readonly list: string;
  /** whose elements are objects with such a member; without a name the elements are vectors. */
  readonly listMember: string;
}

export interface CutOptions extends VectorPlaces {
  /** Longer vectors are not cut out. */
  readonly dimensionMax: number;
  /** Whether the text is lines, each of them empty or an object. */
  readonly isLines: boolean;
  /** Memory for the elements, aligned to 4 bytes; they get a new buffer if it is too short or null. */
  readonly room: Uint8Array | null;
}

interface CutArrays {
  readonly rest: Uint8Array;
  readonly values: Float32Array;
  readonly lengths: Int32Array;
}

interface AddonOptions extends Omit<CutOptions, 'room'> {
  readonly room: Float32Array;
}

interface JsonAddon {
  /** Without `values` the elements are at the start of the room. */
  cutVectors(
    bytes: Uint8Array,
    options: AddonOptions,
  ): (Omit<CutArrays, 'values'> & { values?: Float32Array; valueCount: number }) | null;
}

/** What is left in the place of a vector. */
export const CUT = 0;

/** The vectors that were cut out of one text. */
export class VectorsCut {
  /** The text without them: the text was JSON if this is JSON. */
  readonly rest: Uint8Array;
  /** Their elements, all finite, one vector after the other. */
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

  /** The vector of the next CUT: called for each of them in the order of the text. */
  next(): Float32Array {
    const start = this.#nextStart;
    this.#nextStart = start + this.#lengths[this.#nextIndex++]!;
    return this.values.subarray(start, this.#nextStart);
  }
}

/** Where it returns vectors, no other number is in a place of a vector. */
export type CutVectors = (bytes: Uint8Array, options: CutOptions) => VectorsCut | null;

const addon = load();

export const cutVectors: CutVectors = (bytes, options) => {
  const room = options.room === null ? NO_ROOM : floatsOf(options.room);
  const found = addon?.cutVectors(bytes, { ...options, room }) ?? null;
  if (found === null) return null;
  const { values = room.subarray(0, found.valueCount) } = found;
  return new VectorsCut({ ...found, values });
};

const NO_ROOM = new Float32Array(0);

/** The memory as float32; it is aligned to 4 bytes. */
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
