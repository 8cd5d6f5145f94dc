// Builds metadata as JSON text from columns and from a column `metadata`. Values keep the spelling of the file.

import { readUniqueMembers } from '../formats/json/json-scanner.js';
import { RowError, show } from './read-error.js';

/** A member of a JSON object; `text` is the JSON of its value. */
export interface MemberText {
  readonly name: string;
  readonly text: string;
}

export function objectText(members: readonly MemberText[]): string {
  return `{${members.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
}

/**
 * The object of the column `metadata`, which may be empty, with other columns as additional members. Throws RowError
 * for text that is not a JSON object and for a name that occurs in both.
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

/** Replaces NaN, which Python writes although JSON does not have it, by null. A null in a vector is still refused. */
export function withoutNan(text: string): string {
  if (!text.includes('NaN')) return text;
  return text.replace(TEXT_OR_NAN, (token) => (token === 'NaN' ? 'null' : token));
}

/** Advice for text that would be JSON without NaN. */
export function nanHint(text: string): string {
  return withoutNan(text) === text
    ? ''
    : '; JSON has no NaN: in metadata, --nan null stores null instead';
}
