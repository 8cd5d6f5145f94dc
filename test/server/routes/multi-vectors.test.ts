// Streams and replies with multi-vectors of a real server: exports in NDJSON and Arrow equal what was written in
// either; and the client.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createClient } from '@sagitta/client';
import {
  Field,
  Float32,
  List,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';

type Vectors = readonly (readonly number[])[];

interface Row {
  readonly id: string;
  readonly vectors: { readonly tokens?: Vectors };
  readonly metadata: { readonly n: number };
}

const ROWS: readonly Row[] = Array.from({ length: 600 }, (_, n) => ({
  id: `v${n}`,
  vectors: n % 5 === 0 ? {} : { tokens: Array.from({ length: n % 5 }, (_, i) => [n, i + 0.5]) },
  metadata: { n },
}));
const SHAPES = { tokens: { dimension: 2, metric: 'dot', multi: true } } as const;
const NDJSON = 'application/x-ndjson';
const ARROW = 'application/vnd.apache.arrow.stream';

describe('multi-vectors in streams', () => {
  let server: TestServer;
  const call = (path: string, init: RequestInit = {}) => fetch(`${server.url}/v1${path}`, init);
  const write = (id: string, body: string | Uint8Array, type: string) =>
    call(`/collections/${id}/vectors`, { method: 'POST', body, headers: { 'content-type': type } });
  const exported = async (id: string, format: string) => {
    const reply = await call(`/collections/${id}/export?format=${format}`);
    assert.equal(reply.status, 200);
    return Buffer.from(await reply.arrayBuffer());
  };
  const rowsOf = async (id: string) =>
    (await exported(id, 'ndjson'))
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);

  before(async () => {
    server = await startTestServer({ SAGITTA_SEGMENT_ROWS_MAX: '256' });
    const { collections } = createClient({ baseUrl: server.url });
    for (const id of ['lines', 'again', 'lists']) await collections.create({ id, vectors: SHAPES });
    const lines = ROWS.map((row) => `${JSON.stringify(row)}\n`).join('');
    const written = await write('lines', lines, NDJSON);
    assert.equal(written.status, 200, await written.text());
  });
  after(() => server.close());

  it('are exported as they were written, and can be written again from Arrow', async () => {
    assert.deepEqual(await rowsOf('lines'), ROWS);
    const bytes = await exported('lines', 'arrow');
    const column = tableFromIPC(bytes).getChild('vectors.tokens')!;
    assert.equal(String(column.type), 'List<FixedSizeList[2]<Float32>>');
    const withoutTokens = ROWS.filter(({ vectors }) => vectors.tokens === undefined);
    assert.ok(withoutTokens.length > 0);
    assert.equal(column.nullCount, withoutTokens.length);
    const written = await write('again', bytes, ARROW);
    assert.equal(written.status, 200, await written.text());
    assert.deepEqual(await rowsOf('again'), ROWS);
  });

  it('of Arrow may be in lists of lists with nulls, and are refused with the row', async () => {
    const vectors = new List(
      new Field('item', new List(new Field('item', new Float32(), true)), true),
    );
    const tableOf = (rows: readonly (Vectors | null)[]) =>
      new Table({
        id: vectorFromArray(
          rows.map((_, i) => `v${i}`),
          new Utf8(),
        ),
        'vectors.tokens': vectorFromArray(rows, vectors),
      });
    const good = tableOf([
      [
        [1, 2],
        [3, 4],
      ],
      null,
      [],
      [[5, 6]],
    ]);
    const written = await write('lists', tableToIPC(good, 'stream'), ARROW);
    assert.equal(written.status, 200, await written.text());
    assert.deepEqual(await rowsOf('lists'), [
      {
        id: 'v0',
        vectors: {
          tokens: [
            [1, 2],
            [3, 4],
          ],
        },
        metadata: {},
      },
      { id: 'v1', vectors: {}, metadata: {} },
      { id: 'v2', vectors: {}, metadata: {} },
      { id: 'v3', vectors: { tokens: [[5, 6]] }, metadata: {} },
    ]);
    const bad = tableOf([[[1, 2]], [[1, 2], [3]]]);
    const refused = await write('lists', tableToIPC(bad, 'stream'), ARROW);
    const problem = (await refused.json()) as { errors: Record<string, unknown>[] };
    assert.equal(refused.status, 400);
    assert.equal(problem.errors[0]!.code, 'dimension_mismatch');
    assert.equal(problem.errors[0]!.pointer, '/rows/1/vectors/tokens');
  });

  it('go through the client, as numbers and as Float32Arrays, and are columns of Arrow replies', async () => {
    const client = createClient({ baseUrl: server.url });
    await client.collections.create({ id: 'pages', vectors: SHAPES });
    const pages = client.collection('pages');
    const tokens = [Float32Array.of(1, 0), Float32Array.of(0, 2)];
    await pages.upsert([{ id: 'a', vectors: { tokens } }, { id: 'b' }]);
    const request = { multi_vector: tokens, using: 'tokens', include_values: true } as const;
    const { matches } = await pages.query(request);
    assert.deepEqual(matches, [
      {
        id: 'a',
        score: 5,
        vectors: {
          tokens: [
            [1, 0],
            [0, 2],
          ],
        },
      },
    ]);
    const asFloats = await pages.query({ ...request, include_values: 'float32' });
    assert.deepEqual(asFloats.matches[0]!.vectors, { tokens });
    await pages.patch('a', { vectors: { tokens: [[3, 3]] } });
    const reply = await call('/collections/pages/query/batch', {
      method: 'POST',
      body: JSON.stringify({ queries: [{ ...request, multi_vector: [[1, 1]] }] }),
      headers: { 'content-type': 'application/json', accept: ARROW },
    });
    assert.equal(reply.status, 200);
    const table = tableFromIPC(Buffer.from(await reply.arrayBuffer()));
    const [list] = table.getChild('vectors.tokens')!;
    assert.deepEqual(
      [...(list as Iterable<Iterable<number>>)].map((vector) => [...vector]),
      [[3, 3]],
    );
  });
});
