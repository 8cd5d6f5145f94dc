// Parses replies. Metadata may contain 64-bit integers, which become rounded numbers or bigints.

import { type ExactMembers, parseExactJson } from '../../../src/common/exact-json.js';

/** Accepts and throws the same as JSON.parse. */
export type ParseReply = (text: string) => unknown;

/**
 * The members whose values come from metadata. Scores and vector elements always stay numbers: they are float32, and the
 * server writes their shortest digits, which may form an integer that float64 cannot represent.
 */
const EXACT_MEMBERS: ExactMembers = {
  within: new Set(['metadata', 'facets', 'stats', 'paths', 'group']),
  except: new Set(['vectors', 'sparse_vectors']),
};

export function parseReply(hasExactIntegers: boolean): ParseReply {
  return hasExactIntegers ? (text) => parseExactJson(text, EXACT_MEMBERS) : JSON.parse;
}
