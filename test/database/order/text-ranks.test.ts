// Compares ranks of texts with a plain sort by bytes.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TextRanks } from '../../../src/database/order/text-ranks.js';
import { columnOf, createRandom, testSeed } from '../harness.js';

function rank(columns: readonly (readonly string[])[]): number[] {
  const texts = new TextRanks(columns.flat().length);
  for (const strings of columns) {
    const column = columnOf(strings);
    for (const row of strings.keys()) texts.add(column, row);
  }
  return [...texts.rank()];
}

function expectedRanks(texts: readonly string[]): number[] {
  const distinct = [...new Set(texts)].sort((a, b) =>
    Buffer.compare(Buffer.from(a), Buffer.from(b)),
  );
  return texts.map((text) => distinct.indexOf(text));
}

describe('text ranks', () => {
  it('are those of a sort by bytes, whatever texts have in common', () => {
    const seed = testSeed();
    const random = createRandom(seed);
    const below = (end: number) => Math.floor(random() * end);
    const parts = ['a', 'b', '\0', 'é', '😀', 'a long common part of many texts', ''];
    for (let round = 0; round < 60; round++) {
      const columns = Array.from({ length: 3 }, () =>
        Array.from({ length: below(200) }, () =>
          Array.from({ length: below(6) }, () => parts[below(parts.length)]!).join(''),
        ),
      );
      assert.deepEqual(
        rank(columns),
        expectedRanks(columns.flat()),
        `seed ${seed}, round ${round}`,
      );
    }
  });

  it('tell texts apart after thousands of equal bytes', () => {
    const texts = Array.from({ length: 100 }, (_, i) => 'x'.repeat(20_000) + ((i * 37) % 100));
    assert.deepEqual(rank([texts]), expectedRanks(texts));
  });

  it('of no texts are none', () => {
    assert.deepEqual(rank([]), []);
  });
});
