import assert from 'node:assert/strict';
import { test } from 'node:test';
import { remainingMs, remainingText, shareText } from '../src/ui/remaining-time.js';

test('the remaining time follows from the speed so far', () => {
  const progress = { doneCount: 250, totalCount: 1_000, elapsedMs: 10_000 };
  assert.equal(remainingMs(progress), 30_000);
  assert.equal(remainingText(progress), 'about 30 s left');
  assert.equal(shareText(progress), '25 %');
});

test('there is no estimate at the beginning and at the end', () => {
  assert.equal(remainingMs({ doneCount: 50, totalCount: 100, elapsedMs: 100 }), undefined);
  assert.equal(remainingMs({ doneCount: 0, totalCount: 100, elapsedMs: 9_000 }), undefined);
  assert.equal(remainingMs({ doneCount: 100, totalCount: 100, elapsedMs: 9_000 }), undefined);
  assert.equal(remainingText({ doneCount: 0, totalCount: 0, elapsedMs: 9_000 }), undefined);
});

test('estimates are rounded to steps, and long ones are in minutes and hours', () => {
  const textOf = (secondsLeft: number) =>
    remainingText({ doneCount: 1, totalCount: 2, elapsedMs: secondsLeft * 1_000 });
  assert.equal(textOf(3), 'a few seconds left');
  assert.equal(textOf(31), 'about 35 s left');
  assert.equal(textOf(61), 'about 2 min left');
  assert.equal(textOf(7_230), 'about 2 h 0 min left');
});

test('a job that is not done has less than 100 %', () => {
  assert.equal(shareText({ doneCount: 999, totalCount: 1_000, elapsedMs: 1 }), '99 %');
  assert.equal(shareText({ doneCount: 0, totalCount: 0, elapsedMs: 1 }), '0 %');
});
