import assert from 'node:assert/strict';
import { totalmem } from 'node:os';
import { describe, it } from 'node:test';
import { memoryInUse, memoryOfProcess } from '../../src/platform/memory-limit.js';

describe('the memory of the process', () => {
  it('is not more than that of the machine', () => {
    assert.ok(memoryOfProcess() > 0 && memoryOfProcess() <= totalmem());
  });

  it('in use grows with buffers that are written', () => {
    const before = memoryInUse();
    assert.ok(before > 0 && before <= totalmem());
    const buffer = Buffer.alloc(100_000_000, 1);
    assert.ok(memoryInUse() > before + 90_000_000);
    assert.equal(buffer[0], 1);
  });
});
