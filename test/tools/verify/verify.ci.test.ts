// Verification of a data directory whose tables were damaged: each page of them, at each byte of its header.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { verifyDirectory } from '../../../src/offline.js';
import { createRandom, testSeed } from '../../database/harness.js';
import { copyOf, makeSoundData } from './sound-data.js';

const PAGE_BYTES = 4096;

it('verify finds damaged pages of the tables, and survives any change to them', async (t) => {
  const seed = testSeed();
  t.diagnostic(`seed ${seed}`);
  const random = createRandom(seed);
  const directory = await copyOf((await makeSoundData()).sound);
  const path = join(directory, 'store.lmdb');
  const bytes = await readFile(path);
  const isFoundAt = async (at: number) => {
    const damaged = Buffer.from(bytes);
    damaged[at]! ^= 1 + Math.floor(random() * 255);
    await writeFile(path, damaged);
    try {
      return (await verifyDirectory(directory)).errorCount > 0;
    } catch (error) {
      const { code } = error as { code?: string };
      assert.ok(code === 'data_corrupt' || code === 'configuration_invalid', `${error}`);
      return true;
    }
  };
  let pageCount = 0;
  let foundCount = 0;
  for (let page = 2; page < bytes.length / PAGE_BYTES; page++) {
    const start = page * PAGE_BYTES;
    // What nothing leads to may hold anything.
    if (!(await isFoundAt(start))) continue;
    pageCount++;
    // Its number, its flags, where free space begins and ends.
    for (const at of [1, 7, 18, 19, 20, 21, 22, 23]) {
      assert.ok(await isFoundAt(start + at), `byte ${at} of page ${page}`);
    }
    for (let i = 0; i < 10; i++) {
      if (await isFoundAt(start + Math.floor(random() * PAGE_BYTES))) foundCount++;
    }
  }
  for (const at of [24, 28, 4096 + 24, 4096 + 28]) assert.ok(await isFoundAt(at), `byte ${at}`);
  t.diagnostic(`${foundCount} of ${pageCount * 10} other bytes; the rest is free space or text`);
  assert.ok(pageCount > 3 && foundCount > pageCount);
  await writeFile(path, bytes.subarray(0, bytes.length - 2 * PAGE_BYTES));
  const { findings } = await verifyDirectory(directory);
  assert.match(JSON.stringify(findings), /its last 8192 bytes are missing/);
});
