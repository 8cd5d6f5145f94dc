// Streams with random changes are either rejected with a known code or give valid rows, in bounded time.
// SAGITTA_FUZZ_SEED repeats a run, SAGITTA_FUZZ_CASES makes it longer.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import * as fixtures from './fixtures.js';
import { batchesOf, plainStream, readBatch, textAt } from './streams.js';

const CASES = Number(process.env.SAGITTA_FUZZ_CASES ?? 3_000);
const SEED = Number(process.env.SAGITTA_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
const CODES = ['invalid_arrow', 'invalid_request', 'invalid_metadata'];
const CASE_MS_MAX = 30_000;

const sources = [...Object.values(fixtures), Buffer.concat(plainStream([['a', 'b'], ['c']]))];

/** Numbers from 0 to below `bound`, the same for the same seed (mulberry32). */
function randomOf(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}

function mutate(bytes: Buffer, random: (bound: number) => number): Buffer {
  const at = random(bytes.length);
  switch (random(6)) {
    case 0:
      bytes[at]! ^= 1 << random(8);
      return bytes;
    case 1:
      bytes[at] = random(256);
      return bytes;
    case 2:
      return bytes.subarray(0, at);
    case 3: {
      const values = [-1, 0, 1, 0x7fffffff, -0x80000000, 65_536, random(100_000)];
      if (bytes.length >= 4)
        bytes.writeInt32LE(values[random(values.length)]!, (at & ~3) % (bytes.length - 3));
      return bytes;
    }
    case 4: {
      const values = [-1n, 0n, 2n ** 62n, 2n ** 33n, 1_000_000n, BigInt(random(1_000))];
      if (bytes.length >= 8)
        bytes.writeBigInt64LE(values[random(values.length)]!, (at & ~7) % (bytes.length - 7));
      return bytes;
    }
    default: {
      const other = sources[random(sources.length)]!;
      const from = random(other.length);
      const count = random(200);
      const rest = bytes.subarray(Math.min(bytes.length, at + random(2) * count));
      return Buffer.concat([bytes.subarray(0, at), other.subarray(from, from + count), rest]);
    }
  }
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
    for (let j = 0; j < changes && bytes.length > 0; j++) bytes = mutate(bytes, random);
    const start = performance.now();
    const place = `case ${i} of seed ${SEED}`;
    const outcome = await read(bytes, 1 + random(bytes.length + 1)).catch((error: unknown) => {
      throw new Error(place, { cause: error });
    });
    assert.ok(performance.now() - start < CASE_MS_MAX, place);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  // Changes that only ever broke the first bytes would test little.
  for (const outcome of ['rows', 'invalid_arrow']) {
    assert.ok((outcomes.get(outcome) ?? 0) > CASES / 100, `${outcome}: ${outcomes.get(outcome)}`);
  }
});
