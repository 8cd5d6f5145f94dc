// Plans for the nodes of collections, step by step; each step is one record per collection.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isAnnouncedSizes, summarizeSizes } from '../../src/cluster/members/announced-sizes.js';
import { chooseNodes } from '../../src/cluster/placement/choose-nodes.js';
import {
  COLLECTION_BYTES,
  weighCollections,
} from '../../src/cluster/placement/collection-sizes.js';
import type { Placement } from '../../src/cluster/placement/placements.js';
import { type PlannedNode, planMoves } from '../../src/cluster/placement/plan-moves.js';
import { createRandom, testSeed } from '../database/harness.js';

const OPTIONS = { movesMax: 4, newId: () => 'move', weigh: () => COLLECTION_BYTES };
const GB = 2 ** 30;

function node(name: string, change: Partial<PlannedNode> = {}): PlannedNode {
  return {
    node: name,
    zone: '',
    isServing: true,
    isDrained: false,
    isGone: false,
    isSettled: true,
    joined: [],
    ...change,
  };
}

function on(nodes: readonly string[], change: Partial<Placement> = {}): Placement {
  return { nodes, factor: nodes.length, joining: null, leaving: null, moveId: null, ...change };
}

/** The plan for one collection. */
function planFor(placement: Placement, nodes: readonly PlannedNode[]) {
  return planMoves([['c', placement]], nodes, OPTIONS).get('c');
}

const gone = { isServing: false, isGone: true } as const;

