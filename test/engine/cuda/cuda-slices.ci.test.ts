// Uploads of blocks so large that the cuda engine cuts them into slices.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createBlock,
  createIds,
  createQuery,
  createRandom,
  createRandomBlock,
  SEED,
} from '../blocks.js';
import { check, createCase, turns } from './fake-engine.js';

const MIB = 1024 * 1024;
const random = createRandom(SEED);

describe('large uploads of the cuda engine', () => {
  it('are cut into slices between which searches run, urgent uploads first', async () => {
    const { fake, device, engine } = await createCase([100_000 * MIB], 32);
    const little = createRandomBlock(random, 'random', 64, 10);
    await check(engine, [little]);
    // 10 000 rows of 16 KiB are ten slices; scaled by 32 they are more than a batch waits for.
    const values = new Float32Array(new SharedArrayBuffer(10_000 * 4_096 * 4));
    const ids = createIds(random, 10_000);
    const large = createBlock(values, 4_096, ids);
    device.calls.length = 0;
    const query = createQuery(large, new Float32Array(4_096), { rowCount: 1, k: 1 });
    fake.holdsUploads = true;
    await engine.search([query]);
    fake.holdsUploads = false;
    await turns(4);
    await check(engine, [little]);
    await check(engine, [createRandomBlock(random, 'random', 80, 10)]);
    await turns(60);
    const slices = device.calls.filter((call) => call !== 'search' && call !== '0..80');
    assert.equal(slices.length, 10);
    const last = device.calls.indexOf(slices.at(-1)!);
    assert.ok(device.calls.indexOf('search') < last, device.calls.join(' '));
    assert.ok(device.calls.indexOf('0..80') < last, device.calls.join(' '));
  });
});
