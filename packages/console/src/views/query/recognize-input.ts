// Recognizes what was typed, pasted or dropped into the box of a query: words, the id of a stored vector, or numbers.

import type { CollectionRecord } from '@sagitta/client';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import { isBase64, parseVector } from './parse-vector.js';
import type { QueryBy } from './query-draft.js';
import { searchedVector, vectorsFor, wordsKind } from './searchable.js';

/** At least two numbers and nothing else, or the beginning of an array. */
const NUMBERS = /^[\s[({]*[-+.\d][-+.\deE]*(?:[\s,;]+[-+.\d][-+.\deE]*)+[\s\])},;]*$/;
/** How programs print arrays, such as `array([0.5, 1.0], dtype=float32)` and `tensor([0.5, 1.])`. */
const PRINTED = /^(?:np\.)?(?:array|tensor|Float(?:32|64)Array)\s*\(/;

/** How to rank by the input. `isStored` says whether it is the id of a stored vector. */
export function recognizeInput(
  collection: CollectionRecord,
  input: string,
  isStored: boolean,
): QueryBy {
  const text = input.trim();
  const words = wordsKind(collection) ?? 'id';
  if (text === '') return words;
  if (isStored) return 'id';
  const json = parseJson(text);
  if (isJsonObject(json)) return kindOfObject(json) ?? words;
  if (Array.isArray(json) && vectorsFor(collection, 'multi_vector').length > 0) {
    const isList = json.length > 0 && json.every(Array.isArray);
    if (isList && (json.length > 1 || vectorsFor(collection, 'vector').length === 0)) {
      return 'multi_vector';
    }
  }
  if (vectorsFor(collection, 'vector').length === 0) return words;
  if (Array.isArray(json) || NUMBERS.test(text) || PRINTED.test(text)) return 'vector';
  const dimension = searchedVector(collection, 'vector', undefined)?.dimension ?? 0;
  const isVector = isBase64(text) && parseVector(text, dimension).values !== undefined;
  return isVector ? 'vector' : words;
}

function kindOfObject(json: Readonly<Record<string, unknown>>): QueryBy | undefined {
  if (Array.isArray(json.indices) && Array.isArray(json.values)) return 'sparse';
  const hasNumbers = Object.values(json).some(
    (one) => Array.isArray(one) && one.length > 0 && one.every((item) => typeof item === 'number'),
  );
  if (hasNumbers) return 'vector';
  return typeof json.id === 'string' ? 'id' : undefined;
}

/** The id that the input names: the text itself, or the member `id` of a row. */
export function idOf(input: string): string {
  const text = input.trim();
  const json = parseJson(text);
  return isJsonObject(json) && typeof json.id === 'string' ? json.id : text;
}

/** A pasted or dropped text on one line; a row without numbers becomes its id. */
export function rowInput(text: string): string {
  const json = parseJson(text);
  const isId = isJsonObject(json) && kindOfObject(json) === 'id';
  return isId ? idOf(text) : text.trim().replace(/\s+/g, ' ');
}

export function parseJson(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
