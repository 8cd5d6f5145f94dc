// Case folding, compared with JavaScript's regular expressions over all characters of Unicode.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldCase, foldStrings } from '../../src/common/fold-case.js';
import { utf8Of } from '../filter/view-of.js';

const CHARACTERS = Array.from({ length: 0x110000 }, (_, point) => point)
  .filter((point) => point < 0xd800 || point > 0xdfff)
  .map((point) => String.fromCodePoint(point));

/** A pattern that matches the character in any case. */
const anyCase = (character: string, flags: string) =>
  new RegExp(`\\u{${character.codePointAt(0)!.toString(16)}}`, flags);

test('every character folds to one that differs at most in case', () => {
  const wrong = CHARACTERS.filter((character) => {
    const folded = foldCase(character);
    return folded !== character && !anyCase(character, 'iu').test(folded);
  });
  assert.deepEqual(wrong, []);
});

test('characters that differ only in case fold to the same one', () => {
  const cased = CHARACTERS.filter((one) => one.toUpperCase() !== one || one.toLowerCase() !== one);
  const folded = [...new Set(cased.map(foldCase))];
  const all = folded.join('');
  const apart = folded.filter((one) => all.match(anyCase(one, 'giu'))?.length !== 1);
  assert.deepEqual(apart, []);
  assert.ok(cased.length > 2_000 && folded.length < cased.length);
});

test('the strings of a column fold like single strings, in the same order', () => {
  const strings = ['', 'ABC', 'xÉy', 'ȺȺȺȺ', 'a\u212a', '😀Z', 'STRASSE', 'straße', 'abc'];
  const { offsets, bytes } = foldStrings(utf8Of(strings), strings.length);
  const folded = strings.map((_, i) =>
    Buffer.from(bytes.slice(offsets[i], offsets[i + 1])).toString(),
  );
  assert.deepEqual(folded, strings.map(foldCase));
  assert.deepEqual(folded.slice(1, 5), ['abc', 'xéy', 'ⱥⱥⱥⱥ', 'ak']);
});
