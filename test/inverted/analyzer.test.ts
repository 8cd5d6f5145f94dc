// Words and terms: the fast path for ASCII agrees with Intl.Segmenter, and there is an example for every step.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyzerOf, splitWords } from '../../src/inverted/analyzer.js';
import { createRandom, testSeed } from '../database/harness.js';

const SEED = testSeed();

function termsOf(text: string, settings: Parameters<typeof analyzerOf>[0]): string[] {
  const terms: string[] = [];
  analyzerOf(settings).visitTerms(text, (term) => terms.push(term));
  return terms.map((term) => Buffer.from(term, 'latin1').toString());
}

const plain = { language: null, stopWords: [] } as const;

test(`the words of ASCII are those of Intl.Segmenter without runs of "_" (seed ${SEED})`, () => {
  const segmenter = new Intl.Segmenter('en', { granularity: 'word' });
  const random = createRandom(SEED);
  const characters = 'aZ19_.,:;\'"-@/!+\u0001\u007f';
  for (let round = 0; round < 20_000; round++) {
    const text = Array.from(
      { length: 1 + Math.floor(random() * 9) },
      () => characters[Math.floor(random() * characters.length)],
    ).join('');
    const expected = Array.from(segmenter.segment(text)).flatMap(({ segment, isWordLike }) =>
      isWordLike && !/^_+$/.test(segment) ? [segment] : [],
    );
    assert.deepEqual(splitWords(text), expected, JSON.stringify(text));
  }
});

test('text is normalized, cut into words and folded', () => {
  assert.deepEqual(termsOf("Don't  panic:\tx-ray 3.14 ﬁne ＡＢＣ ΣΊΣΥΦΟΣ", plain), [
    "don't",
    'panic',
    'x',
    'ray',
    '3.14',
    'fine',
    'abc',
    'σίσυφοσ',
  ]);
  assert.deepEqual(termsOf('我是 ไทย🙂', plain).join('|').includes('🙂'), false);
});

test('stop words are compared folded, before words are reduced to stems', () => {
  const english = { language: 'english', stopWords: ['THE', 'of'] } as const;
  assert.deepEqual(termsOf('The happiness of Dogs', english), ['happi', 'dog']);
  assert.deepEqual(termsOf('Häuser', { language: 'german', stopWords: [] }), ['haus']);
});
