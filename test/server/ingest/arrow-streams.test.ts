// Untrusted Arrow bodies over HTTP. The conversion of every type is tested in `formats/arrow`.

import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import {
  Field,
  Float32,
  List,
  RecordBatchStreamWriter,
  Table,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { expectProblem } from '../harness.js';
import { arrowStream, createStreamService, rowsOf, type StreamService } from './streams.js';

let service: StreamService;
afterEach(() => service.close());

/** Batches whose vectors may have any length, in columns of any name. */
function listStream(batches: readonly (readonly number[])[][], name = 'values'): Uint8Array {
  const list = new List(new Field('item', new Float32(), true));
  const writer = new RecordBatchStreamWriter();
  let row = 0;
  for (const vectors of batches) {
    const table = new Table({
      id: vectorFromArray(
        vectors.map(() => `r${row++}`),
        new Utf8(),
      ),
      [name]: vectorFromArray(
        vectors.map((vector) => [...vector]),
        list,
      ),
    });
    for (const batch of table.batches) writer.write(batch);
  }
  return writer.finish().toUint8Array(true);
}

const committed = async () => service.database.collection('c').record().vectorCount;

describe('an Arrow body', () => {
  it('with a wrong dimension in batch 300 keeps the 299 batches before it', async () => {
    service = await createStreamService();
    const batches = Array.from({ length: 320 }, (_, i) =>
      i === 299
        ? [
            [1, 2, 3],
            [1, 2],
          ]
        : [
            [i, 1, 2],
            [i, 2, 3],
          ],
    );
    const reply = await expectProblem(
      service.send(listStream(batches)),
      400,
      'dimension_mismatch',
      '/rows/599/values',
    );
    assert.equal(reply.json.committed_count, 598);
    assert.equal(await committed(), 598);
    const { values } = await service.database
      .collection('c')
      .get('r597', { values: true, metadata: false });
    assert.deepEqual([...values!], [298, 2, 3]);
    assert.match(reply.json.detail, /row 1 of record batch 299/);
  });

  it('that is truncated or inconsistent keeps the batches before the damage', async () => {
    service = await createStreamService();
    const whole = arrowStream([rowsOf(100), rowsOf(100, 's'), rowsOf(100, 't')]);
    const twoBatches = arrowStream([rowsOf(100), rowsOf(100, 's')]).length - 8;
    const cases: [string, Buffer, number][] = [
      ['half a batch', whole.subarray(0, twoBatches + 900), 200],
      ['half a length', whole.subarray(0, twoBatches + 3), 200],
      ['bytes behind the end', Buffer.concat([whole, Buffer.of(1)]), 300],
      [
        'noise in place of a batch',
        Buffer.concat([whole.subarray(0, twoBatches), noise(500)]),
        200,
      ],
      ['a length that lies', withLength(whole, twoBatches, 0x7fffffff), 200],
    ];
    for (const [what, body, count] of cases) {
      const reply = await expectProblem(service.send(body), 400, 'invalid_arrow');
      assert.equal(reply.json.committed_count, count, `${what}: ${reply.text}`);
      assert.equal(await committed(), count, what);
      await service.database.collection('c').delete({ kind: 'all' }, { dryRun: false });
    }
  });

  it('that is not Arrow is rejected', async () => {
    service = await createStreamService();
    const file = Buffer.concat([Buffer.from('ARROW1\0\0'), arrowStream([rowsOf(1)])]);
    for (const body of [Buffer.from('{"values":[1,2,3]}'), noise(5_000), file, Buffer.alloc(64)]) {
      const reply = await service.send(body);
      assert.equal(`${reply.status} ${reply.json.code}`, '400 invalid_arrow', reply.text);
      assert.equal(reply.json.committed_count, 0);
    }
    assert.equal(await committed(), 0);
  });

  it('with a batch that exceeds body_bytes_max is rejected', async () => {
    service = await createStreamService({ limits: { bodyBytesMax: 10_000 } });
    const reply = await expectProblem(
      service.send(arrowStream([rowsOf(10), rowsOf(1_000, 's')])),
      400,
      'invalid_arrow',
    );
    assert.match(reply.json.detail, /record batch 1: .*at most 10000/);
    assert.equal(await committed(), 10);
  });

  it('is written in batches of at most batch_rows_max rows', async () => {
    service = await createStreamService({ limits: { batchRowsMax: 10 } });
    const reply = await service.send(arrowStream([rowsOf(25), rowsOf(5, 's')]));
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual([reply.json.upserted_count, reply.json.batch_count], [30, 4]);
    assert.equal((await service.ids()).length, 30);
  });

  it('finds its vectors in the named column, or in one of the common names', async () => {
    service = await createStreamService();
    for (const name of ['vector', 'embedding']) {
      assert.equal((await service.send(listStream([[[1, 2, 3]]], name))).status, 200);
    }
    const odd = listStream([[[1, 2, 3]]], 'e5');
    const refused = await expectProblem(service.send(odd), 400, 'invalid_request');
    assert.match(refused.json.detail, /vector_column/);
    assert.equal((await service.send(odd, { query: '?vector_column=e5' })).status, 200);
    await expectProblem(service.send(odd, { query: '?vector_column=id' }), 400, 'invalid_request');
    await expectProblem(
      service.send(odd, { query: '?vector_column=e5&id_column=none' }),
      400,
      'invalid_request',
    );
  });

  it('with a key is a different stream if one byte differs', async () => {
    service = await createStreamService();
    const rows = rowsOf(100);
    const body = arrowStream([rows]);
    assert.equal((await service.send(body, { key: 'k' })).status, 200);
    for (const other of [
      arrowStream([[{ ...rows[0]!, values: [9, 9, 9] }, ...rows.slice(1)]]),
      arrowStream([[...rows.slice(0, 99), { ...rows[99]!, metadata: '{"n":98}' }]]),
      arrowStream([rows.slice(0, 50), rows.slice(50)]),
      arrowStream([rows.map(({ id, values }) => ({ id: id!, values }))]),
    ]) {
      await expectProblem(service.send(other, { key: 'k' }), 422, 'idempotency_key_reused');
    }
    assert.equal((await service.send(body, { key: 'k' })).headers['idempotent-replayed'], 'true');
  });
});

function noise(byteCount: number): Buffer {
  return Buffer.from(Array.from({ length: byteCount }, (_, i) => (i * 2_654_435_761) >>> 13));
}

/** Overwrites the metadata length of the message at byte `at`. */
function withLength(stream: Buffer, at: number, length: number): Buffer {
  const copy = Buffer.from(stream);
  copy.writeUInt32LE(length, at + 4);
  return copy;
}
