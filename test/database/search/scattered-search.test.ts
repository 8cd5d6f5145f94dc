// Searches of a node that keeps no vectors, by the nodes that keep them, some of which fail. The clock is mocked, so
// that nodes are late only when a test says so.

import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import { after, before, beforeEach, describe, it, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { countBitsBetween } from '../../../src/common/bitmap.js';
import type { Database } from '../../../src/database/database.js';
import type { Peer, PeerSearchRequest, Peers } from '../../../src/database/search/peers.js';
import type { Engine } from '../../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { createMemoryState } from '../../../src/storage/memory-store.js';
import { mockClock } from '../../support/mock-clock.js';
import { dense } from '../../vector-columns.js';
import { batchOf, createRandom, openDatabase } from '../harness.js';

const DIMENSION = 4;
const SEGMENT_ROWS = 16;
const SEGMENT_COUNT = 6;
const QUERY = { vector: Float32Array.of(1, -2, 3, 0.5), topK: 20, includeMetadata: true };
/** Longer than the nodes wait at least. */
const LATE_MS = 60_000;

type Outcome = 'reply' | 'failure' | 'silence';

/** A request to a node. */
interface Asked extends Pick<PeerSearchRequest, 'ranges'> {
  readonly node: string;
}

describe('a search by the nodes that keep the segments', () => {
  /** Holds the same data as the other nodes, of which one database plays all. */
  let here: Database;
  let others: Database;
  /** The rows that the asking node searched itself. */
  let localRowCount = 0;
  let localSearchCount = 0;
  let asked: Asked[] = [];
  /** What a node does with its first request, its second, and so on. */
  let outcomes: Record<string, readonly Outcome[]> = {};
  /** The nodes that keep the segments, in turn; null if all keep all. */
  let keepers: readonly (readonly string[])[] | null = null;
  const placeOf = new Map<unknown, number>();

  const peerOf = (node: string): Peer => ({
    async search(request, signal) {
      const turnOfNode = asked.filter((each) => each.node === node).length;
      asked.push({ node, ranges: request.ranges });
      const outcome = outcomes[node]?.[turnOfNode] ?? 'reply';
      if (outcome === 'reply') return others.searchForPeer(request, signal);
      if (outcome === 'failure') throw new Error('a failure for the test');
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    },
    count: () => Promise.reject(new Error('nothing is counted')),
  });
  const peers: Peers = {
    valuesMin: 1,
    holding: () => [
      { node: 'a', peer: null },
      ...['b', 'c', 'd'].map((node) => ({ node, peer: peerOf(node) })),
    ],
    keeping(_, first) {
      if (keepers === null) return null;
      if (!placeOf.has(first)) placeOf.set(first, placeOf.size);
      return keepers[placeOf.get(first)! % keepers.length]!;
    },
  };

  function countingEngine(): Engine {
    const engine = createReferenceEngine({ pool: createInlinePool() });
    const search: Engine['search'] = (queries, options) => {
      localSearchCount++;
      for (const { rows, rowCount } of queries.flatMap(({ views }) => views)) {
        localRowCount += rows === null ? rowCount : countBitsBetween(rows, 0, rowCount);
      }
      return engine.search(queries, options);
    };
    return { ...engine, search };
  }

  before(async () => {
    const state = createMemoryState();
    const limits = { segmentRowsMax: SEGMENT_ROWS };
    const random = createRandom(1);
    const writer = await openDatabase({ state, limits });
    const vectors = { '': { ...dense(DIMENSION), metric: 'dot' as const } };
    await writer.createCollection({ id: 'c', vectors, description: null, labels: {} });
    for (let segment = 0; segment < SEGMENT_COUNT; segment++) {
      const rows = Array.from({ length: SEGMENT_ROWS }, (_, row) => ({
        id: `${segment}-${row}`,
        values: Array.from({ length: DIMENSION }, () => Math.round(8 * random()) - 4),
        metadata: '{}',
      }));
      await writer.collection('c').write(batchOf(rows), { mode: 'upsert' });
    }
    await writer.close();
    here = await openDatabase({ state, limits, peers, engine: countingEngine() });
    others = await openDatabase({ state, limits });
  });
  after(async () => {
    // The last test has restored the clock.
    syncBuiltinESMExports();
    await here.close();
    await others.close();
    await (await import('node:timers/promises')).setTimeout(5);
  });
  beforeEach(() => {
    [localRowCount, localSearchCount, asked, outcomes] = [0, 0, [], {}];
  });

  /** Also mocks the function that the search has imported. */
  function mockTimers(t: TestContext): void {
    mockClock(t);
    syncBuiltinESMExports();
  }

  const search = (signal?: AbortSignal) => here.collection('c').query(QUERY, signal && { signal });

  /** Expects the reply of one node, for which all rows were searched once. */
  async function expectReply(found: ReturnType<typeof search>): Promise<void> {
    const { matches, work } = await found;
    const expected = await others.collection('c').query(QUERY);
    assert.deepEqual(matches, expected.matches);
    assert.equal(work.rowsScanned, SEGMENT_COUNT * SEGMENT_ROWS);
  }

  const rangesOf = (node: string, nth: number) =>
    asked.filter((each) => each.node === node)[nth]?.ranges;

  it('asks nodes for segments that they keep', async (t) => {
    mockTimers(t);
    keepers = [['b', 'c']];
    await expectReply(search());
    assert.equal(localRowCount, 0);
    assert.deepEqual(rangesOf('d', 0), []);
  });

  it('asks the next keeper when the first has failed, and reads nothing itself', async (t) => {
    mockTimers(t);
    keepers = [['b', 'c']];
    outcomes = { b: ['failure'] };
    await expectReply(search());
    assert.equal(localRowCount, 0);
    assert.deepEqual(rangesOf('c', 1), rangesOf('b', 0));
    assert.deepEqual(
      asked.map(({ node }) => node),
      ['b', 'c', 'd', 'c'],
    );
  });

  it('asks the next keeper when the first is late', async (t) => {
    mockTimers(t);
    keepers = [['b', 'c']];
    outcomes = { b: ['silence'] };
    const found = search();
    await turns();
    t.mock.timers.tick(LATE_MS);
    await expectReply(found);
    assert.equal(localRowCount, 0);
    assert.deepEqual(rangesOf('c', 1), rangesOf('b', 0));
  });

  it('searches the rows itself whose keepers have all failed', async (t) => {
    mockTimers(t);
    keepers = [['b', 'c'], ['c', 'd'], ['d']];
    for (const failed of [
      { b: ['failure'], c: ['failure'] },
      { b: ['failure'], c: ['reply', 'failure'] },
      { d: ['failure'] },
      { b: ['failure'], c: ['failure'], d: ['failure'] },
    ] satisfies (typeof outcomes)[]) {
      [localRowCount, asked, outcomes] = [0, [], failed];
      await expectReply(search());
      assert.ok(localRowCount > 0, JSON.stringify(failed));
    }
    assert.equal(localRowCount, SEGMENT_COUNT * SEGMENT_ROWS);
  });

  it('waits for the second answer as long as for the first', async (t) => {
    mockTimers(t);
    keepers = [['b', 'c']];
    outcomes = { b: ['failure'], c: ['reply', 'silence'] };
    const found = search();
    await turns();
    t.mock.timers.tick(LATE_MS);
    await expectReply(found);
    assert.ok(localRowCount > 0);
    assert.equal(asked.length, 4);
  });

  it('ends when it is cancelled, in both rounds', async (t) => {
    mockTimers(t);
    keepers = [['b', 'c']];
    for (const [nodes, askedCount] of [
      [{ b: ['silence'] }, 3],
      [{ b: ['failure'], c: ['reply', 'silence'] }, 4],
    ] satisfies [typeof outcomes, number][]) {
      [localRowCount, asked, outcomes] = [0, [], nodes];
      const controller = new AbortController();
      const found = search(controller.signal);
      await turns();
      controller.abort(new Error('cancelled by the test'));
      await assert.rejects(found, /cancelled by the test/);
      assert.equal(asked.length, askedCount);
      assert.equal(localRowCount, 0);
    }
  });

  it('searches the rows of a failed node itself when all nodes keep all', async (t) => {
    mockTimers(t);
    keepers = null;
    outcomes = { b: ['failure'] };
    await expectReply(search());
    assert.equal(asked.length, 3);
    assert.equal(localSearchCount, 2);
  });
});

/** Lets searches in memory come to their end. */
async function turns(): Promise<void> {
  for (let i = 0; i < 100; i++) await turn();
}
