// Compares the database with a model through long histories.

import { describe, it } from 'node:test';
import { IS_NIGHTLY } from '../support/nightly.js';
import { testSeed } from './harness.js';
import { runAgainstModel } from './model.js';
import { openSystem } from './modelled-database.js';

const STEPS = 400;
const ROUNDS = IS_NIGHTLY ? 12 : 4;

describe('database against a model', () => {
  for (let round = 0; round < ROUNDS; round++) {
    const seed = testSeed() + 1 + round;
    it(`agrees after ${STEPS} random operations (seed ${seed})`, async () => {
      await runAgainstModel(await openSystem(), { seed, stepCount: STEPS });
    });
  }
});
