// The route for streams of vectors: the same rules as for JSON, and correct counts of durable rows however the stream
// ends.

import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { createMemoryStore } from '../../../src/storage/memory-store.js';
import { expectProblem, type Reply } from '../harness.js';
import { metricOf } from '../wire.js';
import {
  arrowStream,
  createStreamService,
  linesOf,
  type Row,
  rowsOf,
  type StreamService,
} from './streams.js';

let service: StreamService;
afterEach(() => service.close());

type Format = 'NDJSON' | 'Arrow';
const bodyOf = (format: Format, batches: readonly (readonly Row[])[]) =>
  format === 'Arrow' ? arrowStream(batches) : batches.map(linesOf).join('');

/** The number of durable rows, as reported by the problem and as found. */
async function assertCommitted(reply: Reply, count: number): Promise<void> {
  assert.equal(reply.json.committed_count, count, reply.text);
  const { vectorCount, sequence } = service.database.collection('c').record();
  assert.equal(vectorCount, count);
  assert.equal(reply.json.sequence, count === 0 ? undefined : sequence);
}

for (const format of ['NDJSON', 'Arrow'] as const) {
  describe(`a stream of ${format}`, () => {
    it('writes its rows in order and reports the counts', async () => {
      service = await createStreamService();
      await service.send(linesOf(rowsOf(2)));
      const reply = await service.send(bodyOf(format, [rowsOf(1_000), rowsOf(3, 's')]));
      assert.equal(reply.status, 200, reply.text);
      assert.deepEqual(reply.json, {
        upserted_count: 1_003,
        inserted_count: 1_001,
        updated_count: 2,
        batch_count: 2,
        resumed_count: 0,
        sequence: 3,
      });
      const stored = await service.database
        .collection('c')
        .get('r7', { values: true, metadata: true });
      assert.deepEqual([[...stored.values!], stored.metadata], [[7, 1, 2], '{"n":7}']);
      const written = 'sagitta_stream_rows_total\\{direction="in"\\}';
      assert.equal(await metricOf(service, written), 1_005);
      assert.equal(await metricOf(service, 'sagitta_streams_in_flight'), 0);
    });

    it('is empty where there are no rows', async () => {
      service = await createStreamService();
      await service.send(linesOf(rowsOf(2)));
      const reply = await service.send(bodyOf(format, [[]]));
      assert.equal(reply.status, 200, reply.text);
      const { upserted_count, batch_count, sequence } = reply.json;
      assert.deepEqual([upserted_count, batch_count, sequence], [0, 0, 1]);
    });

    it('generates ids where there are none, and keeps metadata as it is spelled', async () => {
      service = await createStreamService();
      const metadata = '{"big": 12345678901234567890, "one":1.0}';
      const rows = [1, 2, 3].map((x) => ({ values: [x, 0, 0], metadata }));
      const reply = await service.send(bodyOf(format, [rows]));
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.json.ids, undefined);
      const ids = await service.ids();
      assert.equal(ids.length, 3);
      for (const id of ids) {
        assert.match(id, /^[0-9A-Z]{26}$/);
        const include = { values: false, metadata: true };
        const stored = await service.database.collection('c').get(id, include);
        assert.equal(stored.metadata, metadata);
      }
    });

    it('begins a new write where an id is repeated', async () => {
      service = await createStreamService();
      const row = (id: string, x: number) => ({ id, values: [x, 0, 0], metadata: `{"x":${x}}` });
      const rows = [row('a', 1), row('b', 2), row('a', 3), row('c', 4), row('c', 5), row('a', 6)];
      const reply = await service.send(bodyOf(format, [rows]));
      const { upserted_count, inserted_count, updated_count, batch_count } = reply.json;
      assert.deepEqual([upserted_count, inserted_count, updated_count, batch_count], [6, 3, 3, 3]);
      const include = { values: true, metadata: true };
      for (const [id, x] of [
        ['a', 6],
        ['b', 2],
        ['c', 5],
      ] as const) {
        const { values, metadata } = await service.database.collection('c').get(id, include);
        assert.deepEqual([values![0], metadata], [x, `{"x":${x}}`]);
      }
    });

    it('stops before the write with the first invalid row, and reports its location', async () => {
      service = await createStreamService();
      const bad = [...rowsOf(4, 'bad'), { id: 'x', values: [1, 2, 3], metadata: '[]' }];
      const body = bodyOf(format, [rowsOf(1_000), rowsOf(1_000, 's'), bad, rowsOf(9, 't')]);
      const reply = await expectProblem(
        service.send(body),
        400,
        'invalid_metadata',
        '/rows/2004/metadata',
      );
      await assertCommitted(reply, 2_000);
      if (format === 'Arrow') assert.match(reply.json.detail, /row 4 of record batch 2/);
    });

    it('observes the write mode, and names the rows that it rejects', async () => {
      service = await createStreamService();
      await service.send(linesOf([{ id: 's5', values: [1, 1, 1] }]));
      await service.database.collection('c').deleteVector('s5');
      await service.send(linesOf([{ id: 's5', values: [1, 1, 1] }]));
      const body = bodyOf(format, [rowsOf(1_000), rowsOf(9, 's')]);
      const reply = await expectProblem(
        service.send(body, { query: '?mode=insert' }),
        409,
        'vector_exists',
        '/rows/1005/id',
      );
      assert.match(reply.json.detail, /^Rows 1000 to 1008: /);
      assert.equal(reply.json.committed_count, 1_000);
      const missing = await expectProblem(
        service.send(bodyOf(format, [rowsOf(2), rowsOf(1, 'z')]), { query: '?mode=update' }),
        404,
        'vector_not_found',
      );
      assert.equal(missing.json.committed_count, format === 'Arrow' ? 2 : 0);
    });

    it('rejects the same ids, zero vectors and values as JSON', async () => {
      service = await createStreamService({ metric: 'cosine' });
      const cases: [Row, string, string][] = [
        [{ id: '', values: [1, 0, 0] }, 'invalid_request', 'id'],
        [{ id: 'a\nb', values: [1, 0, 0] }, 'invalid_request', 'id'],
        [{ id: '\u0085', values: [1, 0, 0] }, 'invalid_request', 'id'],
        [{ id: 'é'.repeat(257), values: [1, 0, 0] }, 'limit_exceeded', 'id'],
        [{ id: 'z', values: [0, 0, 0] }, 'invalid_vector', 'values'],
        [{ id: 'z', values: [0, -0, 1e-46] }, 'invalid_vector', 'values'],
        [{ id: 'z', values: [1, 0, 0], metadata: '{"$a":1}' }, 'invalid_metadata', 'metadata'],
        [
          { id: 'z', values: [1, 0, 0], metadata: `${'{"a":'.repeat(9)}1${'}'.repeat(9)}` },
          'invalid_metadata',
          'metadata',
        ],
        [
          { id: 'z', values: [1, 0, 0], metadata: `{"a":"${'x'.repeat(40_960)}"}` },
          'invalid_metadata',
          'metadata',
        ],
      ];
      for (const [row, code, member] of cases) {
        const reply = await expectProblem(
          service.send(bodyOf(format, [[row]])),
          400,
          code,
          `/rows/0/${member}`,
        );
        await assertCommitted(reply, 0);
      }
      assert.equal(
        (await service.send(bodyOf(format, [[{ id: 'é', values: [1, 0, 0] }]]))).status,
        200,
      );
    });

    it('resumes under its key where an earlier attempt was interrupted', async () => {
      service = await createStreamService();
      const whole = [rowsOf(1_000), rowsOf(1_000, 's'), rowsOf(5, 't')];
      const broken = bodyOf(format, [...whole.slice(0, 2), [{ ...rowsOf(1)[0]!, metadata: '1' }]]);
      const first = await expectProblem(
        service.send(broken, { key: 'k' }),
        400,
        'invalid_metadata',
      );
      await assertCommitted(first, 2_000);
      const body = bodyOf(format, whole);
      const second = await service.send(body, { key: 'k' });
      assert.deepEqual(second.json, {
        upserted_count: 2_005,
        inserted_count: 2_005,
        updated_count: 0,
        batch_count: 3,
        resumed_count: 2_000,
        sequence: 3,
      });
      assert.equal(second.headers['idempotent-replayed'], undefined);
      const third = await service.send(body, { key: 'k' });
      assert.deepEqual([third.text, third.headers['idempotent-replayed']], [second.text, 'true']);
      for (const other of [
        bodyOf(format, whole.slice(0, 2)),
        bodyOf(format, [...whole, whole[0]!]),
      ]) {
        const reused = await expectProblem(
          service.send(other, { key: 'k' }),
          422,
          'idempotency_key_reused',
        );
        assert.equal(reused.json.committed_count, undefined);
      }
      await expectProblem(
        service.send(body, { key: 'k', query: '?mode=insert' }),
        422,
        'idempotency_key_reused',
      );
      assert.equal(service.database.collection('c').record().sequence, 3);
    });

    it('reports the durable rows when the disk is full', async () => {
      let commitCount = 0;
      const store = createMemoryStore({
        beforeCommit: async (operations) => {
          if (operations.every(({ kind }) => kind !== 'append')) return;
          await new Promise((resolve) => setImmediate(resolve));
          if (++commitCount === 3) throw new Error('EIO');
        },
      });
      service = await createStreamService({ database: { store } });
      const batches = Array.from({ length: 100 }, (_, i) => rowsOf(1_000, `${i}-`));
      const reply = await expectProblem(service.send(bodyOf(format, batches)), 500, 'internal');
      const { committed_count } = reply.json;
      assert.ok(committed_count >= 2_000 && committed_count < 100_000, committed_count);
      await assertCommitted(reply, reply.json.committed_count);
    });

    it('ends when the collection is deleted, and writes nothing to its successor', async () => {
      let deleting: Promise<unknown> | undefined;
      const store = createMemoryStore({
        beforeCommit: async (operations) => {
          if (operations.every(({ kind }) => kind !== 'append')) return;
          deleting ??= service.database.collection('c').drop();
          await new Promise((resolve) => setImmediate(resolve));
        },
      });
      service = await createStreamService({ database: { store } });
      const batches = Array.from({ length: 100 }, (_, i) => rowsOf(1_000, `${i}-`));
      const reply = await expectProblem(
        service.send(bodyOf(format, batches)),
        404,
        'collection_not_found',
      );
      assert.ok(reply.json.committed_count > 0, reply.text);
      await deleting;
    });

    it('is refused where there is no collection', async () => {
      service = await createStreamService();
      const body = bodyOf(format, [rowsOf(1)]);
      const type =
        format === 'Arrow' ? 'application/vnd.apache.arrow.stream' : 'application/x-ndjson';
      await expectProblem(
        service.call('POST', '/v1/collections/none/vectors', {
          body,
          headers: { 'content-type': `${type}; charset=utf-8` },
        }),
        404,
        'collection_not_found',
      );
    });
  });
}

