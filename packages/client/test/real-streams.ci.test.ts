// The client's streams against a real server, through a proxy that can break connections.

import assert from 'node:assert/strict';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { after, before, beforeEach, it } from 'node:test';
import {
  Field,
  FixedSizeList,
  Float32,
  Table,
  tableFromIPC,
  tableToIPC,
  vectorFromArray,
} from 'apache-arrow';
import { startTestServer, type TestServer } from '../../../test/support/server-in-process.js';
import {
  exportBatches,
  joinBatches,
  queryBatches,
  type VectorColumns,
  writeBatches,
} from '../src/arrow.js';
import {
  type Client,
  createClient,
  SagittaClientError,
  type StoredVector,
  type Vectors,
} from '../src/client.js';

let server: TestServer;
let proxy: Server;
let client: Client;
let vectors: Vectors;
let collectionCount = 0;
/** Request bytes after which the proxy breaks a connection; one entry per broken connection. */
let cutsAfterBytes: number[] = [];

before(async () => {
  server = await startTestServer();
  const port = Number(new URL(server.url).port);
  proxy = createServer((incoming) => forward(incoming, connect(port, '127.0.0.1')));
  await new Promise<void>((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve);
  });
  const { port: proxyPort } = proxy.address() as AddressInfo;
  client = createClient({ baseUrl: `http://127.0.0.1:${proxyPort}`, retry: { delayMsBase: 20 } });
});
after(async () => {
  proxy.close();
  await server.close();
});

beforeEach(async () => {
  const id = `s${collectionCount++}`;
  await client.collections.create({ id, dimension: 4, metric: 'dot' });
  vectors = client.collection(id);
  cutsAfterBytes = [];
});

function forward(incoming: Socket, outgoing: Socket): void {
  let byteCount = 0;
  incoming.on('data', (chunk: Buffer) => {
    byteCount += chunk.length;
    if (byteCount > (cutsAfterBytes[0] ?? Number.POSITIVE_INFINITY)) {
      cutsAfterBytes.shift();
      incoming.destroy();
      outgoing.destroy();
      return;
    }
    if (!outgoing.write(chunk)) incoming.pause();
  });
  outgoing.on('drain', () => incoming.resume());
  outgoing.pipe(incoming);
  incoming.on('end', () => outgoing.end());
  for (const [socket, other] of [
    [incoming, outgoing],
    [outgoing, incoming],
  ] as const) {
    socket.on('error', () => other.destroy());
    socket.on('close', () => other.destroy());
  }
}

function columnsOf(count: number): VectorColumns {
  return {
    ids: Array.from({ length: count }, (_, row) => `r${row}`),
    values: Float32Array.from({ length: 4 * count }, (_, at) => at),
    dimension: 4,
    metadata: Array.from({ length: count }, (_, row) => ({ row, even: row % 2 === 0 })),
  };
}

