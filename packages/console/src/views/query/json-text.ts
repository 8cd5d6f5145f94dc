// JSON for people: short values on one line, long ones over several, and the line of each part.

import { isJsonNumber, numberText } from '../../../../../src/common/exact-json.js';
import type { Json } from '../../../../../src/common/types.js';

/** The syntax of literals in a language. */
export interface LiteralSyntax {
  readonly indent: string;
  /** The suffix of integers that float64 cannot represent. */
  readonly longSuffix: string;
  readonly true: string;
  readonly false: string;
  readonly null: string;
}

export const JSON_SYNTAX: LiteralSyntax = {
  indent: '  ',
  longSuffix: '',
  true: 'true',
  false: 'false',
  null: 'null',
};

/** Longer objects and arrays take several lines. */
const LINE_CHARACTERS_MAX = 76;

/**
 * An object with one member per line; members that are long take several lines too, except arrays of numbers. Calls
 * `onPart` with the JSON pointer of each part and its line, from 1.
 */
export function formatJson(
  value: Json,
  syntax: LiteralSyntax = JSON_SYNTAX,
  depth = 0,
  onPart?: (pointer: string, line: number) => void,
): string {
  let line = 1;
  const write = (part: Json, pointer: string, level: number): string => {
    onPart?.(pointer, line);
    const inline = formatInline(part, syntax);
    const isWhole = level === depth && typeof part === 'object' && part !== null;
    const isShort = inline.length <= LINE_CHARACTERS_MAX || isNumbers(part);
    if (typeof part !== 'object' || part === null || (isShort && !isWhole)) return inline;
    const isArray = Array.isArray(part);
    const members = Object.entries(part);
    if (members.length === 0) return inline;
    const inner = `\n${syntax.indent.repeat(level + 1)}`;
    const lines = members.map(([name, member]) => {
      line++;
      const key = isArray ? '' : `${JSON.stringify(name)}: `;
      return `${inner}${key}${write(member as Json, `${pointer}/${escapeName(name)}`, level + 1)}`;
    });
    line++;
    const [open, close] = isArray ? '[]' : '{}';
    return `${open}${lines.join(',')}\n${syntax.indent.repeat(level)}${close}`;
  };
  return write(value, '', depth);
}

function isNumbers(value: Json): boolean {
  return Array.isArray(value) && value.every((one) => isJsonNumber(one));
}

function escapeName(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function formatInline(value: Json, syntax: LiteralSyntax): string {
  if (value === null) return syntax.null;
  if (typeof value === 'boolean') return value ? syntax.true : syntax.false;
  if (Array.isArray(value)) return `[${value.map((one) => formatInline(one, syntax)).join(', ')}]`;
  if (typeof value === 'bigint') return `${value}${syntax.longSuffix}`;
  if (isJsonNumber(value)) return numberText(value);
  if (typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${formatInline(member as Json, syntax)}`,
  );
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}

/** The line of the part with the pointer, or of the nearest part that contains it, in the formatted JSON. */
export function lineOfPart(value: Json, pointer: string): number {
  const lines = new Map<string, number>();
  formatJson(value, JSON_SYNTAX, 0, (part, line) => lines.set(part, line));
  for (let part = pointer; part !== ''; part = part.slice(0, part.lastIndexOf('/'))) {
    const line = lines.get(part);
    if (line !== undefined) return line;
  }
  return 1;
}
