// Exhaustive float32 search in usearch: the inner product of every query with every row.

import { measure, type PeerAnswer, readData, readRequest, reply, splitKeys } from './peer.js';
import { usearch, version } from './usearch.js';

const request = readRequest();
const { rows, queries } = readData(request);
const { dimension, k, threadCount, cases } = request;

const search = (from: number, count: number) => {
  // Copied, because the package ignores the array's offset into its buffer.
  const batch = queries.slice(from * dimension, (from + count) * dimension);
  return usearch.exactSearch(rows, batch, dimension, k, 'ip', threadCount).keys;
};
const answers: PeerAnswer[] = [];
for (const peerCase of cases) {
  const answer = await measure(request, peerCase, search, splitKeys);
  answers.push({ ...answer, note: `${threadCount} threads` });
}
reply({ version, answers });
