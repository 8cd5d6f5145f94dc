import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { float32Text, vectorText } from '../../src/common/float-text.js';

describe('float32 as text', () => {
  it('is a short decimal', () => {
    for (const text of ['0.1', '1', '-2.5', '123456', '0.0625', '9999999', '0.30000001', '0']) {
      assert.equal(float32Text(Math.fround(Number(text))), text === '0.30000001' ? '0.3' : text);
    }
  });

  it('keeps the sign of zero and the ends of the range', () => {
    assert.equal(float32Text(-0), '-0');
    for (const value of [2 ** -149, 2 ** -126, 3.4028234663852886e38, 16777216, 1e-7, 1e7]) {
      for (const x of [Math.fround(value), -Math.fround(value)]) {
        assert.equal(Math.fround(JSON.parse(float32Text(x)) as number), x);
      }
    }
  });

  it('parses to the same float32 for any bits', () => {
    const bits = new Uint32Array(1);
    const [float] = [new Float32Array(bits.buffer)];
    // An odd stride visits all kinds of exponents and mantissas.
    for (let i = 0, pattern = 0; i < 500_000; i++, pattern = (pattern + 2_654_435_761) >>> 0) {
      bits[0] = pattern;
      const value = float![0]!;
      if (!Number.isFinite(value)) continue;
      const text = float32Text(value);
      assert.ok(Object.is(Math.fround(JSON.parse(text) as number), value), `${value}: ${text}`);
    }
  });

  it('parses to the same float32 for typical values of embeddings', () => {
    for (let i = 1; i < 300_000; i++) {
      const value = Math.fround(Math.sin(i) * 10 ** ((i % 9) - 5));
      const text = float32Text(value);
      assert.equal(Math.fround(JSON.parse(text) as number), value);
      if (Math.abs(value) >= 1e-7) assert.ok(text.length <= 18, text);
    }
  });

  it('formats vectors of any length as arrays', () => {
    assert.equal(vectorText(Float32Array.of()), '[]');
    assert.equal(vectorText(Float32Array.of(0.5, -1, 3e-9)), `[0.5,-1,${Math.fround(3e-9)}]`);
    const long = new Float32Array(20_000).fill(-1.1754943508222875e-38);
    assert.deepEqual(Float32Array.from(JSON.parse(vectorText(long)) as number[]), long);
  });
});
