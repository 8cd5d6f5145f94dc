// Other libraries (peers) on the same data in the same run, each in its own child process, one after
// another, while the engine is idle. Their results are compared with the engine's, which were checked
// against brute force.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Metric } from '../../src/common/types.js';
import type { Engine } from '../../src/engine/core/engine.js';
import type { PeerAnswer, PeerReply, PeerRequest } from '../peers/peer.js';
import { matchesOf } from './check.js';
import type { DataSet } from './data.js';
import { ROOT, THREAD_COUNT } from './machine.js';
import type { DataName, Options } from './options.js';
import type { CaseResult } from './run-case.js';
import type { Timing } from './timing.js';

/** Timeout of a peer; building a graph over 100 000 wide rows takes minutes. */
const PEER_MS_MAX = 45 * 60_000;
/** Limit of the longest reply: a thousand queries, ten rows each, as JSON. */
const REPLY_BYTES_MAX = 64 * 1024 * 1024;
const K = 10;
/** Float32 sums may swap nearly equal neighbours; an exhaustive peer below this is wrong. */
const EXHAUSTIVE_RECALL_MIN = 0.99;

interface Peer {
  readonly name: string;
  readonly program: 'node' | 'python';
  readonly file: string;
  /** Path below build/peers that exists when the peer is installed. */
  readonly installed: string;
  readonly kind: 'exhaustive' | 'graph';
  readonly metrics: readonly Metric[];
  readonly data: readonly DataName[];
}

const PEERS: readonly Peer[] = [
  {
    name: 'onnxruntime-node, MatMul + TopK',
    program: 'node',
    file: 'onnxruntime.js',
    installed: 'node_modules/onnxruntime-node',
    kind: 'exhaustive',
    metrics: ['cosine'],
    data: ['sentences', 'clusters', 'long clusters'],
  },
  {
    name: 'FAISS, IndexFlat',
    program: 'python',
    file: 'faiss_flat.py',
    installed: 'venv/bin/python',
    kind: 'exhaustive',
    metrics: ['cosine', 'euclidean'],
    data: ['sentences', 'mixed sentences', 'clusters', 'long clusters'],
  },
  {
    name: 'usearch, exact search',
    program: 'node',
    file: 'usearch-exact.js',
    installed: 'node_modules/usearch',
    kind: 'exhaustive',
    metrics: ['cosine'],
    data: ['clusters'],
  },
  {
    name: 'usearch, HNSW',
    program: 'node',
    file: 'usearch-graph.js',
    installed: 'node_modules/usearch',
    kind: 'graph',
    metrics: ['cosine'],
    data: ['sentences', 'clusters'],
  },
  {
    name: 'hnswlib-node, HNSW',
    program: 'node',
    file: 'hnswlib.js',
    installed: 'node_modules/hnswlib-node/build',
    kind: 'graph',
    metrics: ['cosine'],
    data: ['sentences', 'clusters'],
  },
];

export interface PeerResult {
  readonly peer: string;
  readonly kind: Peer['kind'];
  readonly caseName: string;
  readonly outcome:
    | {
        readonly timing: Timing;
        /** The engine's queries/s divided by the peer's. */
        readonly ratio: number;
        readonly recall: number;
        readonly comparedCount: number;
        readonly note: string;
      }
    | { readonly failure: string };
}

