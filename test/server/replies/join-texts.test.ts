import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { joinTexts } from '../../../src/server/replies/join-texts.js';

const ITEMS = Array.from({ length: 100 }, (_, i) => i);
const longText = (item: number) => `${item}:${'x'.repeat(6_600)}`;

describe('the joined texts of many items', () => {
  it('are made without a yield when they are short', () => {
    const text = joinTexts(ITEMS, String, () => assert.fail('a short text reports no length'));
    assert.equal(text, ITEMS.join(','));
    assert.equal(
      joinTexts([], String, () => {}),
      '',
    );
  });

  it('yield to the event loop about every 64 KiB, and report their length', async () => {
    const grown: number[] = [];
    let otherCount = 0;
    const others = setImmediate(function pass() {
      otherCount++;
      immediate = setImmediate(pass);
    });
    let immediate = others;
    const text = await joinTexts(ITEMS, longText, (count) => grown.push(count));
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

  it('take one iteration of the event loop each, however many there are', async () => {
    let madeInTurn = 0;
    let madeMax = 0;
    const making = Array.from({ length: 8 }, () =>
      joinTexts(
        ITEMS,
        (item) => {
          madeMax = Math.max(madeMax, ++madeInTurn);
          return longText(item);
        },
        () => {},
      ),
    );
    // The first chunk of each was joined synchronously.
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

  it('end when the length is refused', async () => {
    let madeCount = 0;
    const making = joinTexts(
      ITEMS,
      (item) => {
        madeCount++;
        return longText(item);
      },
      (characterCount) => {
        if (characterCount > 200_000) throw new Error('enough');
      },
    );
    await assert.rejects(Promise.resolve(making), /enough/);
    assert.ok(madeCount < 50, `${madeCount}`);
  });
});
