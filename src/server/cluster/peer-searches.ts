// The transport of scattered searches (database/search/scattered-search.ts): internal requests between nodes.
// Numbers that decide the order of rows are sent as bytes.

import { OPERATOR } from '../../common/access.js';
import { stringifyExactJson } from '../../common/exact-json.js';
import type { RankKey } from '../../common/rank-key.js';
import {
  type Holder,
  PEER_TIMEOUT,
  type Peer,
  type PeerCountRequest,
  type PeerHits,
  type PeerQuery,
  type PeerSearchRequest,
  type Peers,
} from '../../database/search/peers.js';
import type { Metrics } from '../../platform/metrics.js';
import { STATUS_OF_CODE } from '../wire/problem.js';
import type { ClusterMember } from './cluster.js';
import type { RequestForwarder } from './request-forwarder.js';

/** The path changes with the format of requests and replies, so that a node of another version refuses them. */
export const SEARCH_PATH = '/cluster/parts';

type PartRequest = PeerSearchRequest | PeerCountRequest;

interface EncodedRankKey {
  readonly score: string;
  readonly id: string;
}

type Ranking = PeerQuery['ranking'];

type EncodedRanking = Omit<Ranking, 'vector'> & { readonly vector: string };

type EncodedCount = Omit<PeerCountRequest, 'query' | 'rankKeys'> & {
  readonly query: Omit<PeerCountRequest['query'], 'ranking'> & { readonly ranking: EncodedRanking };
  readonly rankKeys: readonly EncodedRankKey[];
};

type EncodedSearch = Omit<PeerSearchRequest, 'queries'> & {
  readonly queries: readonly (Omit<PeerQuery, 'ranking' | 'after'> & {
    readonly ranking: EncodedRanking;
    readonly after: EncodedRankKey | null;
  })[];
};

type EncodedHits = Omit<PeerHits, 'scores'> & { readonly scores: string };

export class PeerSearches implements Peers {
  readonly valuesMin: number;
  readonly #forwarder: RequestForwarder;
  readonly #count: ReturnType<Metrics['addCounter']>;

  constructor(options: {
    readonly forwarder: RequestForwarder;
    readonly metrics: Metrics;
    readonly valuesMin: number;
  }) {
    this.#forwarder = options.forwarder;
    this.valuesMin = options.valuesMin;
    this.#count = options.metrics.addCounter('sagitta_cluster_search_parts_total');
  }

  keeping(incarnation: string, homeKey: string): readonly string[] | null {
    return this.#forwarder.cluster.keepersOf(incarnation, homeKey);
  }

  holding(incarnation: string): readonly Holder[] {
    const { cluster, peers } = this.#forwarder;
    const { self } = cluster;
    const others = this.#forwarder
      .replicasOf([incarnation])
      .filter((member) => member.version === self.version && !peers.isAvoided(member));
    // In the order of their names, which do not change at a restart.
    return [self, ...others]
      .sort((a, b) => (a.node < b.node ? -1 : 1))
      .map((member) => ({
        node: member.node,
        peer: member === self ? null : this.#peer(member),
      }));
  }

  #peer(member: ClusterMember): Peer {
    return {
      search: async (part, signal) => decodeHits(await this.#ask(member, part, signal)),
      count: async (part, signal) => decodeCounts(await this.#ask(member, part, signal)),
    };
  }

  async #ask(member: ClusterMember, part: PartRequest, signal: AbortSignal): Promise<string> {
    const request = { method: 'POST', path: SEARCH_PATH, body: encodePart(part) } as const;
    let isSnapshotGone = false;
    try {
      const found = await this.#forwarder.ask(member, { ...request, principal: OPERATOR }, signal);
      isSnapshotGone = found.status === STATUS_OF_CODE.cursor_expired;
      if (found.status !== 200) throw new Error(`${member.node} replied: ${found.text}`);
      this.#count(1, { outcome: 'found' });
      return found.text;
    } catch (error) {
      // After any other abort, the client no longer waits for the query.
      if (!signal.aborted || signal.reason === PEER_TIMEOUT) {
        this.#count(1, { outcome: 'failed' });
        // A node without the snapshot still answers for newer ones.
        if (!isSnapshotGone) this.#forwarder.peers.requestFailed(member);
      }
      throw error;
    }
  }
}

/** With the elements of vectors and the scores of positions as bytes. */
function encodePart(part: PartRequest): string {
  if (part.kind === 'count') {
    const { query, rankKeys } = part;
    return stringifyExactJson({
      ...part,
      query: { ...query, ranking: encodeRanking(query.ranking) },
      rankKeys: rankKeys.map(encodeRankKey),
    });
  }
  const queries = part.queries.map(({ ranking, after, ...query }) => ({
    ...query,
    ranking: encodeRanking(ranking),
    after: after && encodeRankKey(after),
  }));
  return stringifyExactJson({ ...part, queries });
}

/** The inverse of `encodePart`. */
export function decodePart(body: Readonly<Record<string, unknown>>): PartRequest {
  if (body.kind === 'count') {
    const { query, rankKeys, ...rest } = body as unknown as EncodedCount;
    return {
      ...rest,
      query: { ...query, ranking: decodeRanking(query.ranking) },
      rankKeys: rankKeys.map(decodeRankKey),
    };
  }
  const { queries, ...rest } = body as unknown as EncodedSearch;
  return {
    ...rest,
    queries: queries.map(({ ranking, after, ...query }) => ({
      ...query,
      ranking: decodeRanking(ranking),
      after: after && decodeRankKey(after),
    })),
  };
}

function encodeRanking(ranking: Ranking): EncodedRanking {
  return { ...ranking, vector: toBase64(ranking.vector) };
}

function decodeRanking(ranking: EncodedRanking): Ranking {
  return { ...ranking, vector: new Float32Array(fromBase64(ranking.vector)) };
}

function encodeRankKey({ score, id }: RankKey): EncodedRankKey {
  return { score: toBase64(Float64Array.of(score)), id: Buffer.from(id).toString('base64') };
}

function decodeRankKey({ score, id }: EncodedRankKey): RankKey {
  return { score: new Float64Array(fromBase64(score))[0]!, id: Buffer.from(id, 'base64') };
}

export function encodeHits(hits: readonly PeerHits[]): string {
  return JSON.stringify(
    hits.map(({ scores, ...rest }): EncodedHits => ({ ...rest, scores: toBase64(scores) })),
  );
}

function decodeHits(text: string): readonly PeerHits[] {
  return (JSON.parse(text) as readonly EncodedHits[]).map(({ scores, ...rest }) => ({
    ...rest,
    scores: new Float64Array(fromBase64(scores)),
  }));
}

export function encodeCounts(counts: Float64Array): string {
  return JSON.stringify([...counts]);
}

function decodeCounts(text: string): Float64Array {
  return Float64Array.from(JSON.parse(text) as readonly number[]);
}

function toBase64({ buffer, byteOffset, byteLength }: Float32Array | Float64Array): string {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength).toString('base64');
}

/** In a new buffer, so that the numbers are aligned. */
function fromBase64(text: string): ArrayBuffer {
  return Uint8Array.from(Buffer.from(text, 'base64')).buffer;
}