/** Runs the peers that support the data on the cases that the engine has just completed on it. */
export async function runPeers(
  engine: Engine,
  data: DataSet,
  results: readonly CaseResult[],
  options: Options,
  betweenPeers: () => Promise<void>,
): Promise<PeerResult[]> {
  const comparable = results.filter(({ benchCase }) => isComparable(benchCase, data.name));
  const peers = PEERS.filter(
    ({ kind, data: names }) =>
      names.includes(data.name) && (kind !== 'graph' || options.hasGraphPeers),
  );
  if (comparable.length === 0 || peers.length === 0) return [];
  const truths = await findTruths(engine, data, comparable);
  const folder = await mkdtemp(join(tmpdir(), 'sagitta-peers-'));
  const found: PeerResult[] = [];
  try {
    await writeVectors(
      join(folder, 'rows.f32'),
      data.blocks.map(({ values }) => values),
    );
    await writeVectors(join(folder, 'queries.f32'), data.queries);
    for (const peer of peers) {
      const own = comparable.filter(({ benchCase }) => peer.metrics.includes(benchCase.metric));
      if (own.length === 0) continue;
      console.error(`peer: ${peer.name}, ${data.name} ${data.rowCount} × ${data.dimension}`);
      const request = requestOf(folder, data, options, own, truths);
      found.push(...compare(peer, own, await runPeer(peer, request), truths));
      await betweenPeers();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return found;
}

function requestOf(
  folder: string,
  { rowCount, dimension, queries }: DataSet,
  { parameters }: Options,
  results: readonly CaseResult[],
  truths: ReadonlyMap<Metric, number[][]>,
): PeerRequest {
  const { roundQueriesMin, roundsMin, secondsMin } = parameters;
  return {
    folder,
    rowCount,
    dimension,
    queryCount: queries.length,
    k: K,
    threadCount: THREAD_COUNT,
    roundQueriesMin,
    roundsMin,
    secondsMin,
    cases: results.map(({ benchCase: { name, metric, batchCount } }) => {
      return { name, metric, batchCount, truth: truths.get(metric)! };
    }),
  };
}

function isComparable(benchCase: CaseResult['benchCase'], data: DataName): boolean {
  const { passShare, joinScore, page, k } = benchCase;
  const isPlain = passShare === null && joinScore === null && page === 1 && k === K;
  return benchCase.data === data && isPlain && benchCase.metric !== 'dot';
}

/** Finds the engine's rows for every query, by metric. */
async function findTruths(
  engine: Engine,
  data: DataSet,
  results: readonly CaseResult[],
): Promise<Map<Metric, number[][]>> {
  const truths = new Map<Metric, number[][]>();
  for (const metric of new Set(results.map(({ benchCase }) => benchCase.metric))) {
    const plain = { metric, k: K, views: data.views, after: null, scoreMin: null };
    const hits = await engine.search(data.queries.map((vector) => ({ ...plain, vector })));
    truths.set(
      metric,
      hits.map((each) => matchesOf(each, data).map(({ row }) => row)),
    );
  }
  return truths;
}

async function runPeer(peer: Peer, request: PeerRequest): Promise<PeerReply | { failure: string }> {
  const requestFile = join(request.folder, 'request.json');
  await writeFile(requestFile, JSON.stringify(request));
  const installed = join(ROOT, 'build', 'peers', peer.installed);
  if (!existsSync(installed)) return { failure: 'not installed; see bench/peers/install' };
  // Compiled peers are next to this file; Python scripts run from the sources.
  const [command, file] =
    peer.program === 'python'
      ? [installed, join(ROOT, 'bench', 'peers', peer.file)]
      : [process.execPath, fileURLToPath(new URL(`../peers/${peer.file}`, import.meta.url))];
  try {
    const { stdout } = await promisify(execFile)(command, [file, requestFile], {
      timeout: PEER_MS_MAX,
      maxBuffer: REPLY_BYTES_MAX,
    });
    return JSON.parse(stdout.trim().split('\n').at(-1)!) as PeerReply;
  } catch (error) {
    return { failure: failureOf(error) };
  }
}

/** The last error line on stderr, where Node and Python print the cause. */
function failureOf(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string };
  const lines = (stderr ?? '').split('\n').filter((line) => line.trim() !== '');
  const cause = lines.findLast((line) => /Error|error/.test(line)) ?? lines.at(-1) ?? message;
  return cause.trim().replaceAll(ROOT, '').slice(0, 200);
}

function compare(
  peer: Peer,
  results: readonly CaseResult[],
  reply: PeerReply | { failure: string },
  truths: ReadonlyMap<Metric, number[][]>,
): PeerResult[] {
  return results.map(({ benchCase, timing }) => {
    const named = { peer: peer.name, kind: peer.kind, caseName: benchCase.name };
    if ('failure' in reply) return { ...named, outcome: { failure: reply.failure } };
    const answer = reply.answers.find(({ name }) => name === benchCase.name);
    if (answer === undefined) return { ...named, outcome: { failure: 'no result' } };
    const recall = recallOf(answer, truths.get(benchCase.metric)!);
    if (peer.kind === 'exhaustive' && recall < EXHAUSTIVE_RECALL_MIN) {
      const failure = `wrong results: recall ${recall.toFixed(4)}`;
      return { ...named, outcome: { failure } };
    }
    const outcome = {
      timing: answer.timing,
      ratio: timing.queriesPerSecond / answer.timing.queriesPerSecond,
      recall,
      comparedCount: answer.rows.length,
      note: `${reply.version}; ${answer.note}`,
    };
    return { ...named, outcome };
  });
}

function recallOf({ rows }: PeerAnswer, truth: readonly (readonly number[])[]): number {
  let foundCount = 0;
  let trueCount = 0;
  for (const [index, found] of rows.entries()) {
    foundCount += truth[index]!.filter((row) => found.includes(row)).length;
    trueCount += truth[index]!.length;
  }
  return foundCount / trueCount;
}

/** Writes the arrays one after another; copied, because the file API rejects shared memory. */
async function writeVectors(path: string, arrays: readonly Float32Array[]): Promise<void> {
  const file = await open(path, 'w');
  try {
    for (const array of arrays) {
      const copy = array.slice();
      await file.writeFile(new Uint8Array(copy.buffer, copy.byteOffset, copy.byteLength));
    }
  } finally {
    await file.close();
  }
}