describe('the plan for a collection', () => {
  it('is empty for a collection that is where it should be', () => {
    assert.equal(planFor(on(['a', 'b']), [node('a'), node('b'), node('c')]), undefined);
    // A node that is away for a while is waited for.
    const away = node('b', { isServing: false });
    assert.equal(planFor(on(['a', 'b']), [node('a'), away, node('c')]), undefined);
  });

  it('ends a move when the new node has the collection, or can no longer get it', () => {
    const moving = on(['a', 'b'], { joining: 'c', leaving: 'a', moveId: 'move' });
    const others = [node('a'), node('b')];
    assert.equal(planFor(moving, [...others, node('c')]), undefined);
    assert.deepEqual(planFor(moving, [...others, node('c', { joined: ['move'] })]), on(['b', 'c']));
    assert.deepEqual(planFor(moving, [...others, node('c', gone)]), on(['a', 'b']));
    assert.deepEqual(planFor(moving, [...others, node('c', { isDrained: true })]), on(['a', 'b']));
    // A node that has loaded the collection becomes a holder although it was drained meanwhile.
    const late = node('c', { joined: ['move'], isDrained: true });
    assert.deepEqual(planFor(moving, [...others, late]), on(['b', 'c']));
  });

  it('replaces nodes that are gone or drained, preferably by one of another zone', () => {
    const zone = (name: string) => ({ zone: name });
    for (const change of [gone, { isDrained: true }]) {
      const nodes = [
        node('a', { ...change, ...zone('x') }),
        node('b', zone('y')),
        node('c', zone('y')),
        node('d', zone('x')),
      ];
      const expected = on(['a', 'b'], { joining: 'd', leaving: 'a', moveId: 'move' });
      assert.deepEqual(planFor(on(['a', 'b']), nodes), expected);
      assert.equal(planFor(on(['a', 'b']), nodes.slice(0, 2)), undefined);
    }
  });

  it('adds and removes nodes when the replication factor changes', () => {
    const nodes = [node('a'), node('b'), node('c', { isServing: false })];
    const grown = planFor(on(['a'], { factor: 3 }), nodes);
    assert.deepEqual(grown, on(['a'], { factor: 3, joining: 'b', moveId: 'move' }));
    assert.deepEqual(planFor(on(['a', 'b'], { factor: 1 }), nodes)?.nodes.length, 1);
    // The last serving node stays.
    assert.equal(planFor(on(['a', 'c'], { factor: 1 }), [node('a', gone), nodes[2]!]), undefined);
    const shrunk = planFor(on(['a', 'c'], { factor: 1 }), [nodes[0]!, node('c', gone)]);
    assert.deepEqual(shrunk, on(['a']));
    assert.equal(planFor(on(['a', 'b'], { factor: null }), nodes.slice(0, 2)), null);
    const everywhere = planFor(on(['a'], { factor: null }), nodes.slice(0, 2));
    assert.deepEqual(everywhere, on(['a'], { factor: null, joining: 'b', moveId: 'move' }));
  });

  it('balances when nothing else remains, to nodes that have served for a while', () => {
    const entries = ['1', '2', '3'].map((name) => [name, on(['a'])] as const);
    const plan = (other: PlannedNode) =>
      [...planMoves(entries, [node('a'), other], OPTIONS)].map(([, placement]) => placement);
    assert.deepEqual(plan(node('b')), [on(['a'], { joining: 'b', leaving: 'a', moveId: 'move' })]);
    assert.deepEqual(plan(node('b', { isSettled: false })), []);
    assert.deepEqual(plan(node('b', { isDrained: true })), []);
  });

  it('moves the collection that leaves the smallest difference, and none that would reverse it', () => {
    const weigh = (incarnation: string) => COLLECTION_BYTES + Number(incarnation) * GB;
    const nodes = [node('a'), node('b')];
    const plan = (onA: readonly number[], onB: readonly number[]) => {
      const entries = [
        ...onA.map((bytes) => [String(bytes), on(['a'])] as const),
        ...onB.map((bytes) => [String(bytes), on(['b'])] as const),
      ];
      return [...planMoves(entries, nodes, { ...OPTIONS, weigh })].map(([name, placement]) =>
        [name, placement!.leaving, placement!.joining].join(' '),
      );
    };
    assert.deepEqual(plan([100], []), []);
    assert.deepEqual(plan([100, 1, 40], []), ['100 a b']);
    assert.deepEqual(plan([100, 1, 40], [90]), ['40 a b']);
    // By number, the nodes are even, or unbalanced in the other direction.
    assert.deepEqual(plan([90, 80], [1, 2]), ['80 a b']);
    assert.deepEqual(plan([100], [1, 2, 3, 4]), []);
    assert.deepEqual(plan([100, 3.5], [1, 2, 3, 4, 5]), ['3.5 a b']);
    // A gain of a twentieth of what a node holds is too small for a move.
    assert.deepEqual(plan([100, 1], [97]), []);
    assert.deepEqual(plan([0.001, 0.002, 0.003], [0.004]), ['0.001 a b']);
  });

  it('counts the bytes of collections as their nodes announce them', () => {
    const sizes = new Map(Array.from({ length: 40 }, (_, i) => [`c${i}`, (i + 1) * 1_000]));
    const announced = summarizeSizes(sizes);
    assert.equal(Object.keys(announced.largest).length, 32);
    assert.deepEqual([announced.othersCount, announced.othersBytes], [8, 36_000]);
    assert.ok(JSON.stringify(announced).length < 4_096);
    assert.ok(isAnnouncedSizes(announced));
    for (const other of [undefined, null, 7, {}, { largest: {}, othersCount: 1 }]) {
      assert.ok(!isAnnouncedSizes(other));
    }
    const late = { largest: { c39: 50_000 }, othersCount: 0, othersBytes: 0 };
    const state = 'serving' as const;
    const nodes = [
      { node: 'a', state, sizes: announced },
      { node: 'b', state, sizes: late },
    ];
    const weigh = weighCollections(nodes);
    const bytesOf = (name: string, on: Placement) => weigh(name, on) - COLLECTION_BYTES;
    assert.equal(bytesOf('c20', on(['a'])), 21_000);
    // The largest announced size counts. A collection that is not named counts as the average of the others.
    assert.equal(bytesOf('c39', on(['a', 'b'])), 50_000);
    assert.equal(bytesOf('c0', on(['a'])), 4_500);
    assert.equal(bytesOf('c0', on(['gone'])), 0);
  });

  it('comes to rest, with copies in different zones, from any state', () => {
    const seed = testSeed();
    const random = createRandom(seed);
    const integer = (below: number) => Math.floor(random() * below);
    for (let round = 0; round < 200; round++) {
      const sizes = Array.from({ length: 13 }, () => (round % 2) * random() ** 4 * 100 * GB);
      const weigh = (name: string) => COLLECTION_BYTES + sizes[Number(name.slice(1))]!;
      const names = ['a', 'b', 'c', 'd', 'e', 'f'];
      const states = names.map((name, i) =>
        node(name, {
          zone: `z${i % 3}`,
          ...(integer(5) === 0 ? gone : {}),
          isDrained: integer(6) === 0,
        }),
      );
      states[0] = node('a', { zone: 'z0' });
      const placements = new Map<string, Placement>(
        Array.from({ length: 1 + integer(12) }, (_, i) => {
          const nodes = names.filter(() => integer(2) === 0);
          if (nodes.length === 0) nodes.push('a');
          const others = names.filter((name) => !nodes.includes(name));
          const joining = others[integer(others.length + 2)] ?? null;
          const leaving = joining === null ? null : nodes[integer(nodes.length + 1)];
          const factor = 1 + integer(3);
          const moveId = joining === null ? null : `from the start ${i}`;
          return [`c${i}`, { nodes, factor, joining, leaving: leaving ?? null, moveId }] as const;
        }),
      );
      let steps = 0;
      let idCount = 0;
      for (;;) {
        const nodes = states.map((state) => ({
          ...state,
          joined: [...placements.values()].flatMap(({ joining, moveId }) =>
            joining === state.node && state.isServing ? moveId! : [],
          ),
        }));
        const changes = planMoves(placements, nodes, {
          ...OPTIONS,
          weigh,
          newId: () => `move ${++idCount}`,
        });
        if (changes.size === 0) break;
        for (const [name, placement] of changes) placements.set(name, placement!);
        assert.ok(++steps < 300, `it goes on for ever, seed ${seed}, round ${round}`);
      }
      const usable = states.filter(({ isServing, isDrained }) => isServing && !isDrained);
      for (const { nodes, factor, joining } of placements.values()) {
        assert.equal(joining, null);
        assert.ok(nodes.length >= Math.min(factor!, usable.length), `seed ${seed}`);
        const onUsable = nodes.filter((name) => usable.some((state) => state.node === name));
        assert.equal(onUsable.length, Math.min(factor!, usable.length), `seed ${seed}`);
      }
    }
  });
});

describe('the nodes for a collection', () => {
  it('are in different zones, then those with the lowest load', () => {
    const candidates = ['a', 'b', 'c', 'd'].map((name, i) => ({ node: name, zone: `z${i >> 1}` }));
    const options = { incarnation: 'c', held: [] };
    const loads = { a: 3 * GB, b: 2 * GB, c: 9 * GB, d: 8 * GB };
    const chosen = chooseNodes(candidates, 2, {
      ...options,
      loadByNode: new Map(Object.entries(loads)),
    });
    assert.deepEqual(chosen.map(({ node }) => node).sort(), ['b', 'd']);
    // With equal loads, collections go to different nodes.
    const first = Array.from({ length: 20 }, (_, i) => {
      const even = { ...options, incarnation: `c${i}`, loadByNode: new Map() };
      return chooseNodes(candidates, 1, even)[0]!.node;
    });
    assert.ok(new Set(first).size > 1);
  });
});
