// A cluster with servers in this process, to which tests send rows in bulk.

import assert from 'node:assert/strict';
import { NDJSON } from '../../src/server/wire/media-types.js';
import { openDatabase } from '../database/harness.js';
import { MemoryCluster, type TestNode } from './memory-cluster.js';
import { ServedCluster } from './served-cluster.js';

const SEGMENT_ROWS = 64;
const LIMITS = { segmentRowsMax: SEGMENT_ROWS };
export const NODES = ['n1', 'n2', 'n3'];

interface Row {
  readonly id: string;
  readonly values: readonly number[];
  readonly metadata?: object;
  readonly expires_at?: string;
  readonly if_sequence?: number;
}

export const rowsOf = (ids: readonly number[], count = 0): Row[] =>
  ids.map((id) => ({ id: `v${id}`, values: [id, count], metadata: { count } }));

export const range = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => from + i);

export const linesOf = (rows: readonly unknown[]) =>
  rows.map((row) => JSON.stringify(row)).join('\n');

type Use = (served: ServedCluster) => Promise<void>;

/** `snapshotBytes`: bytes in a log after which a node takes a snapshot. */
export const start = (snapshotBytes?: number) =>
  ServedCluster.start(NODES, new MemoryCluster(LIMITS, {}, snapshotBytes));

/** Runs a test with collection `c`, created from `input`, which is deleted after the test. */
export async function withCollection(served: ServedCluster, input: object, use: Use) {
  const body = { id: 'c', dimension: 2, metric: 'dot', ...input };
  const created = await served.call('n1', 'POST', '/collections', { body });
  assert.equal(created.status, 200, created.text);
  try {
    await use(served);
  } finally {
    await served.call('n1', 'DELETE', '/collections/c');
  }
}

/** Runs a test with a cluster that ends whatever happens: otherwise a failure would keep the process running. */
export async function withCluster(options: { snapshotBytes?: number }, use: Use): Promise<void> {
  const served = await start(options.snapshotBytes);
  try {
    await withCollection(served, {}, use);
  } finally {
    await served.stop();
  }
}

export function send(served: ServedCluster, node: string, rows: readonly unknown[], query = '') {
  return served.call(node, 'POST', `/collections/c/vectors?bulk=true${query}`, {
    body: linesOf(rows),
    headers: { 'content-type': NDJSON },
  });
}

export async function rowsIn({ database }: Pick<TestNode, 'database'>) {
  const options = { limit: 1_000, includeValues: true };
  return (await database.collection('c').list(options)).vectors;
}

export async function assertSameRows({ cluster }: ServedCluster, count: number): Promise<void> {
  await cluster.settle();
  const [first, ...others] = await Promise.all(cluster.nodes.map(rowsIn));
  assert.equal(first!.length, count);
  for (const rows of others) assert.deepEqual(rows, first);
}

/** Asserts that each node would load the same rows from its store. */
export async function assertStored({ cluster }: ServedCluster): Promise<void> {
  await cluster.settle();
  for (const node of cluster.nodes) {
    const rows = await rowsIn(node);
    const state = cluster.stateOf(node.name);
    const database = await openDatabase({ state, limits: LIMITS });
    assert.deepEqual(await rowsIn({ database }), rows, node.name);
    await database.close();
  }
}

/** The numbers in the metadata of rows, by id. */
export const countsOf = (rows: Awaited<ReturnType<typeof rowsIn>>) =>
  new Map(rows.map(({ id, metadata }) => [id, JSON.parse(metadata as string).count as number]));
