// Compares the output of the shell examples in a document with the output it shows.

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';

/** The root of the checkout. The compiled test is at dist/test. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Marks values that differ from run to run: "…" stands for any value, "text…" for any ending. */
const ANYTHING = '…';
/** How much fractions may differ, relatively: vectors of texts depend on the processor in their last bits. */
const TOLERANCE = 1e-6;

export function assertAnswer(
  place: string,
  answer: string,
  expected: { readonly language: string; readonly text: string },
): void {
  if (expected.language === 'json') {
    const wanted: unknown = JSON.parse(expected.text);
    assert.deepEqual(masked(JSON.parse(answer), wanted), wanted, place);
    return;
  }
  const lines = (text: string): string[] => text.trimEnd().split('\n');
  assert.deepEqual(
    masked(
      lines(answer).map((line) => line.trimEnd()),
      lines(expected.text),
    ),
    lines(expected.text),
    place,
  );
}

/** The value found, with changing values replaced by the document's. */
function masked(found: unknown, wanted: unknown): unknown {
  if (wanted === ANYTHING && found !== undefined) return wanted;
  if (typeof wanted === 'string' && typeof found === 'string' && wanted.endsWith(ANYTHING)) {
    return found.startsWith(wanted.slice(0, -ANYTHING.length)) ? wanted : found;
  }
  if (typeof wanted === 'number' && typeof found === 'number' && !Number.isInteger(wanted)) {
    return Math.abs(found - wanted) <= TOLERANCE * Math.abs(wanted) ? wanted : found;
  }
  if (Array.isArray(found) && Array.isArray(wanted)) {
    return found.map((item, at) => masked(item, wanted[at]));
  }
  if (isObject(found) && isObject(wanted)) {
    const members = Object.entries(found).map(([name, value]) => [
      name,
      masked(value, wanted[name]),
    ]);
    return Object.fromEntries(members);
  }
  return found;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
