// The nodes that keep the whole of a segment file.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FileHomes } from '../../src/cluster/placement/file-homes.js';
import {
  Placements,
  placedOn,
  placementOperation,
} from '../../src/cluster/placement/placements.js';
import type { PresentFile } from '../../src/storage/commit-log.js';
import { createMemoryStore } from '../../src/storage/memory-store.js';

const FILE_COUNT = 4_000;
const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);

function homesOn(nodes: readonly string[] | null, copies: number | null, node = 'n0'): FileHomes {
  const placements = new Placements(createMemoryStore());
  if (nodes !== null) placements.apply([placementOperation('c', placedOn(nodes, nodes.length))]);
  return new FileHomes({ placements, node, copies });
}

const homesOf = (homes: FileHomes) =>
  Array.from({ length: FILE_COUNT }, (_, i) => homes.of('c', `row ${i}`)!);

describe('the homes of files', () => {
  it('are all nodes without a limit, with few nodes, or without a placement', () => {
    assert.equal(homesOn(names(4), null).of('c', 'row 1'), null);
    assert.equal(homesOn(names(2), 2).of('c', 'row 1'), null);
    assert.equal(homesOn(null, 2).of('c', 'row 1'), null);
    assert.ok(homesOn(names(2), 2).isHere('c', 'row 1'));
  });

  it('are the same on all nodes, and spread evenly', () => {
    const found = homesOf(homesOn(names(8), 2));
    const counts = new Map<string, number>();
    for (const homes of found) {
      assert.equal(new Set(homes).size, 2);
      for (const name of homes) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    for (const name of names(8)) {
      const share = counts.get(name)! / FILE_COUNT;
      assert.ok(Math.abs(share - 2 / 8) < 0.03, `${name} keeps ${share} of the files`);
      const homes = homesOn(names(8), 2, name);
      for (const [i, wanted] of found.entries()) {
        assert.equal(homes.isHere('c', `row ${i}`), wanted.includes(name));
      }
    }
  });

  it('change for few files when a node is added', () => {
    const before = homesOf(homesOn(names(8), 2));
    const after = homesOf(homesOn(names(9), 2));
    for (const [i, homes] of after.entries()) {
      const added = homes.filter((name) => !before[i]!.includes(name));
      assert.ok(added.every((name) => name === 'n8'));
    }
    const moved = after.filter((homes) => homes.includes('n8')).length / FILE_COUNT;
    assert.ok(Math.abs(moved - 2 / 9) < 0.03, `${moved} of the files have the new node`);
  });

  it('include the node that has written a file, until it keeps its share, and those that keep less', () => {
    const DATA_BYTES = 1_000;
    const writers = names(2).map((name) => homesOn(names(8), 2, name));
    const present: PresentFile[] = [];
    for (let i = 0; i < 200; i++) {
      for (const writer of writers) {
        const homeKey = writer.keyFor('c', present);
        // At first nobody keeps a file.
        if (present.length === 0) assert.ok(writer.isHere('c', homeKey));
        present.push({ homeKey, dataBytes: DATA_BYTES });
      }
    }
    for (const name of names(8)) {
      const kept = present.filter(({ homeKey }) => writers[0]!.of('c', homeKey)!.includes(name));
      const share = kept.length / present.length;
      assert.ok(Math.abs(share - 2 / 8) < 0.03, `${name} keeps ${share} of the files`);
    }
  });

  it('are chosen at random for a file of a node that does not hold the collection', () => {
    const key = homesOn(names(8), 2, 'other').keyFor('c', []);
    assert.ok(key.length > 0);
    assert.equal(homesOn(names(8), 2).of('c', key)!.length, 2);
  });
});
