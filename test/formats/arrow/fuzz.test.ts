// Streams with random changes are either rejected with a known code or give valid rows, in bounded time.
// SAGITTA_FUZZ_SEED repeats a run, and SAGITTA_FUZZ_CASES makes it longer.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { mutateBytes } from '../../support/mutate-bytes.js';
import { createRandom } from '../../support/random.js';
import * as fixtures from './fixtures.js';
import { batchesOf, plainStream, readBatch, textAt } from './streams.js';

const CASES = Number(process.env.SAGITTA_FUZZ_CASES ?? 3_000);
const SEED = Number(process.env.SAGITTA_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
const CODES = ['invalid_arrow', 'invalid_request', 'invalid_metadata'];
const CASE_MS_MAX = 30_000;

const sources = [...Object.values(fixtures), Buffer.concat(plainStream([['a', 'b'], ['c']]))];

/** Numbers from 0 to below `bound`, the same for the same seed. */
function randomOf(seed: number): (bound: number) => number {
  const random = createRandom(seed);
  return (bound) => Math.floor(random() * bound);
}

/** The outcome of reading: rows, issues or an error code. */
async function read(bytes: Uint8Array, chunkBytes: number): Promise<string> {
  try {
    let outcome = 'no batch';
    for (const batch of await batchesOf(bytes, chunkBytes)) {
      const { count, ids, values, metadata, issues } = readBatch(batch);
      outcome = issues.length > 0 ? 'issues' : 'rows';
      if (issues.length > 0) continue;
      assert.equal(values.length, count * 2);
      assert.ok(values.every(Number.isFinite));
      const hasText = batch.fields.some(({ name }) => name === 'metadata');
      for (let row = 0; row < count; row++) {
        if (ids !== null) textAt(ids, row);
        if (metadata !== null && !hasText) JSON.parse(textAt(metadata, row));
      }
    }
    return outcome;
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    assert.ok(CODES.includes(error.code), error.message);
    return error.code;
  }
}

it(`changed streams are rejected or read in bounded time (seed ${SEED})`, async () => {
  const random = randomOf(SEED);
  const outcomes = new Map<string, number>();
  for (let i = 0; i < CASES; i++) {
    let bytes: Buffer = Buffer.from(sources[random(sources.length)]!);
    const changes = 1 + random(3);
    for (let j = 0; j < changes && bytes.length > 0; j++)
      bytes = mutateBytes(bytes, random, sources);
    const start = performance.now();
    const place = `case ${i} of seed ${SEED}`;
    const outcome = await read(bytes, 1 + random(bytes.length + 1)).catch((error: unknown) => {
      throw new Error(place, { cause: error });
    });
    assert.ok(performance.now() - start < CASE_MS_MAX, place);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  // Changes that only broke the first bytes would test little.
  for (const outcome of ['rows', 'invalid_arrow']) {
    assert.ok((outcomes.get(outcome) ?? 0) > CASES / 100, `${outcome}: ${outcomes.get(outcome)}`);
  }
});
