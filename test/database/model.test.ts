// Compares the database with a model; CI runs more rounds.

import { describe, it } from 'node:test';
import { testSeed } from './harness.js';
import { runAgainstModel } from './model.js';
import { openSystem } from './modelled-database.js';

const STEPS = 150;

describe('database against a model', () => {
  const seed = testSeed();
  it(`agrees after ${STEPS} random operations (seed ${seed})`, async () => {
    await runAgainstModel(await openSystem(), { seed, stepCount: STEPS });
  });
});
