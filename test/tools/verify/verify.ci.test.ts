// Verification of a data directory with a damaged journal: each frame is damaged at each member of its header, in its
// directory, and elsewhere.

import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { verifyDirectory } from '../../../src/offline.js';
import { FRAME_MARK, HEADER_BYTES } from '../../../src/storage/frame.js';
import { createRandom, testSeed } from '../../database/harness.js';
import { copyOf, makeSoundData } from './sound-data.js';

/** Offset of the directory length in a header. */
const DIRECTORY_LENGTH_AT = 16;
/** The first byte of each member of a header, and its last byte. */
const HEADER_PLACES = [0, 4, 8, DIRECTORY_LENGTH_AT, 20, 24, 32, HEADER_BYTES - 1];

it('verify finds damaged frames of the journal, and survives any change to them', async (t) => {
  const seed = testSeed();
  t.diagnostic(`seed ${seed}`);
  const random = createRandom(seed);
  const directory = await copyOf((await makeSoundData()).sound);
  let frameCount = 0;
  let otherCount = 0;
  let foundCount = 0;
  for (const name of await readdir(join(directory, 'journal'))) {
    const path = join(directory, 'journal', name);
    const bytes = withoutZeros(await readFile(path));
    const isFoundAt = async (at: number) => {
      const damaged = Buffer.from(bytes);
      damaged[at]! ^= 1 + Math.floor(random() * 255);
      await writeFile(path, damaged);
      return hasFindings(directory);
    };
    for (let at = bytes.indexOf(FRAME_MARK); at >= 0; at = bytes.indexOf(FRAME_MARK, at + 1)) {
      frameCount++;
      const length = bytes.readUInt32LE(at + DIRECTORY_LENGTH_AT);
      const changes = Array.from({ length: 3 }, () => HEADER_BYTES + Math.floor(random() * length));
      for (const place of [...HEADER_PLACES, ...changes]) {
        assert.ok(await isFoundAt(at + place), `byte ${place} of the frame at ${at} of ${name}`);
      }
    }
    // The space of trimmed records may contain anything.
    for (let i = 0; i < 50; i++, otherCount++) {
      if (await isFoundAt(Math.floor(random() * bytes.byteLength))) foundCount++;
    }
    if (frameCount > 1 && name.endsWith('.log')) {
      await writeFile(path, bytes.subarray(0, bytes.lastIndexOf(FRAME_MARK)));
      const { findings } = await verifyDirectory(directory);
      assert.match(JSON.stringify(findings), /1 commits are missing or cannot be read/);
    }
    await writeFile(path, bytes);
  }
  t.diagnostic(`${frameCount} frames; found ${foundCount} of ${otherCount} other bytes`);
  assert.ok(frameCount > 10 && foundCount > otherCount / 4);
  assert.ok(!(await hasFindings(directory)), 'the data is as it was');
});

/** Removes the zeros written ahead. */
function withoutZeros(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1);
}

/** Whether the damage is found, or reported as making the journal unreadable. */
async function hasFindings(directory: string): Promise<boolean> {
  try {
    return (await verifyDirectory(directory)).errorCount > 0;
  } catch (error) {
    const { code } = error as { code?: string };
    assert.ok(code === 'data_corrupt' || code === 'configuration_invalid', `${error}`);
    return true;
  }
}
