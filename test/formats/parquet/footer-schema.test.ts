import assert from 'node:assert/strict';
import { it } from 'node:test';
import { uuidColumnsOf } from '../../../src/formats/parquet/footer-schema.js';
import { ThriftStruct } from '../../../src/formats/parquet/thrift.js';

it('UUID columns are found in the footer, however columns are nested', () => {
  type Element = readonly [name: string, childCount: number, isUuid?: boolean];
  const elements: readonly Element[] = [
    ['schema', 4],
    ['id', 0, true],
    ['values', 1],
    ['list', 1],
    ['element', 0],
    ['place', 2],
    ['hidden', 0, true],
    ['y', 0],
    ['other', 0, true],
  ];
  const footer = new ThriftStruct()
    .i32(1, 2)
    .structList(2, elements, (struct, [name, childCount, isUuid = false]) => {
      struct.i32(1, 7).i32(2, 16).text(4, name);
      if (childCount > 0) struct.i32(5, childCount);
      if (isUuid) struct.struct(10, (union) => union.struct(14, () => {}));
    })
    .i64(3, 5)
    .end();
  assert.deepEqual(uuidColumnsOf(footer), ['id', 'other']);
});
