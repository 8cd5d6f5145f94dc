// Metadata as JSON text, whose values keep their spelling: members of columns, and the members of a column `metadata`.

import { readUniqueMembers } from '../formats/json/json-scanner.js';
import { RowError, show } from './read-error.js';

/** A member of a JSON object with the text of its value. */
export interface MemberText {
  readonly name: string;
  readonly text: string;
}

export function objectText(members: readonly MemberText[]): string {
  return `{${members.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
}

/**
 * The object of the column `metadata`, which may be empty, with other columns as further members. Throws RowError
 * for text that is no JSON object, and for a name in both.
 */
export function mergedMetadata(
  location: string,
  object: string,
  members: readonly MemberText[],
): string {
  if (object === '') return objectText(members);
  let own: readonly MemberText[];
  let isObject = true;
  try {
    const value: unknown = JSON.parse(object);
    isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    own = isObject && members.length > 0 ? readUniqueMembers(object) : [];
  } catch {
    isObject = false;
    own = [];
  }
  if (!isObject) {
    throw new RowError(location, `metadata is ${show(object)}, expected a JSON object`);
  }
  if (members.length === 0) return object;
  const duplicate = members.find(({ name }) => own.some((each) => each.name === name));
  if (duplicate !== undefined) {
    const name = JSON.stringify(duplicate.name);
    throw new RowError(location, `${name} is both a member of metadata and a column`);
  }
  return own.length === 0
    ? objectText(members)
    : `${object.slice(0, object.lastIndexOf('}'))},${objectText(members).slice(1)}`;
}

const TEXT_OR_NAN = /"(?:[^"\\]|\\.)*"|\bNaN\b/g;

/** The text with null for NaN, which Python writes, but JSON does not have. In a vector, null is refused as well. */
export function withoutNan(text: string): string {
  if (!text.includes('NaN')) return text;
  return text.replace(TEXT_OR_NAN, (token) => (token === 'NaN' ? 'null' : token));
}

/** Advice for text that is JSON but for NaN. */
export function nanHint(text: string): string {
  return withoutNan(text) === text
    ? ''
    : '; JSON has no NaN: in metadata, --nan null stores null instead';
}
