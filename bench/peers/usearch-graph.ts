// HNSW in usearch, float32, built and searched with all threads.

import { join } from 'node:path';
import { chooseEf, GRAPH } from './graph.js';
import { measure, type PeerAnswer, readData, readRequest, reply, splitKeys } from './peer.js';
import { type Graph, usearch, version } from './usearch.js';

const request = readRequest();
const { rows, queries } = readData(request);
const { folder, rowCount, queryCount, dimension, k, threadCount, cases } = request;

const indexFile = join(folder, 'usearch.index');
const startedAt = performance.now();
const built = createGraph(k);
built.add(
  BigUint64Array.from({ length: rowCount }, (_, row) => BigInt(row)),
  rows,
  threadCount,
);
const buildSeconds = ((performance.now() - startedAt) / 1000).toFixed(1);
// The search width is fixed when a graph is created, so each width loads the graph again.
built.save(indexFile);

let graph = built;
const search = (from: number, count: number) => {
  const batch = queries.subarray(from * dimension, (from + count) * dimension);
  return graph.search(batch, k, threadCount).keys;
};
const ef = chooseEf(cases[0]!, (width) => {
  graph = createGraph(width);
  graph.load(indexFile);
  return splitKeys(search(0, queryCount), queryCount);
});
const answers: PeerAnswer[] = [];
for (const peerCase of cases) {
  const answer = await measure(request, peerCase, search, splitKeys);
  const note = `ef = ${ef}, ${threadCount} threads, built in ${buildSeconds} s`;
  answers.push({ ...answer, note });
}
reply({ version, answers });

function createGraph(width: number): Graph {
  return new usearch.Index({
    dimensions: dimension,
    metric: 'ip',
    quantization: 'f32',
    connectivity: GRAPH.connectivity,
    expansion_add: GRAPH.efConstruction,
    expansion_search: width,
    multi: false,
  });
}
