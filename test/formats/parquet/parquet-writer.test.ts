// Checks the bytes of a small Parquet file. parquet-writer.ci.test.ts reads files with other tools.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pushVarint, ThriftStruct } from '../../../src/formats/parquet/thrift.js';
import { fileOf } from './parquet-files.js';

describe('a Parquet file', () => {
  it('begins and ends as the format requires', () => {
    const { bytes } = fileOf({ dimension: 2, groups: [[['a']]] });
    assert.equal(bytes.subarray(0, 4).toString(), 'PAR1');
    assert.equal(bytes.subarray(-4).toString(), 'PAR1');
    const footerBytes = bytes.readUInt32LE(bytes.length - 8);
    assert.ok(footerBytes > 100 && footerBytes < bytes.length - 12);
    // The first field of the footer is version 2.
    assert.deepEqual([...bytes.subarray(-8 - footerBytes, -6 - footerBytes)], [0x15, 0x04]);
  });
});

describe('Thrift structs', () => {
  it('are encoded by the compact protocol', () => {
    const written = new ThriftStruct()
      .i32(1, -1)
      .i64(3, 2 ** 40)
      .text(4, 'ä')
      .struct(10, (inner) => inner.i32(2, 300))
      .i32List(12, [0, 1])
      .end();
    const expected =
      '1501' + '2680808080804' + '0' + '1802c3a4' + '6c' + '25d80400' + '292500' + '02' + '00';
    assert.equal(Buffer.from(written).toString('hex'), expected);
    const many = new ThriftStruct()
      .textList(
        1,
        Array.from({ length: 15 }, () => ''),
      )
      .end();
    assert.equal(Buffer.from(many).toString('hex'), `19f80f${'00'.repeat(15)}00`);
    const varint: number[] = [];
    pushVarint(varint, 2 ** 35 + 127);
    assert.deepEqual(varint, [0xff, 0x80, 0x80, 0x80, 0x80, 0x01]);
  });
});