describe('a stream of lines', () => {
  it('reports the line that is not JSON, and every issue of its rows', async () => {
    service = await createStreamService();
    const lines = [
      '',
      '{"values":[1,2,3]}',
      '{"values":[1,2]}',
      '{',
      '[]',
      '{"values":[1,2,3],"x":1}',
    ];
    const reply = await service.send(lines.join('\r\n'));
    assert.equal(reply.status, 400);
    assert.deepEqual(
      reply.json.errors.map(({ pointer, code }: { pointer: string; code: string }) => [
        pointer,
        code,
      ]),
      [
        ['/rows/1/values', 'dimension_mismatch'],
        ['/rows/2', 'invalid_json'],
        ['/rows/3', 'invalid_request'],
        ['/rows/4/x', 'unknown_parameter'],
      ],
    );
    assert.match(reply.json.errors[1].detail, /^Line 4 is not valid JSON/);
    await assertCommitted(reply, 0);
  });

  it('rejects two values on one line, and invalid UTF-8', async () => {
    service = await createStreamService();
    const row = '{"values":[1,2,3]}';
    for (const line of [`${row},${row}`, `${row}]`, `${row}${row}`, '\u0000', 'null{']) {
      await expectProblem(service.send(`${line}\n`), 400, 'invalid_json', '/rows/0');
    }
    const bytes = Buffer.from('{"values":[1,2,3],"id":"\xff"}', 'latin1');
    const headers = { 'content-type': 'application/x-ndjson' };
    await expectProblem(service.send(bytes, { headers }), 400, 'invalid_json', '/rows/0');
    const deep = `{"values":${'['.repeat(2_000)}`;
    await expectProblem(service.send(deep), 400, 'invalid_json', '/rows/0');
    const many = `{"values":${'['.repeat(1_100_000)}`;
    await expectProblem(service.send(many), 400, 'limit_exceeded', '/rows/0');
    assert.deepEqual(await service.ids(), []);
  });

  it('accepts base64 values, with or without a final newline', async () => {
    service = await createStreamService();
    const base64 = Buffer.from(Float32Array.of(1, 2, 3).buffer).toString('base64');
    const body = `{"id":"a","values":"${base64}"}\n{"id":"b","values":[4,5,6]}`;
    assert.equal((await service.send(body)).json.upserted_count, 2);
    assert.deepEqual(await service.ids(), ['a', 'b']);
  });

  it('rejects Arrow parameters; JSON bodies reject stream parameters', async () => {
    service = await createStreamService();
    for (const name of ['id_column', 'vector_column']) {
      await expectProblem(
        service.send(linesOf(rowsOf(1)), { query: `?${name}=x` }),
        400,
        'unknown_parameter',
        `?${name}`,
      );
    }
    for (const name of ['mode=insert', 'id_column=x', 'vector_column=x']) {
      await expectProblem(
        service.call('POST', `/collections/c/vectors?${name}`, { body: { values: [1, 2, 3] } }),
        400,
        'unknown_parameter',
        `?${name.split('=')[0]}`,
      );
    }
    await expectProblem(
      service.send(linesOf(rowsOf(1)), { query: '?mode=replace' }),
      400,
      'invalid_request',
      '?mode',
    );
    for (const type of ['text/csv', 'application/vnd.apache.arrow.file']) {
      await expectProblem(
        service.send('x', { headers: { 'content-type': type } }),
        415,
        'unsupported_media_type',
      );
    }
    assert.deepEqual(await service.ids(), []);
  });
});
