// The word pieces of texts, compared with those of the tokenizer that was published with the model.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readVocabulary } from '../../../src/server/embedding/model-files.js';
import { WordPieces } from '../../../src/server/embedding/word-pieces.js';

const wordPieces = new WordPieces(readVocabulary());

/** Texts and the pieces that the published tokenizer finds. */
const KNOWN: readonly (readonly [text: string, pieces: readonly number[]])[] = [
  ['a dog chased the cat', [11, 959, 6789, 29, 9, 1163]],
  ['Hello, world!', [341, 4125, 8, 311, 78]],
  ['naïve café', [1216, 0, 105, 976, 209, 1133]],
  ['dog 日本語 x', [959, 30, 0, 649]],
  ['🙂 fine', [30, 0, 839]],
  ['ﬁne print', [839, 2355]],
  [
    'The quick-brown fox (2024) costs $5.50',
    [34, 2280, 24, 1700, 3033, 1394, 152, 44, 817, 3316, 52, 2138, 3548, 6, 1019],
  ],
];

it('texts are cut as by the published tokenizer', () => {
  for (const [text, pieces] of KNOWN) assert.deepEqual(wordPieces.read(text).pieces, pieces, text);
});

it('spaces of any kind and number separate words', () => {
  const { pieces } = wordPieces.read('a dog chased the cat');
  assert.deepEqual(wordPieces.read('  a\tdog \r\n chased\u00a0the\u3000cat\n').pieces, pieces);
});

it('characters that no piece has are counted, without spaces', () => {
  const counted = (text: string) => {
    const { unitCount, unknownCount } = wordPieces.read(text);
    return [unitCount, unknownCount];
  };
  assert.deepEqual(counted('dog 日本語 x'), [7, 3]);
  assert.deepEqual(counted('a dog'), [4, 0]);
  assert.deepEqual(counted(' \n '), [0, 0]);
  assert.deepEqual(wordPieces.read(' \n ').pieces, []);
});

it('a long text takes time in proportion to its length', () => {
  // Quadratic time would be a day.
  const { pieces } = wordPieces.read('the quick brown fox '.repeat(100_000));
  assert.equal(
    pieces.length,
    400_000 + 100_000 * (wordPieces.read('the quick brown fox').pieces.length - 4),
  );
});
