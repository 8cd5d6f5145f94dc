// Queries that several nodes answer together: the replies are those of one node alone, to the bit, whatever the
// segments of each node are, whichever nodes fail, and while writes go on.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { VectorBatch } from '../../src/common/types.js';
import type { QueryReply, QueryRequest } from '../../src/database/api/query-api.js';
import type {
  PeerCountRequest,
  PeerSearchRequest,
  Peers,
} from '../../src/database/search/peers.js';
import { createMetrics } from '../../src/platform/metrics.js';
import type { ClusterMember } from '../../src/server/cluster/cluster.js';
import {
  decodePart,
  encodeCounts,
  encodeHits,
  PeerSearches,
} from '../../src/server/cluster/peer-searches.js';
import type { NodeRequest, RequestForwarder } from '../../src/server/cluster/request-forwarder.js';
import { batchOf, createRandom, testSeed } from '../database/harness.js';
import { columnsOf, dense, multi } from '../vector-columns.js';
import { MemoryCluster, type TestNode } from './memory-cluster.js';

const DIMENSION = 4;
const TITLE_DIMENSION = 3;
const TOKEN_DIMENSION = 2;
const SPECS = { title: dense(TITLE_DIMENSION), tokens: multi(TOKEN_DIMENSION) };
/** Different for each node, so that their segments differ. */
const SEGMENT_ROWS = new Map([
  ['n1', 64],
  ['n2', 23],
  ['n3', 300],
]);
/** The fate of a request to another node. */
type Outcome = 'reply' | 'failure' | 'silence';

