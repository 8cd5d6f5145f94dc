// Runs the contract of engines (src/tools/selftest/contract.ts) as tests, one per case and engine:
// the quick cases of the reference and simd engines with `npm test`, all in the nightly run.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Engine } from '../../src/engine/core/engine.js';
import { CONTRACT } from '../../src/tools/selftest/contract.js';
import { createContext } from '../../src/tools/selftest/contract-case.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { SEED } from './blocks.js';

/** Cases of well under a second that together run every kernel and every way to answer. */
const QUICK = [
  'reports its name',
  'returns no results for an empty batch',
  'answers as brute force does over random rows',
  'answers as brute force does over duplicates rows',
  'answers over several blocks of clustered rows as brute force does',
  'breaks ties across blocks by id bytes',
  'returns all rows when k is larger than their number',
  'searches only the rows in the bitmap and below the row count',
  'searches a growing block and its older versions under the same key',
  'answers concurrent batches over the same blocks while blocks are unloaded',
  'answers correctly or rejects with the reason when it is aborted during the search',
  'counts the rows before positions as brute force does over random rows',
  'counts the rows before positions as brute force does over duplicates rows',
  'counts no rows without positions, views or rows',
  'rejects a count whose signal is aborted',
  'answers ordinary searches without its fallback',
];

/** `isLong`: only in the nightly run. */
export function engineContract(
  name: string,
  create: () => Promise<Engine>,
  { isLong = false } = {},
): void {
  if (isLong && !IS_NIGHTLY) return;
  const cases = IS_NIGHTLY ? CONTRACT : CONTRACT.filter((found) => QUICK.includes(found.name));
  if (!IS_NIGHTLY) assert.equal(cases.length, QUICK.length, 'every quick case is in the contract');
  describe(`the ${name} engine`, () => {
    let engine: Engine;
    before(async () => {
      console.log(`SAGITTA_TEST_SEED=${SEED}`);
      engine = await create();
    });
    after(() => engine.close());

    for (const { name: sentence, run } of cases) {
      it(sentence, () => run(createContext(engine, name, SEED)));
    }
  });
}
