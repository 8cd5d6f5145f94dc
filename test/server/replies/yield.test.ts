import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { joinInTurns } from '../../../src/server/replies/yield.js';

const ITEMS = Array.from({ length: 100 }, (_, i) => i);
const longText = (item: number) => `${item}:${'x'.repeat(100_000)}`;

describe('texts in turns', () => {
  it('are made at once when they are short', () => {
    const text = joinInTurns(ITEMS, String, () => assert.fail('nobody needs to know'));
    assert.equal(text, ITEMS.join(','));
    assert.equal(
      joinInTurns([], String, () => {}),
      '',
    );
  });

  it('let others pass about every megabyte, and tell how long they are', async () => {
    const grown: number[] = [];
    let otherCount = 0;
    const others = setImmediate(function pass() {
      otherCount++;
      immediate = setImmediate(pass);
    });
    let immediate = others;
    const text = await joinInTurns(ITEMS, longText, (count) => grown.push(count));
    clearImmediate(immediate);
    assert.equal(text, ITEMS.map(longText).join(','));
    assert.ok(otherCount >= 8, `${otherCount}`);
    assert.deepEqual(
      grown,
      [...grown].sort((a, b) => a - b),
    );
    assert.equal(grown.length, 10);
    assert.equal(grown.at(-1), text.length + 1);
  });

  it('take one turn at a time, however many there are', async () => {
    let madeInTurn = 0;
    let madeMax = 0;
    const making = Array.from({ length: 8 }, () =>
      joinInTurns(
        ITEMS,
        (item) => {
          madeMax = Math.max(madeMax, ++madeInTurn);
          return longText(item);
        },
        () => {},
      ),
    );
    // The first turn of each was made here, in one.
    madeMax = 0;
    let isOver = false;
    const count = () => {
      madeInTurn = 0;
      if (!isOver) setImmediate(count);
    };
    count();
    await Promise.all(making);
    isOver = true;
    assert.ok(madeMax > 0 && madeMax <= 20, `${madeMax}`);
  });

  it('end when who is told says so', async () => {
    let madeCount = 0;
    const making = joinInTurns(
      ITEMS,
      (item) => {
        madeCount++;
        return longText(item);
      },
      (characterCount) => {
        if (characterCount > 3_000_000) throw new Error('enough');
      },
    );
    await assert.rejects(Promise.resolve(making), /enough/);
    assert.ok(madeCount < 50, `${madeCount}`);
  });
});
