// HNSW in hnswlib-node. Its API takes one vector per call, as an array of numbers, on the calling thread,
// so a batch is a loop.

import { chooseEf, GRAPH } from './graph.js';
import { loadPackage, measure, type PeerAnswer, readData, readRequest, reply } from './peer.js';

interface Graph {
  initIndex(options: { maxElements: number; m: number; efConstruction: number }): void;
  addPoint(point: number[], label: number): void;
  setEf(ef: number): void;
  searchKnn(point: number[], k: number): { neighbors: number[] };
}

interface Hnswlib {
  readonly HierarchicalNSW: new (space: 'ip', dimension: number) => Graph;
}

const request = readRequest();
const { rows, queries } = readData(request);
const { rowCount, queryCount, dimension, k, cases } = request;
const { module: hnswlib, version } = loadPackage<Hnswlib>('hnswlib-node');

const startedAt = performance.now();
const graph = new hnswlib.HierarchicalNSW('ip', dimension);
const { connectivity: m, efConstruction } = GRAPH;
graph.initIndex({ maxElements: rowCount, m, efConstruction });
for (let row = 0; row < rowCount; row++) graph.addPoint(pointOf(rows, row), row);
const buildSeconds = ((performance.now() - startedAt) / 1000).toFixed(1);

const points = Array.from({ length: queryCount }, (_, query) => pointOf(queries, query));
const search = (from: number, count: number) =>
  points.slice(from, from + count).map((point) => graph.searchKnn(point, k).neighbors);
const ef = chooseEf(cases[0]!, (width) => {
  graph.setEf(width);
  return search(0, queryCount);
});
const answers: PeerAnswer[] = [];
for (const peerCase of cases) {
  const answer = await measure(request, peerCase, search, (found) => found);
  answers.push({ ...answer, note: `ef = ${ef}, 1 thread, built in ${buildSeconds} s` });
}
reply({ version, answers });

function pointOf(vectors: Float32Array, index: number): number[] {
  return Array.from(vectors.subarray(index * dimension, (index + 1) * dimension));
}
