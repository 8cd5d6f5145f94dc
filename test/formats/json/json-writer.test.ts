import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { JsonWriter } from '../../../src/formats/json/json-writer.js';
import { columnOf } from '../../database/harness.js';

const textOf = (write: (json: JsonWriter) => void, byteCount = 0) => {
  const json = new JsonWriter(byteCount);
  write(json);
  return Buffer.from(json.written()).toString();
};

describe('JSON as bytes', () => {
  it('writes strings as JSON.stringify does', () => {
    const texts = ['', 'a', 'ä☃😀', '"\\"', 'a\u0001b\u001f', '\u007f', '\u2028', 'x'.repeat(500)];
    const column = columnOf(texts);
    for (const [row, text] of texts.entries()) {
      const written = textOf((json) => json.text(column, row));
      assert.equal(JSON.parse(written), text);
      assert.equal(written, JSON.stringify(text));
    }
  });

  it('puts documents on one line and changes nothing else', () => {
    const long = `{"t":"${'ä\\n'.repeat(40)}",\n\r\n "n": 1.0}`;
    const texts = ['{}', '{\n"a":\r\n1}', long];
    const column = columnOf(texts);
    for (const [row, text] of texts.entries()) {
      const written = textOf((json) => json.document(column, row));
      assert.equal(written, text.replace(/[\r\n]/g, ' '));
      assert.deepEqual(JSON.parse(written), JSON.parse(text));
    }
  });

  it('grows from nothing and writes vectors that read back bit for bit', () => {
    const values = Float32Array.from(
      { length: 5_000 },
      (_, i) => Math.sin(i) * 10 ** ((i % 70) - 35),
    );
    values[7] = -0;
    const written = textOf((json) => {
      json.ascii('[');
      json.vector(values, 0, 5_000);
      json.ascii(',');
      json.vector(values, 5, 5);
      json.ascii(',');
      json.float(0.5);
      json.ascii(']');
    });
    const [whole, none, half] = JSON.parse(written) as [number[], number[], number];
    assert.deepEqual(Float32Array.from(whole), values);
    assert.deepEqual([none, half], [[], 0.5]);
  });
});
