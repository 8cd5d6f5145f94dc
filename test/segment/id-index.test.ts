import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hashBytes } from '../../src/segment/id-hash.js';
import { IdIndex } from '../../src/segment/id-index.js';
import { IdTable } from '../../src/segment/id-table.js';
import { Random, seedOf } from './sample.js';

/** HalfSipHash-c-d, as specified. */
function halfSipHash(bytes: Uint8Array, key: readonly number[], c: number, d: number): number {
  const add = (a: number, b: number) => (a + b) >>> 0;
  const rotate = (a: number, n: number) => ((a << n) | (a >>> (32 - n))) >>> 0;
  const xor = (a: number, b: number) => (a ^ b) >>> 0;
  const v = [key[0]!, key[1]!, xor(0x6c796765, key[0]!), xor(0x74656462, key[1]!)];
  const round = () => {
    v[0] = add(v[0]!, v[1]!);
    v[1] = xor(rotate(v[1]!, 5), v[0]);
    v[0] = rotate(v[0], 16);
    v[2] = add(v[2]!, v[3]!);
    v[3] = xor(rotate(v[3]!, 8), v[2]);
    v[0] = add(v[0], v[3]);
    v[3] = xor(rotate(v[3], 7), v[0]);
    v[2] = add(v[2], v[1]);
    v[1] = xor(rotate(v[1], 13), v[2]);
    v[2] = rotate(v[2], 16);
  };
  const padded = Buffer.alloc(Math.floor(bytes.length / 4) * 4 + 4);
  padded.set(bytes);
  padded[padded.length - 1] = bytes.length & 0xff;
  for (let at = 0; at < padded.length; at += 4) {
    const word = padded.readUInt32LE(at);
    v[3] = xor(v[3]!, word);
    for (let i = 0; i < c; i++) round();
    v[0] = xor(v[0]!, word);
  }
  v[2] = xor(v[2]!, 0xff);
  for (let i = 0; i < d; i++) round();
  return xor(v[1]!, v[3]!);
}

describe('the hash of ids', () => {
  it('is HalfSipHash-1-3', () => {
    // Checks the implementation of this test first, with the published vectors of HalfSipHash-2-4.
    const key = [0x03020100, 0x07060504];
    const published = [0x5b9f35a9, 0xb85a4727, 0x03a662fa, 0x04e7fe8a];
    for (const [length, expected] of published.entries()) {
      assert.equal(
        halfSipHash(
          Uint8Array.from({ length }, (_, i) => i),
          key,
          2,
          4,
        ),
        expected,
      );
    }
    const random = new Random(seedOf('hash'));
    for (let length = 0; length < 530; length++) {
      const bytes = Uint8Array.from({ length }, () => random.below(256));
      const keys = [random.below(2 ** 32), random.below(2 ** 32)] as const;
      assert.equal(hashBytes(bytes, [keys[0] | 0, keys[1] | 0]), halfSipHash(bytes, keys, 1, 3));
    }
  });
});

/** An index with the ids of its rows. */
class Checked {
  readonly index: IdIndex;
  readonly ids: string[] = [];

  constructor(key?: readonly [number, number]) {
    this.index = new IdIndex(key);
  }

  find(id: string): number {
    return this.index.find(
      this.index.hashOf(Buffer.from(id)),
      (segmentNumber, row) => segmentNumber === row % 7 && this.ids[row] === id,
    );
  }

  insert(id: string): number {
    const row = this.ids.push(id) - 1;
    this.index.insert(this.index.hashOf(Buffer.from(id)), row % 7, row);
    return row;
  }
}

