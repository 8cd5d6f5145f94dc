import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { totalmem } from 'node:os';
import { describe, it } from 'node:test';
import { memoryOfProcess } from '../../src/platform/memory-limit.js';

const MODULE = new URL('../../src/platform/memory-limit.js', import.meta.url).href;

/** Runs in a separate process, because the garbage of other tests would be collected meanwhile. */
const PROGRAM = `
  const { memoryInUse } = await import(${JSON.stringify(MODULE)});
  const before = memoryInUse();
  const buffer = Buffer.alloc(100_000_000, 1);
  console.log(JSON.stringify([before, memoryInUse(), buffer[0]]));`;

describe('the memory of the process', () => {
  it('is not more than that of the machine', () => {
    assert.ok(memoryOfProcess() > 0 && memoryOfProcess() <= totalmem());
  });

  it('grows when buffers are written', () => {
    const options = ['--input-type=module', '--eval', PROGRAM];
    const printed = execFileSync(process.execPath, options, { encoding: 'utf8' });
    const [before, after] = JSON.parse(printed) as [number, number];
    assert.ok(before > 0 && before <= totalmem());
    assert.ok(after > before + 90_000_000, printed);
  });
});
