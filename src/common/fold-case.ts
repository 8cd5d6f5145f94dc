// Unicode simple case folding, for `$case: "insensitive"`. Characters are folded one by one and independently of the
// language, so "ß" differs from "SS", and the Turkish "ı" from "i".

import type { Utf8Column } from './types.js';

export function foldCase(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  let folded = '';
  for (const character of text) folded += foldCharacter(character);
  return folded;
}

/** Folds all entries and keeps their order. Different entries may become equal. */
export function foldStrings({ offsets, bytes }: Utf8Column, count: number): Utf8Column {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const target = Buffer.allocUnsafe(Math.ceil((offsets[count] - offsets[0]) * GROWTH_MAX));
  const foldedOffsets = new Int32Array(count + 1);
  let length = 0;
  for (let i = 0; i < count; i++) {
    const end = foldAscii(source, offsets[i], offsets[i + 1], target, length);
    length =
      end >= 0
        ? end
        : length +
          target.write(foldCase(source.toString('utf8', offsets[i], offsets[i + 1])), length);
    foldedOffsets[i + 1] = length;
  }
  return { offsets: foldedOffsets, bytes: target };
}

/** Maximum growth of UTF-8: "Ⱥ" (two bytes) folds to "ⱥ" (three bytes). */
const GROWTH_MAX = 1.5;

/** Folds `source[start..end)` to `target` from `to` on. Returns the end there, or -1 if it is not ASCII. */
function foldAscii(
  source: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  to: number,
): number {
  let next = to;
  for (let i = start; i < end; i++) {
    const byte = source[i];
    if (byte >= 0x80) return -1;
    target[next++] = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
  }
  return next;
}

/** Characters for which JavaScript's case mappings differ from Unicode's CaseFolding.txt. */
const EXCEPTIONS: ReadonlyMap<string, string> = new Map([
  ['ı', 'ı'],
  ['\u1fd3', '\u0390'],
  ['\u1fe3', '\u03b0'],
  ['\ufb05', '\ufb06'],
]);

/** Upper case comes first because it unites characters with several lower-case forms, such as "σ" and "ς". */
function foldCharacter(character: string): string {
  const exception = EXCEPTIONS.get(character);
  if (exception !== undefined) return exception;
  const upper = character.toUpperCase();
  const folded = isOneCharacter(upper) ? upper : character;
  const lower = folded.toLowerCase();
  return isOneCharacter(lower) ? lower : folded;
}

function isOneCharacter(text: string): boolean {
  return text.length === 1 || (text.length === 2 && text.codePointAt(0)! > 0xffff);
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) >= 0x80) return false;
  }
  return true;
}
