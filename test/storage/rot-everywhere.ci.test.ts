// Flips every single bit of a small store, and truncates every file at each byte.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { MARK_FILE } from '../../src/storage/store-mark.js';
import {
  copyToDamage,
  cutToEachLength,
  FILES,
  OLD_LOG,
  readDirectly,
  readWithEach,
} from './damaged-store.js';
import { framesIn } from './journal-frames.js';

function* withEachBitFlipped(bytes: Buffer): Iterable<Buffer> {
  for (let bit = 0; bit < 8 * bytes.length; bit++) {
    const damaged = Buffer.from(bytes);
    damaged[bit >> 3]! ^= 1 << (bit & 7);
    yield damaged;
  }
}

describe('damage of a small store', () => {
  for (const file of FILES) {
    it(`is refused, or changes nothing, for each bit of ${file}`, async () => {
      const directory = await copyToDamage();
      const bytes = await readFile(join(directory, file));
      const intact = await readDirectly(directory);
      const found = await readWithEach(directory, file, withEachBitFlipped(bytes));
      assert.equal(found.length, 8 * bytes.length);
      // Only the record of the log before the base is in use.
      const [frame] = framesIn(bytes);
      const isInUse = (bit: number) => file !== OLD_LOG || bit >= 8 * frame!.bodiesAt;
      const wrong = found.findIndex(
        (content, bit) => content !== (isInUse(bit) ? undefined : intact),
      );
      assert.equal(wrong, -1, 'the bit after which the content is another one');
    });

    it(`is refused for ${file} cut at each byte`, async () => {
      const directory = await copyToDamage();
      const bytes = await readFile(join(directory, file));
      const intact = await readDirectly(directory);
      const found = await readWithEach(directory, file, cutToEachLength(bytes));
      assert.equal(found.pop(), intact);
      assert.equal(
        found.findIndex((each) => each !== undefined),
        -1,
      );
    });
  }

  it('changes nothing in a mark of commits', async () => {
    const directory = await copyToDamage();
    const content = await readDirectly(directory);
    const bytes = await readFile(join(directory, MARK_FILE));
    // The slots, and part of the space between them.
    const slots = [0, 4096].flatMap((at) => Array.from({ length: 8 * 40 }, (_, i) => 8 * at + i));
    const damaged = slots.map((bit) => {
      const result = Buffer.from(bytes);
      result[bit >> 3]! ^= 1 << (bit & 7);
      return result;
    });
    const cuts = [0, 1, 35, 36, 4095, 4096, 4131, 4132, 8191].map((at) => bytes.subarray(0, at));
    for (const found of await readWithEach(directory, MARK_FILE, [...damaged, ...cuts])) {
      assert.equal(found, content);
    }
  });
});
