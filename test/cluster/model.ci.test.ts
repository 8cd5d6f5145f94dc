// Compares a cluster in memory with the model of a database, through long histories.

import { describe, it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { runAgainstModel } from '../database/model.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { startSystem } from './modelled-cluster.js';

const STEPS = 400;
const ROUNDS = IS_NIGHTLY ? 6 : 2;

describe('a cluster against a model', () => {
  for (let round = 0; round < ROUNDS; round++) {
    const seed = testSeed() + 1 + round;
    it(`agrees after ${STEPS} random operations (seed ${seed})`, async () => {
      await runAgainstModel(await startSystem(), { seed, stepCount: STEPS });
    });
  }
});
