// A column of strings from an array of them.

import type { Utf8Column } from './types.js';

/** The texts have no lone surrogates, of which two from neighbouring texts would become one character. */
export function utf8ColumnOf(texts: readonly string[]): Utf8Column {
  const bytes = Buffer.from(texts.join(''));
  const offsets = new Int32Array(texts.length + 1);
  let end = 0;
  for (let i = 0; i < texts.length; i++) {
    end += Buffer.byteLength(texts[i]!);
    offsets[i + 1] = end;
  }
  return { offsets, bytes };
}
