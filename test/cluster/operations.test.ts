// Operations of a commit as bytes.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { decodeOperations, encodeOperations } from '../../src/cluster/logs/operations.js';
import type { StoreOperation } from '../../src/storage/store.js';

const HEADER_OF_ANY_LENGTH = 20;

function operationsNamed(name: string): StoreOperation[] {
  return [
    { kind: 'append', log: name, sequence: 7, record: new Uint8Array(24).fill(1) },
    { kind: 'append', log: name, sequence: 8, record: new Uint8Array(16).fill(2) },
    { kind: 'put', key: ['a', name], value: new Uint8Array(3).fill(3) },
    { kind: 'remove', key: ['b', 'ü'] },
    { kind: 'put', key: ['c'], value: new Uint8Array() },
  ];
}

it('operations survive encoding, with aligned records, whatever their names', () => {
  for (let length = 1; length < HEADER_OF_ANY_LENGTH; length++) {
    const operations = operationsNamed('é'.repeat(length));
    const decoded = decodeOperations(new Uint8Array(encodeOperations(operations)), 'a test');
    const plain = decoded.map((operation) => structuredClone(operation));
    assert.deepEqual(plain, operations);
    for (const operation of decoded) {
      if (operation.kind === 'append') assert.equal(operation.record.byteOffset % 8, 0);
    }
  }
});

it('other bytes are refused with their position', () => {
  const encoded = encodeOperations(operationsNamed('x'));
  for (const length of [0, 3, 10, encoded.length - 1]) {
    assert.throws(() => decodeOperations(encoded.subarray(0, length), 'Position 3'), {
      code: 'data_corrupt',
      message: /^Position 3 is damaged: its bytes are not the operations/,
    });
  }
});