describe('a query that several nodes answer', () => {
  const seed = testSeed();
  const random = createRandom(seed);
  const integer = (below: number) => Math.floor(random() * below);
  const vector = (length = DIMENSION) => {
    const values = Float32Array.from({ length }, () => integer(5) - 2);
    if (values.every((value) => value === 0)) values[0] = 1;
    return values;
  };
  let cluster: MemoryCluster;
  let asked: (PeerSearchRequest | PeerCountRequest)[] = [];
  /** The other nodes, whose names have those of the answering nodes as prefixes. */
  let others = new Map<string, Outcome>();
  let writer: TestNode;
  let node: TestNode;

  const answerFor = async (name: string, body: string, signal: AbortSignal) => {
    const part = decodePart(JSON.parse(body));
    asked.push(part);
    const { database } = cluster.nodes.find((other) => name.startsWith(other.name))!;
    return part.kind === 'count'
      ? encodeCounts(await database.countForPeer(part, signal))
      : encodeHits(await database.searchForPeer(part, signal));
  };
  /** Requests between nodes without a network. */
  const forwardingOf = (self: string) => {
    const memberOf = (name: string) => ({ node: name, instance: `${name}/1`, version: '1' });
    let turn = 0;
    return {
      cluster: { self: memberOf(self), keepersOf: () => null },
      // A node that has failed is asked again by the next search.
      peers: { isAvoided: () => false, requestFailed() {} },
      replicasOf() {
        const names = [...others.keys()];
        const first = turn++ % Math.max(1, names.length);
        return [...names.slice(first), ...names.slice(0, first)].map(memberOf);
      },
      async ask({ node: name }: ClusterMember, { body }: NodeRequest, signal: AbortSignal) {
        const outcome = others.get(name)!;
        if (outcome === 'failure') return { status: 503, text: 'a failure for the test' };
        if (outcome === 'reply') return { status: 200, text: await answerFor(name, body!, signal) };
        return await new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        });
      },
    } as unknown as RequestForwarder;
  };
  const peersOf = (self: string): Peers =>
    new PeerSearches({ forwarder: forwardingOf(self), metrics: createMetrics(), valuesMin: 1 });
  const all = (...names: string[]) =>
    new Map<string, Outcome>(names.map((name) => [name, 'reply']));

  const rowsOf = (ids: readonly string[]): VectorBatch => {
    const isOfOneGroup = integer(4) > 0;
    const rows = ids.map((id) => ({
      id,
      values: [...vector()],
      metadata: JSON.stringify({
        team: `t${integer(4)}`,
        n: integer(100),
        group: isOfOneGroup ? 0 : integer(10),
      }),
    }));
    const vectors = ids.map(() => {
      const tokens = Array.from({ length: integer(4) }, () => [...vector(TOKEN_DIMENSION)]);
      return {
        title: integer(4) > 0 ? vector(TITLE_DIMENSION) : undefined,
        tokens: tokens.length === 0 ? undefined : tokens.flat(),
      };
    });
    return batchOf(rows, columnsOf(SPECS, vectors));
  };

  const writeSome = async () => {
    const collection = writer.database.collection('c');
    for (let i = 0; i < 12; i++) {
      const ids = new Set(Array.from({ length: 1 + integer(60) }, () => `v${integer(700)}`));
      await collection.write(rowsOf([...ids]), { mode: 'upsert' });
      const gone = Array.from({ length: integer(10) }, () => `v${integer(700)}`);
      await collection.delete({ kind: 'ids', ids: gone }, { dryRun: false });
    }
    await cluster.settle();
  };

  const requests = (): QueryRequest[] => {
    const filter = integer(2) === 0 ? { team: `t${integer(4)}` } : { n: { $lt: 20 + integer(80) } };
    const metric = (['dot', 'euclidean', 'cosine'] as const)[integer(3)]!;
    const base = { vector: vector(), metric, includeMetadata: true };
    const recommend = {
      positive: [vector(), vector()],
      negative: [vector()],
      includeExamples: true,
    };
    const tokens = {
      using: 'tokens',
      multiVector: [vector(TOKEN_DIMENSION), vector(TOKEN_DIMENSION)],
    };
    const title = { using: 'title', vector: vector(TITLE_DIMENSION) };
    const part = { vector: vector(), weight: 1 };
    const rrf = { kind: 'rrf', rankConstant: 60, normalize: 'max' } as const;
    const parts = [part, { ...title, weight: 0.5 + random(), filter }, { ...tokens, weight: 2 }];
    return [
      { ...base, topK: 1 + integer(200) },
      { ...base, topK: 1 + integer(50), filter },
      { ...base, topK: 30, offset: integer(20), limit: 7 },
      { ...base, scoreThreshold: 0.2, limit: 50 },
      { ...base, topK: 20, sort: [{ field: 'n', order: 'desc' }] },
      { ...base, topK: 5, groupBy: 'team', groupSize: 3 },
      // One of the groups has most of the rows and its own segments, so that later searches have fewer segments.
      { ...base, topK: 10, groupBy: 'group', groupSize: 3 },
      { ...base, topK: 8, diversity: { lambda: 0.5 }, filter },
      { id: `v${integer(700)}`, topK: 10 },
      { ...title, topK: 10, filter },
      { ...tokens, topK: 1 + integer(30) },
      { ...tokens, filter, topK: 10, groupBy: 'group', groupSize: 5 },
      { recommend: { ...recommend, strategy: 'best_score' }, topK: 12 },
      { recommend: { ...recommend, strategy: 'sum_scores' }, topK: 12, filter },
      { fusion: { ...rrf, parts }, topK: 15 },
      { fusion: { ...rrf, rankConstant: 1, parts }, topK: 15, filter },
      {
        fusion: { ...rrf, kind: 'weighted', parts: [{ ...part, limit: 20 }, ...parts] },
        topK: 15,
      },
      { ...base, topK: 10, prefetch: { ...tokens, limit: 50 } },
      { ...title, topK: 10, prefetch: { fusion: { ...rrf, parts }, limit: 40 }, filter },
    ];
  };
  const answer = (request: QueryRequest) =>
    node.database
      .collection('c')
      .query(request)
      .then(visible, (error: { code: string }) => error.code);
  const visible = ({ matches, total, hasMore, sequence }: QueryReply) => {
    return { matches, total, hasMore, sequence };
  };
  /** The result of a single node. */
  const alone = async <Found>(ask: () => Promise<Found>): Promise<Found> => {
    const known = others;
    others = new Map();
    try {
      return await ask();
    } finally {
      others = known;
    }
  };

  const searchForPeer = (part: PeerSearchRequest | PeerCountRequest) => {
    assert.equal(part.kind, 'search');
    return node.database.searchForPeer(part as PeerSearchRequest, AbortSignal.timeout(60_000));
  };

  before(async () => {
    cluster = new MemoryCluster({ retentionMs: 60_000 });
    await Promise.all(
      [...SEGMENT_ROWS].map(([name, segmentRowsMax]) =>
        cluster.add(name, { limits: { segmentRowsMax }, peers: peersOf(name) }),
      ),
    );
    writer = await cluster.leader();
    await writer.database.createCollection({
      id: 'c',
      vectors: {
        '': { ...dense(DIMENSION), metric: 'dot' },
        title: { ...SPECS.title, metric: 'cosine' },
        tokens: { ...SPECS.tokens, metric: 'dot' },
      },
      description: null,
      labels: {},
    });
    await writeSome();
    node = cluster.nodes.find(({ name }) => name === 'n1')!;
  });
  after(() => cluster.stop());

  for (const [what, nodes] of [
    ['two others', all('n2', 'n3')],
    ['one that fails', all('n2', 'n3').set('n2', 'failure')],
    ['one that does not answer', all('n2', 'n3').set('n3', 'silence')],
    ['more nodes than segments', all(...Array.from({ length: 40 }, (_, i) => `n2-${i}`))],
  ] as const) {
    it(`has the reply of one, with ${what} (seed ${seed})`, async () => {
      for (let round = 0; round < 3; round++) {
        if (what !== 'one that does not answer') await writeSome();
        for (const request of requests()) {
          others = nodes;
          asked = [];
          const found = await answer(request);
          assert.deepEqual(found, await alone(() => answer(request)), JSON.stringify(request));
          assert.ok(typeof found !== 'string' || request.id !== undefined, found as string);
          if (!what.startsWith('one'))
            assert.ok(asked.length > 0 || typeof found === 'string', JSON.stringify(request));
        }
      }
    });
  }

  it(`has the join and the recall of one (seed ${seed})`, async () => {
    others = all('n2', 'n3');
    asked = [];
    const collection = node.database.collection('c');
    const join = async (request: object) => {
      const joined = await collection.join({ topK: 5, excludeSelf: true, ...request });
      const chunks: unknown[] = [];
      for await (const chunk of joined.chunks()) chunks.push(chunk);
      return chunks;
    };
    const filter = { n: { $lt: 50 } };
    for (const request of [
      {},
      { withFilter: filter },
      { using: 'title', withUsing: 'title', filter },
    ]) {
      const askedCount = asked.length;
      assert.deepEqual(await join(request), await alone(() => join(request)));
      assert.ok(asked.length > askedCount, JSON.stringify(request));
    }
    const pairs = { topK: undefined, scoreThreshold: 1, unorderedPairs: true };
    assert.deepEqual(await join(pairs), await alone(() => join(pairs)));
    const recall = async () => {
      const vectors = [vector(), vector()];
      const found = await Promise.all(
        vectors.map((each) => collection.query({ vector: each, topK: 12, filter })),
      );
      const ids = found.map(({ matches }) => matches.map(({ id }) => id));
      return (await collection.recall({ vectors, ids, filter })).recalls;
    };
    const askedCount = asked.length;
    assert.deepEqual(await recall(), [1, 1]);
    assert.ok(asked.length > askedCount);
  });

  it(`has the pages of one snapshot while writes go on (seed ${seed})`, async () => {
    others = all('n2', 'n3');
    const request = { vector: Float32Array.of(1, 2, -1, 0), limit: 150, scoreThreshold: -100 };
    const collection = node.database.collection('c');
    const first = await collection.query(request);
    const { total } = first;
    const ids = first.matches.map(({ id }) => id);
    const expected = (await alone(() =>
      answer({ ...request, limit: 500, topK: 500 }),
    )) as QueryReply;
    for (let { nextCursor } = first; nextCursor !== undefined; ) {
      await writeSome();
      const page = await collection.query({ cursor: nextCursor });
      assert.equal(page.sequence, first.sequence);
      ids.push(...page.matches.map(({ id }) => id));
      nextCursor = page.nextCursor;
    }
    assert.equal(ids.length, total);
    assert.deepEqual(
      ids.slice(0, 500),
      expected.matches.map(({ id }) => id),
    );
  });

  it('gives every node about as many rows', async () => {
    others = all('n2', 'n3');
    asked = [];
    const { work, total } = await node.database
      .collection('c')
      .query({ vector: Float32Array.of(1, 0, 0, 0), topK: 3 });
    assert.equal(work.rowsScanned, total);
    assert.equal(asked.length, 2);
    for (const part of asked) {
      const [found] = await searchForPeer(part);
      const share = found!.scannedCount / total!;
      assert.ok(share > 0.1 && share < 0.6, `a share of ${share}`);
    }
  });

  it('has a node search about the same rows whichever node is asked', async () => {
    const request = { vector: Float32Array.of(1, 0, 0, 0), topK: 3 };
    const parts: PeerSearchRequest[] = [];
    for (const [name, nodes] of [
      ['n1', all('n2', 'n3').set('n2', 'failure')],
      ['n2', all('n1', 'n3').set('n1', 'failure')],
    ] as const) {
      others = nodes;
      asked = [];
      const { database } = cluster.nodes.find((other) => other.name === name)!;
      await database.collection('c').query(request);
      // Of n3, for both.
      assert.equal(asked.length, 1);
      parts.push(asked[0] as PeerSearchRequest);
    }
    const [first, second] = parts as [PeerSearchRequest, PeerSearchRequest];
    const countIn = async ({ ranges }: Pick<PeerSearchRequest, 'ranges'>) => {
      const [found] = await searchForPeer({ ...first, ranges });
      return found!.scannedCount;
    };
    const [a, b] = [first.ranges[0]!, second.ranges[0]!];
    const common = { ranges: [{ from: Math.max(a.from, b.from), to: Math.min(a.to, b.to) }] };
    const share = (await countIn(common)) / Math.max(await countIn(first), await countIn(second));
    assert.ok(share > 0.6, `they have ${share} in common`);
  });

  it('is not shared if it would find too much, or does not rank by vectors', async () => {
    others = all('n2', 'n3');
    asked = [];
    await answer({ vector: vector(), topK: 10_000 });
    assert.equal(asked.length, 0);
  });
});