function* rowsOf(count: number) {
  for (let row = 0; row < count; row++) {
    yield { id: `r${row}`, values: new Float32Array([row, 1, 2, 3]), metadata: { row } };
  }
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function failureOf(work: Promise<unknown>): Promise<SagittaClientError> {
  const error: unknown = await work.then(
    () => assert.fail('expected a failure'),
    (found: unknown) => found,
  );
  assert.ok(error instanceof SagittaClientError, String(error));
  return error;
}

it('writes vectors as NDJSON and as Arrow and reads them back unchanged', async () => {
  const written = await vectors.writeAll(rowsOf(2_500));
  assert.deepEqual(
    [written.inserted_count, written.batch_count, written.resumed_count],
    [2_500, 3, 0],
  );
  const again = await writeBatches(vectors, columnsOf(3_000), { mode: 'upsert' });
  assert.deepEqual([again.updated_count, again.inserted_count], [2_500, 500]);

  const rows = await collect(vectors.exportAll({ filter: { row: { $gte: 2_998 } } }));
  assert.deepEqual(rows, [
    { id: 'r2998', values: [11_992, 11_993, 11_994, 11_995], metadata: { row: 2_998, even: true } },
    {
      id: 'r2999',
      values: [11_996, 11_997, 11_998, 11_999],
      metadata: { row: 2_999, even: false },
    },
  ] satisfies StoredVector[]);

  const { batches, sequence } = await exportBatches(vectors, { filter: { even: true } });
  assert.equal(sequence, again.sequence);
  const found = await collect(batches);
  assert.equal(
    found.reduce((sum, batch) => sum + batch.numRows, 0),
    1_500,
  );
  assert.equal(found[0]!.getChild('id')!.get(1), 'r2');
  assert.deepEqual([...found[0]!.getChild('values')!.get(1)], [8, 9, 10, 11]);
});

it('a broken stream resumes and writes no row twice', async () => {
  const { bytes } = await bytesOf(rowsOf(20_000));
  cutsAfterBytes = [bytes * 0.4, bytes * 0.7];
  const reply = await vectors.writeAll(() => rowsOf(20_000), { mode: 'insert' });
  assert.deepEqual(cutsAfterBytes, []);
  assert.equal(reply.inserted_count, 20_000);
  assert.ok(reply.resumed_count >= 1_000, `resumed ${reply.resumed_count}`);
  assert.equal(await vectors.count(), 20_000);
});

it('a source that is not a function is not resent, but the client asks which rows are durable', async () => {
  cutsAfterBytes = [500_000];
  const error = await failureOf(vectors.writeAll(rowsOf(20_000)));
  assert.equal(error.code, 'network_error');
  assert.equal(error.committedCount, await vectors.count());
  assert.ok(error.committedCount > 0 && error.committedCount < 20_000);
});

it('an invalid row in the middle of a stream is reported, with the rows before it durable', async () => {
  async function* faulty() {
    yield* rowsOf(2_345);
    yield { id: 'short', values: [1] };
    for (let at = 0; ; at++) {
      yield { id: `late${at}`, values: [1, 2, 3, 4] };
      if (at % 1_000 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  const error = await failureOf(vectors.writeAll(faulty));
  assert.equal(error.code, 'dimension_mismatch');
  assert.equal(error.items[0]?.pointer, '/rows/2345/values');
  assert.equal(error.committedCount, await vectors.count());
  assert.ok(error.committedCount! <= 2_345 && error.committedCount! >= 1_000);
  assert.equal(error.sequence, 2);
});

it('a join returns the neighbours of every row, as rows and as Arrow', async () => {
  await vectors.upsert([
    { id: 'a', values: [1, 0, 0, 0], metadata: { n: 1 } },
    { id: 'b', values: [0.9, 0.1, 0, 0], metadata: { n: 2 } },
    { id: 'c', values: [0, 0, 0, 1] },
  ]);
  const rows = await collect(
    vectors.join({ topK: 1, metric: 'cosine', scoreThreshold: 0.5, includeMetadata: true }),
  );
  assert.deepEqual(
    rows.map(({ id, matches }) => [id, matches.map((match) => [match.id, match.metadata])]),
    [
      ['a', [['b', { n: 2 }]]],
      ['b', [['a', { n: 1 }]]],
      ['c', []],
    ],
  );
  const batches = await collect(joinBatches(vectors, { topK: 2, excludeSelf: false }));
  const ids = batches.flatMap((batch) => [...batch.getChild('match_id')!]);
  assert.equal(ids.length, 6);
  const { sequence, withSequence, body } = await vectors.joinStream(
    { topK: 1 },
    { format: 'arrow' },
  );
  assert.deepEqual([sequence, withSequence], [1, 1]);
  assert.equal(tableFromIPC(await collect(body)).numRows, 3);
});

it('a projection returns the same as columns and as Arrow', async () => {
  await writeBatches(vectors, columnsOf(300));
  const request = { sample: 100, seed: 4, dimensions: 3, neighbors: 5, filter: { even: true } };
  const { ids, coordinates, neighbors, varianceRatios, sequence } = await vectors.project(request);
  assert.equal(varianceRatios.length, 3);
  const { starts, rows, distances } = neighbors!;
  const stream = await vectors.projectionStream(request, { format: 'arrow' });
  assert.equal(stream.sequence, sequence);
  const table = tableFromIPC(await collect(stream.body));
  assert.equal(table.numRows, 100);
  for (const [i, id] of ids.entries()) {
    const row = table.get(i)!;
    assert.equal(row.id, id);
    assert.deepEqual([...row.coordinates], [...coordinates.subarray(3 * i, 3 * i + 3)]);
    assert.deepEqual([...row.neighbors], [...rows.subarray(starts[i], starts[i + 1])]);
    assert.deepEqual([...row.distances], [...distances.subarray(starts[i], starts[i + 1])]);
  }
  const plain = await vectors.project({ sample: 1 });
  assert.deepEqual(
    [plain.ids.length, [...plain.coordinates], plain.neighbors],
    [1, [0, 0], undefined],
  );
});

it('batches of queries return the same matches as single queries, as JSON and as Arrow', async () => {
  const columns = columnsOf(2_000);
  await writeBatches(vectors, columns);
  const queries = Array.from({ length: 50 }, (_, at) => ({
    vector: columns.values.subarray(4 * at, 4 * at + 4),
    top_k: 3,
    filter: { even: true },
    include_values: 'float32' as const,
  }));
  const alone = await Promise.all(queries.map((query) => vectors.query(query)));
  const together = await vectors.queryBatch(queries);
  assert.deepEqual(
    together.map(({ matches }) => matches),
    alone.map(({ matches }) => matches),
  );
  assert.ok(together[0]!.matches[0]!.values instanceof Float32Array);
  await assert.rejects(vectors.queryBatch([...queries, { vector: [1] }]), {
    code: 'dimension_mismatch',
  });

  const source = { values: columns.values.subarray(0, 4 * 50), dimension: 4 };
  const options = { topK: 3, filter: { even: true }, includeMetadata: true };
  const batches = await collect(queryBatches(vectors, source, options));
  const ids = batches.flatMap((batch) => [...batch.getChild('id')!].map(String));
  const expected = alone.flatMap(({ matches }) => matches.map(({ id }) => id));
  assert.deepEqual(ids, expected);
  assert.match(String(batches[0]!.getChild('metadata')!.get(0)), /"even":true/);
  const some = { ...options, includeMetadata: ['even', 'no'] };
  const [part] = await collect(queryBatches(vectors, source, some));
  assert.equal(part!.getChild('metadata')!.get(0), '{"even":true}');
});

it('replies arrive before all queries have been sent', { timeout: 60_000 }, async () => {
  await writeBatches(vectors, columnsOf(100));
  const [batch] = tableFromIPC(queryBatchOf(100)).batches;
  let answeredCount = 0;
  let answer = () => {};
  async function* queries() {
    for (let at = 0; at < 20; at++) {
      // Each batch waits for the replies to the previous one.
      if (answeredCount < at * 200) {
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
      }
      yield batch!;
    }
  }
  for await (const answers of queryBatches(vectors, queries, { topK: 2 })) {
    answeredCount += answers.numRows;
    if (answeredCount % 200 === 0) answer();
  }
  assert.equal(answeredCount, 20 * 200);
});

it('recall measures the share of exact neighbours', async () => {
  await writeBatches(vectors, columnsOf(10));
  const { recall, recalls, k } = await vectors.recall({
    vectors: [new Float32Array([1, 1, 1, 1]), [-1, -1, -1, -1]],
    ids: [
      ['r9', 'r1'],
      ['r0', 'r1'],
    ],
    min_sequence: 1,
    filter: { row: { $gte: 0 } },
  });
  assert.deepEqual([recall, recalls, k], [0.75, [0.5, 1], 2]);
});

it('an export has typed columns of metadata on request', async () => {
  await writeBatches(vectors, columnsOf(100));
  const options = { includeValues: false, metadata: 'columns', filter: { even: true } } as const;
  const { batches } = await exportBatches(vectors, options);
  for await (const batch of batches) {
    const types = batch.schema.fields.map(({ name, type }) => `${name}: ${type}`);
    assert.deepEqual(types, ['id: Utf8', 'even: Bool', 'row: Int64']);
    assert.equal(batch.getChild('row')!.get(1), 2n);
  }
});

it('an export can be aborted without harm to the server', async () => {
  await writeBatches(vectors, columnsOf(30_000));
  for await (const { id } of vectors.exportAll()) if (id === 'r9') break;
  const controller = new AbortController();
  const { body } = await vectors.exportStream({ format: 'ndjson', signal: controller.signal });
  const reading = (async () => {
    for await (const _ of body) controller.abort(new Error('enough'));
  })();
  await assert.rejects(reading, { message: 'enough' });
  const parquet = await vectors.exportStream({ format: 'parquet', includeValues: false });
  const chunks = await collect(parquet.body);
  assert.equal(Buffer.concat(chunks).subarray(0, 4).toString(), 'PAR1');
  assert.equal(await vectors.count(), 30_000);
});

function queryBatchOf(count: number): Uint8Array {
  const values = Array.from({ length: count }, () => [1, 2, 3, 4]);
  const type = new FixedSizeList(4, new Field('item', new Float32()));
  const table = new Table({ vector: vectorFromArray(values, type) });
  return tableToIPC(table, 'stream');
}

it('named vectors are written and read in every form, and are patched, searched and joined', async () => {
  const shapes = { title: { dimension: 2, metric: 'dot' } } as const;
  await client.collections.create({ id: 'named', dimension: 1, metric: 'dot', vectors: shapes });
  const named = client.collection('named');
  await named.upsert([
    { id: 'a', values: [1], vectors: { title: new Float32Array([1, 2]) } },
    { id: 'b', values: [2], vectors: { title: [3, 4] } },
  ]);
  await named.writeAll([{ id: 'c', values: [3] }]);
  const { vectors: fetched } = await named.fetch(['a', 'b', 'c'], { include_values: 'float32' });
  assert.deepEqual(
    fetched.map((record) => record.vectors),
    [{ title: new Float32Array([1, 2]) }, { title: new Float32Array([3, 4]) }, {}],
  );
  await named.patch('c', { vectors: { title: new Float32Array([0, 9]) } });
  await named.patch('a', { vectors: { title: null } });
  assert.deepEqual((await named.get('c')).vectors, { title: [0, 9] });
  assert.deepEqual((await named.get('a')).vectors, {});
  const query = { vector: [0, 1], using: 'title', include_values: 'float32' } as const;
  const { matches } = await named.query(query);
  assert.deepEqual(
    matches.map(({ id, vectors: found }) => [id, found?.title]),
    [
      ['c', new Float32Array([0, 9])],
      ['b', new Float32Array([3, 4])],
    ],
  );
  const { recall } = await named.recall({ vectors: [[0, 1]], ids: [['c', 'a']], using: 'title' });
  assert.equal(recall, 0.5);
  const joined: string[][] = [];
  for await (const { id, matches: near } of named.join({
    using: 'title',
    withUsing: 'title',
    topK: 1,
  })) {
    joined.push([id, ...near.map((match) => match.id)]);
  }
  assert.deepEqual(joined.sort(), [
    ['b', 'c'],
    ['c', 'b'],
  ]);
});

async function bytesOf(rows: Iterable<{ values: Float32Array }>): Promise<{ bytes: number }> {
  let bytes = 0;
  for (const { values: _, ...row } of rows) bytes += JSON.stringify(row).length + 36;
  return { bytes };
}
