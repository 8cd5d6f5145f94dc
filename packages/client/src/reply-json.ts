// The numbers of replies: those of metadata may be integers of 64 bits, which a program gets rounded or as bigints.

import { type ExactMembers, parseExactJson } from '../../../src/common/exact-json.js';

/** Takes and throws what JSON.parse does. */
export type ParseReply = (text: string) => unknown;

/**
 * What is from metadata. Scores and elements of vectors are float32, and remain numbers: the server writes their shortest
 * digits, which as an integer may be one that float64 does not have.
 */
const EXACT_MEMBERS: ExactMembers = {
  within: new Set(['metadata', 'facets', 'stats', 'paths', 'group']),
  except: new Set(['vectors', 'sparse_vectors']),
};

export function parseReply(hasExactIntegers: boolean): ParseReply {
  return hasExactIntegers ? (text) => parseExactJson(text, EXACT_MEMBERS) : JSON.parse;
}
