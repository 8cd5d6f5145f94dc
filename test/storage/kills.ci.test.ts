// The disk store in a process that is killed, on a large disk and on one that is nearly full.

import { describe, it } from 'node:test';
import { IS_NIGHTLY } from '../support/nightly.js';
import { makeDirectory, onSmallDisk } from './directories.js';
import { surviveKills } from './survive-kills.js';

const ROUNDS = IS_NIGHTLY ? 20 : 8;
/** Holds a few dozen commits. */
const SHORT_LOG_BYTES = 60_000;

describe('an embedded store whose process is killed', () => {
  it(`keeps every acknowledged commit through ${ROUNDS} kills`, async () => {
    await surviveKills(await makeDirectory(), ROUNDS);
  });

  it(`keeps them through ${ROUNDS} kills while it writes bases and removes files`, async () => {
    await surviveKills(await makeDirectory(), ROUNDS, SHORT_LOG_BYTES);
  });

  it(`keeps them through ${ROUNDS} kills while it frees space on a disk that is nearly full`, async (t) => {
    const isDone = await onSmallDisk(14, (directory) => surviveKills(directory, ROUNDS));
    if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
  });
});
