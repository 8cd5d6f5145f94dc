// Compares a cluster in memory with the model of a database; CI runs more rounds.

import { describe, it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { runAgainstModel } from '../database/model.js';
import { startSystem } from './modelled-cluster.js';

const STEPS = 80;

describe('a cluster against a model', () => {
  const seed = testSeed();
  it(`agrees after ${STEPS} random operations (seed ${seed})`, async () => {
    await runAgainstModel(await startSystem(), { seed, stepCount: STEPS });
  });
});
