import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import { BodyAdmission } from '../../../src/server/limits/body-admission.js';
import { MemoryPressure } from '../../../src/server/limits/memory-pressure.js';
import { ReplyAdmission } from '../../../src/server/limits/reply-admission.js';

const isOverloaded = (error: SagittaError) =>
  error.code === 'overloaded' && /almost exhausted/.test(error.message);

describe('memory pressure', () => {
  /** A process with 1 000 bytes of memory, whose usage and clock the test sets. */
  function openPressure() {
    const state = { used: 0, nowMs: 0, measurements: 0, releases: 0 };
    const pressure = new MemoryPressure({
      memoryBytes: 1_000,
      measure() {
        state.measurements++;
        return state.used;
      },
      release: () => state.releases++,
      nowMs: () => state.nowMs,
    });
    return { state, pressure };
  }

  it('begins at 70 % of the memory, and is measured ten times a second at most', () => {
    const { state, pressure } = openPressure();
    state.used = 699;
    assert.equal(pressure.isPressed, false);
    state.used = 700;
    state.nowMs = 99;
    assert.equal(pressure.isPressed, false);
    assert.equal(state.measurements, 1);
    state.nowMs = 100;
    assert.equal(pressure.isPressed, true);
    state.used = 0;
    state.nowMs = 200;
    assert.equal(pressure.isPressed, false);
  });

  it('gives memory back, every two seconds while it lasts', () => {
    const { state, pressure } = openPressure();
    state.used = 900;
    for (; state.nowMs < 4_000; state.nowMs += 100) assert.equal(pressure.isPressed, true);
    assert.equal(state.releases, 2);
    state.used = 100;
    for (; state.nowMs < 8_000; state.nowMs += 100) assert.equal(pressure.isPressed, false);
    assert.equal(state.releases, 2);
  });

  it('admits small bodies, and one large one at a time', () => {
    const admission = new BodyAdmission({ bytesMax: 1e9, pressure: { isPressed: true } });
    const [first, second, third] = [
      admission.open(null),
      admission.open(null),
      admission.open(null),
    ];
    first.reserveAtLeast(100_000);
    first.reserveAtLeast(1_000_000);
    second.reserveAtLeast(60_000);
    assert.throws(() => second.reserveAtLeast(100_000), isOverloaded);
    assert.throws(() => third.reserveAtLeast(100_000), isOverloaded);
    first.release();
    second.release();
    third.reserveAtLeast(100_000);
  });

  it('admits small replies, and one large one at a time', () => {
    const admission = new ReplyAdmission({ bytesMax: 1e9, pressure: { isPressed: true } });
    const [first, second] = [admission.open(), admission.open()];
    first.reserveWork('anonymous', 1_000_000, false);
    second.reserve('anonymous', 60_000);
    assert.throws(() => second.reserve('anonymous', 100_000), isOverloaded);
    assert.throws(() => second.reserveWork('anonymous', 100_000, false), isOverloaded);
    first.reserve('anonymous', 1_000_000);
    first.release();
    second.reserve('anonymous', 100_000);
  });
});
