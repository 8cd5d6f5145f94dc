// A column of texts from files, which may have lone surrogates, to be sent as Arrow.

import type { Utf8Column } from '../common/types.js';

export function textColumn(texts: readonly string[]): Utf8Column {
  const offsets = new Int32Array(texts.length + 1);
  for (let at = 0; at < texts.length; at++) {
    offsets[at + 1] = offsets[at]! + Buffer.byteLength(texts[at]!);
  }
  const bytes = Buffer.allocUnsafe(offsets[texts.length]!);
  // Encoded one by one: joined texts could merge lone surrogates at their borders into a character.
  for (let at = 0; at < texts.length; at++) bytes.write(texts[at]!, offsets[at]);
  return { offsets, bytes };
}
