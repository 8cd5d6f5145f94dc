import assert from 'node:assert/strict';
import { it } from 'node:test';
import { TimeLeft } from '../../src/cli/terminal/progress.js';

/** A job whose progress the test controls. */
function createJob() {
  const timeLeft = new TimeLeft();
  let nowMs = 5_000;
  let share = 0;
  timeLeft.update(share, nowMs);
  return {
    /** Lets time pass without progress. */
    wait(seconds: number) {
      nowMs += 1_000 * seconds;
    },
    advance(by: number, seconds: number) {
      nowMs += 1_000 * seconds;
      share += by;
      timeLeft.update(share, nowMs);
    },
    get seconds() {
      return timeLeft.secondsAt(nowMs);
    },
    get share() {
      return share;
    },
  };
}

function isNear(found: number | null, expected: number, tolerance: number): void {
  assert.ok(found !== null && Math.abs(found - expected) <= tolerance * expected, `${found} s`);
}

it('the time left of a steady job is exact, and is shown only after enough has been seen', () => {
  const job = createJob();
  job.advance(0.01, 0.5);
  job.advance(0.01, 0.5);
  job.advance(0.01, 0.5);
  assert.equal(job.seconds, null);
  job.advance(0.01, 0.4);
  assert.equal(job.seconds, null);
  job.advance(0.01, 0.6);
  isNear(job.seconds, 47.5, 0.05);
});

it('a slow beginning is forgotten', () => {
  const job = createJob();
  // The whole of the past predicts hours when the rest takes minutes.
  for (let i = 0; i < 4; i++) job.advance(0.001, 15);
  isNear(job.seconds, 14_940, 0.01);
  for (let i = 0; i < 60; i++) job.advance(0.001, 1);
  isNear(job.seconds, 1_000 * (1 - job.share), 0.35);
  for (let i = 0; i < 200; i++) job.advance(0.001, 1);
  isNear(job.seconds, 1_000 * (1 - job.share), 0.1);
});

it('a job that slows down is noticed within a few advances', () => {
  const job = createJob();
  for (let i = 0; i < 50; i++) job.advance(0.002, 0.2);
  isNear(job.seconds, 90, 0.01);
  for (let i = 0; i < 8; i++) job.advance(0.002, 4);
  isNear(job.seconds, 2_000 * (1 - job.share), 0.3);
});

it('between advances the time counts down, and grows if the next one is late', () => {
  const job = createJob();
  for (let i = 0; i < 5; i++) job.advance(0.1, 10);
  isNear(job.seconds, 50, 0.01);
  job.wait(9);
  isNear(job.seconds, 41, 0.01);
  job.wait(100);
  assert.ok(job.seconds! > 100, `${job.seconds} s`);
});

it('what an earlier run has done is not progress, and a finished job has no time left', () => {
  const timeLeft = new TimeLeft();
  timeLeft.update(0.9, 1_000);
  for (let i = 1; i <= 5; i++) timeLeft.update(0.9 + 0.01 * i, 1_000 + 1_000 * i);
  isNear(timeLeft.secondsAt(6_000), 5, 0.01);
  timeLeft.update(1, 7_000);
  assert.equal(timeLeft.secondsAt(7_000), null);
});

it('random progress never gives a time that is negative or not finite', () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return state / 2 ** 31;
  };
  for (let job = 0; job < 200; job++) {
    const timeLeft = new TimeLeft();
    let nowMs = 0;
    let share = random() < 0.5 ? 0 : random();
    for (let i = 0; i < 50; i++) {
      nowMs += random() < 0.2 ? 0 : random() * 10 ** (6 * random());
      share = Math.min(1, share + (random() < 0.3 ? 0 : random() * 10 ** (-6 * random())));
      timeLeft.update(share, nowMs);
      const seconds = timeLeft.secondsAt(nowMs + random() * 10_000);
      assert.ok(seconds === null || (seconds >= 0 && Number.isFinite(seconds)), `seed ${seed}`);
    }
  }
});