describe('the id index', () => {
  it('behaves like a Map through inserts, moves, removals and growth', () => {
    const seed = seedOf('id index');
    const random = new Random(seed);
    const checked = new Checked();
    const model = new Map<string, number>();
    const idCount = 60_000;
    for (let step = 0; step < 250_000; step++) {
      const id = `id-${random.below(idCount)}`;
      const slot = checked.find(id);
      const expected = model.get(id);
      assert.equal(slot >= 0, expected !== undefined);
      if (slot < 0) {
        model.set(id, checked.insert(id));
      } else {
        assert.equal(checked.index.rowAt(slot), expected);
        assert.equal(checked.index.segmentNumberAt(slot), expected! % 7);
        const action = random.below(4);
        if (action === 0) {
          checked.index.removeAt(slot);
          model.delete(id);
        } else if (action === 1) {
          const row = checked.ids.push(id) - 1;
          checked.index.moveTo(slot, row % 7, row);
          model.set(id, row);
        }
      }
    }
    assert.equal(checked.index.count, model.size);
    assert.ok(model.size > 30_000, 'many tables');
    for (let i = 0; i < idCount; i++) {
      const slot = checked.find(`id-${i}`);
      assert.equal(slot < 0 ? undefined : checked.index.rowAt(slot), model.get(`id-${i}`));
    }
    for (const id of model.keys()) checked.index.removeAt(checked.find(id));
    assert.equal(checked.index.count, 0);
    assert.equal(checked.find('id-0'), -1);
  });

  it('stores segment numbers up to 2^32 - 2 and any row', () => {
    const index = new IdIndex();
    const [hashA, hashB] = ['a', 'b'].map((id) => index.hashOf(Buffer.from(id)));
    index.insert(hashA!, 2 ** 32 - 2, 2 ** 32 - 1);
    index.insert(hashB!, 0, 0);
    const a = index.find(hashA!, (_, row) => row > 0);
    const b = index.find(hashB!, (_, row) => row === 0);
    assert.deepEqual([index.segmentNumberAt(a), index.rowAt(a)], [2 ** 32 - 2, 2 ** 32 - 1]);
    assert.deepEqual([index.segmentNumberAt(b), index.rowAt(b)], [0, 0]);
  });

  it('starts small, takes about 20 bytes per id, and can be cleared', () => {
    const checked = new Checked();
    assert.ok(checked.index.hostBytes < 256);
    for (let i = 0; i < 200_000; i++) checked.insert(`id-${i}`);
    assert.ok(checked.index.hostBytes / 200_000 <= 33);
    checked.index.clear();
    assert.equal(checked.index.count, 0);
    assert.ok(checked.index.hostBytes < 256);
    assert.equal(checked.find('id-1'), -1);
    checked.insert('id-1');
    assert.ok(checked.find('id-1') >= 0);
  });

  it('hashes ids differently in every instance', () => {
    const hashes = new Set<number>();
    for (let i = 0; i < 20; i++) hashes.add(hashBytes(Buffer.from('id'), [i, 7]));
    assert.equal(hashes.size, 20);
  });
});

describe('a table of hashes', () => {
  it('distinguishes entries with equal hashes or neighbouring home slots, even at its end', () => {
    const seed = seedOf('hash table');
    for (let round = 0; round < 300; round++) {
      const random = new Random(seed + round);
      const table = new IdTable(4, 20);
      const model = new Map<number, number>();
      // Home slots at both ends of the table and few hashes, so that runs wrap around and collide.
      const hashes = [0x00ffffff, 0x00fffffe, 0x00f00000, 0x00000000, 0x00100000, 0x00e00000];
      for (let step = 0; step < 120; step++) {
        const row = random.below(40);
        const hash = hashes[row % hashes.length]!;
        const slot = table.find(hash, (_, candidate) => candidate === row);
        assert.equal(slot >= 0, model.has(row));
        if (slot < 0) {
          table.insert(hash, step, row);
          model.set(row, step);
        } else if (random.next() < 0.6) {
          table.removeAt(slot);
          model.delete(row);
        }
        assert.equal(table.count, model.size);
        for (const [known, number] of model) {
          const found = table.find(
            hashes[known % hashes.length]!,
            (_, candidate) => candidate === known,
          );
          assert.equal(found < 0 ? -1 : table.segmentNumberAt(found), number);
        }
      }
    }
  });

  it('rejects changes of an empty slot', () => {
    const table = new IdTable(4, 20);
    assert.throws(() => table.removeAt(3), /slot 3/);
    assert.throws(() => table.moveTo(3, 1, 1), /slot 3/);
  });
});
