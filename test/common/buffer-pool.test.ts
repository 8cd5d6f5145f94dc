import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BufferPool } from '../../src/common/buffer-pool.js';

const KILOBYTE = 1024;

const createPool = (options: { countMax: number; bytesMax?: number }) =>
  new BufferPool((byteCount) => new ArrayBuffer(byteCount), options);

describe('a pool of buffers', () => {
  it('returns the shortest buffer that is long enough', () => {
    const pool = createPool({ countMax: 3 });
    const [long, short] = [pool.acquire(900 * KILOBYTE), pool.acquire(300 * KILOBYTE)];
    pool.release(short);
    pool.release(long);
    assert.equal(pool.acquire(290 * KILOBYTE).buffer, short.buffer);
    assert.equal(pool.acquire(290 * KILOBYTE).buffer, long.buffer);
    assert.notEqual(pool.acquire(290 * KILOBYTE).buffer, long.buffer);
  });

  it('keeps a limited number of buffers and bytes, and drops the oldest', () => {
    const pool = createPool({ countMax: 2, bytesMax: 1_500 * KILOBYTE });
    const taken = [300, 300, 300, 900, 900].map((count) => pool.acquire(count * KILOBYTE));
    const dropped = taken.map((bytes) => pool.release(bytes));
    const [short, , , long] = taken.map(({ buffer }) => buffer.byteLength) as number[];
    assert.deepEqual(dropped, [0, 0, short, short, short! + long!]);
    assert.equal(pool.acquire(900 * KILOBYTE).buffer, taken[4]!.buffer);
  });

  it('leaves short buffers to the garbage collector', () => {
    const pool = createPool({ countMax: 2 });
    const bytes = pool.acquire(10);
    assert.equal(pool.release(bytes), 0);
    assert.notEqual(pool.acquire(10).buffer, bytes.buffer);
  });
});
