// Seeded random numbers for tests. The seed is printed, so that a failure can be repeated with SAGITTA_TEST_SEED.

export { createRandom } from '../../src/tools/selftest/blocks.js';

/** The seed of a test, from SAGITTA_TEST_SEED or the clock. */
export function testSeed(): number {
  const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 1_000_000);
  console.log(`SAGITTA_TEST_SEED=${seed}`);
  return seed;
}
