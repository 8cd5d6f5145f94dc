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
}

interface CutArrays {
  readonly rest: Uint8Array;
  readonly values: Float32Array;
  readonly lengths: Int32Array;
}

interface JsonAddon {
  cutVectors(bytes: Uint8Array, options: CutOptions): CutArrays | null;
}

/** What is left in the place of a vector. */
export const CUT = 0;

/** The vectors that were cut out of one text. */
export class VectorsCut {
  /** The text without them: the text was JSON if this is JSON. */
  readonly rest: Uint8Array;
  /** Their elements, all finite, one vector after the other, in a buffer of their own. */
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
  const arrays = addon?.cutVectors(bytes, options) ?? null;
  return arrays === null ? null : new VectorsCut(arrays);
};

function load(): JsonAddon | null {
  try {
    return loadAddon<JsonAddon>(addonPath('sagitta.node'), 'the addon is not built');
  } catch {
    // The choice of the engine reports it.
    return null;
  }
}
