// JSON of the service for people and programs behind a pipe: parsed, chosen from and printed anew with
// every number spelled as it came, also where parsing would round it (whole numbers beyond 2^53, 1.0).

import { randomUUID } from 'node:crypto';

/** No text of a reply begins with it. */
const MARK = `${randomUUID()}:`;

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');

/** Numbers that JavaScript would spell otherwise are marked texts, for `exactText` alone. */
export function parseExact(text: string): unknown {
  return JSON.parse(
    text.replace(STRING_OR_NUMBER, (token) =>
      token.startsWith('"') || String(Number(token)) === token ? token : `"${MARK}${token}"`,
    ),
  );
}

/** JSON of what `parseExact` gave. */
export function exactText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(MARKED, '$1');
}

/** As a cell of a table: texts without quotes. */
export function exactCell(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' && !value.startsWith(MARK) ? value : exactText(value);
}
