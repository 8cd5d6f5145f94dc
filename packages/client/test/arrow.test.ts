// Arrow uploads and downloads, against a scripted server.

import assert from 'node:assert/strict';
import { afterEach, it } from 'node:test';
import {
  type RecordBatch,
  RecordBatchReader,
  type Table,
  tableFromArrays,
  tableFromIPC,
  tableToIPC,
} from 'apache-arrow';
import {
  type ScriptedReply,
  type ScriptedServer,
  startScriptedServer,
} from '../../../test/support/scripted-server.js';
import {
  arrowStream,
  encodeBatches,
  exportBatches,
  joinBatches,
  queryBatches,
  writeBatches,
} from '../src/arrow.js';
import { createClient, type Vectors } from '../src/client.js';

let server: ScriptedServer | undefined;

async function start(replies: readonly ScriptedReply[]): Promise<Vectors> {
  server = await startScriptedServer(replies);
  const retry = { delayMsBase: 1 };
  return createClient({ baseUrl: server.url, retry }).collection('docs');
}

afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function tableOf(bytes: AsyncIterable<Uint8Array>): Promise<Table> {
  return tableFromIPC(bytes);
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const TABLE = tableFromArrays({ id: ['a', 'b', 'c'], n: new Int32Array([1, 2, 3]) });
const idsOf = (batches: readonly RecordBatch[]) =>
  batches.flatMap((batch) => [...batch.getChild('id')!].map(String));

it('columns become an Arrow stream that can be opened repeatedly', async () => {
  const open = arrowStream({
    values: Float32Array.of(1, 2, 3, 4, 5, 6),
    dimension: 2,
    ids: ['a', 'ü🐬', ''],
    metadata: [{ n: 1 }, undefined, { text: 'ö' }],
  });
  for (let at = 0; at < 2; at++) {
    const table = await tableOf(open());
    assert.deepEqual(
      table.schema.fields.map(({ name, type }) => `${name}: ${type}`),
      ['id: Utf8', 'values: FixedSizeList[2]<Float32>', 'metadata: Utf8'],
    );
    assert.deepEqual([...table.getChild('id')!], ['a', 'ü🐬', '']);
    assert.deepEqual([...table.getChild('metadata')!], ['{"n":1}', '{}', '{"text":"ö"}']);
    assert.deepEqual(
      [...table.getChild('values')!].map((row) => [...row]),
      [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
    );
  }
});

it('ids and metadata may be left out, and there may be no rows', async () => {
  const table = await tableOf(arrowStream({ values: new Float32Array(6), dimension: 3 })());
  assert.deepEqual([table.numRows, table.numCols], [2, 1]);
  const empty = await tableOf(arrowStream({ values: new Float32Array(0), dimension: 3 })());
  assert.deepEqual([empty.numRows, empty.numCols], [0, 1]);
});

it('columns are split into record batches without a copy', async () => {
  const count = 25_001;
  const values = new Float32Array(4 * count);
  const chunks = await collect(arrowStream({ values, dimension: 4 })());
  assert.equal(chunks.filter((chunk) => chunk.buffer === values.buffer).length, 3);
  const batches = await collect(await RecordBatchReader.from(asAsync(chunks)));
  assert.deepEqual(
    batches.map(({ numRows }) => numRows),
    [10_000, 10_000, 5_001],
  );
  const wide = await tableOf(
    arrowStream({ values: new Float32Array(9_000_000), dimension: 4_000 })(),
  );
  assert.deepEqual(
    wide.batches.map(({ numRows }) => numRows),
    [1_000, 1_000, 250],
  );
  const metadata = Array.from({ length: 500 }, () => ({ text: 'x'.repeat(20_000) }));
  const long = await tableOf(
    arrowStream({ values: new Float32Array(500), dimension: 1, metadata })(),
  );
  assert.deepEqual(
    long.batches.map(({ numRows }) => numRows),
    [399, 101],
  );
});

it('rejects columns of different lengths', () => {
  const values = new Float32Array(6);
  for (const columns of [
    { values, dimension: 4 },
    { values, dimension: 0 },
    { values, dimension: 2, ids: ['a'] },
    { values, dimension: 3, metadata: [{}] },
  ]) {
    assert.throws(() => arrowStream(columns), { code: 'invalid_argument' });
  }
});

it('writes tables, batches and columns, with retries where possible', async () => {
  const reply = { body: { upserted_count: 3 } };
  const lost = { isLost: true };
  const vectors = await start([lost, reply, lost, reply, lost, reply, reply]);
  await writeBatches(vectors, TABLE, { mode: 'insert', idColumn: 'id', vectorColumn: 'v' });
  await writeBatches(vectors, { values: new Float32Array(6), dimension: 2 });
  await writeBatches(vectors, () => TABLE.batches);
  await writeBatches(vectors, asAsync(TABLE.batches));
  const { requests } = server!;
  assert.equal(requests.length, 7);
  assert.equal(
    requests[1]!.url,
    '/v1/collections/docs/vectors?mode=insert&id_column=id&vector_column=v',
  );
  assert.equal(requests[1]!.headers['content-type'], 'application/vnd.apache.arrow.stream');
  assert.deepEqual(requests[0]!.bytes, requests[1]!.bytes);
  assert.equal(tableFromIPC(requests[1]!.bytes).numRows, 3);
  assert.equal(tableFromIPC(requests[6]!.bytes).numRows, 3);
});

it('a table without rows is a stream with a schema', async () => {
  const empty = TABLE.slice(0, 0);
  const table = await tableOf(encodeBatches(empty));
  assert.deepEqual([table.numRows, table.numCols], [0, 2]);
});

it('rejects batches of different schemas', async () => {
  const other = tableFromArrays({ id: ['a'] });
  const encoding = collect(encodeBatches([...TABLE.batches, ...other.batches]));
  await assert.rejects(encoding, { code: 'invalid_argument' });
});

it('matches, neighbours and exports are returned as record batches', async () => {
  const headers = { 'sagitta-sequence': '5' };
  const vectors = await start([{ headers, chunks: [tableToIPC(TABLE, 'stream')] }]);
  const queries = { values: new Float32Array(2), dimension: 2 };
  const answers = await collect(queryBatches(vectors, queries, { topK: 3 }));
  assert.deepEqual(idsOf(answers), ['a', 'b', 'c']);
  const neighbours = await collect(joinBatches(vectors, { topK: 3 }));
  assert.deepEqual(idsOf(neighbours), ['a', 'b', 'c']);
  const { batches, sequence } = await exportBatches(vectors, { includeMetadata: false });
  assert.equal(sequence, 5);
  assert.deepEqual(idsOf(await collect(batches)), ['a', 'b', 'c']);
  const { requests } = server!;
  assert.ok(requests.every((request) => request.headers.accept === ARROW));
  assert.equal(tableFromIPC(requests[0]!.bytes).numRows, 1);
  assert.equal(requests[2]!.url, '/v1/collections/docs/export?format=arrow&include_metadata=false');
});

it('a truncated or invalid Arrow stream is an error', async () => {
  const bytes = tableToIPC(TABLE, 'stream');
  const vectors = await start([
    { chunks: [bytes.subarray(0, bytes.length - 8)], isCut: true },
    { chunks: ['{"matches": []}'.repeat(10)] },
  ]);
  await assert.rejects(collect(joinBatches(vectors, { topK: 1 })), { code: 'network_error' });
  await assert.rejects(collect(joinBatches(vectors, { topK: 1 })), { code: 'unexpected_reply' });
});

it('leaving the loop aborts the request of a stalled server', async () => {
  const bytes = tableToIPC(TABLE, 'stream');
  const vectors = await start([{ chunks: [bytes.subarray(0, -8)], isStalled: true }]);
  for await (const batch of joinBatches(vectors, { topK: 1 })) {
    assert.equal(batch.numRows, 3);
    break;
  }
  await server!.idle();
});

const ARROW = 'application/vnd.apache.arrow.stream';

async function* asAsync<T>(items: Iterable<T>): AsyncGenerator<T> {
  yield* items;
}
