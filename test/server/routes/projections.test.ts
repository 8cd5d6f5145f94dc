// Projections over HTTP: both forms are equal; parameters; limits.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { tableFromIPC } from 'apache-arrow';
import { parquetReadObjects } from 'hyparquet';
import type { Database } from '../../../src/database/database.js';
import { batchOf, createRandom, openDatabase } from '../../database/harness.js';
import { createService, expectProblem, type Service } from '../harness.js';

const PROJECTION = '/collections/a/projection';

describe('a projection over HTTP', () => {
  let real: Database;
  let service: Service;
  beforeEach(async () => {
    real = await openDatabase({ limits: { segmentRowsMax: 64 } });
    const shape = {
      vectors: { '': { kind: 'dense', dimension: 6, metric: 'cosine' } },
      description: null,
      labels: {},
    } as const;
    await real.createCollection({ id: 'a', ...shape });
    const random = createRandom(8);
    const rows = Array.from({ length: 150 }, (_, i) => ({
      id: `"v${i}"`,
      values: Array.from({ length: 6 }, () => random() - 0.5),
      metadata: `{"n":${i}}`,
    }));
    await real.collection('a').write(batchOf(rows), { mode: 'upsert' });
    service = await createService({ database: real });
  });
  afterEach(async () => {
    await service.close();
    await real.close();
  });

  const send = (body: object, accept: string) =>
    service.app.inject({ method: 'POST', url: PROJECTION, headers: { accept }, payload: body });

  it('returns the same rows as NDJSON and as an Arrow stream', async () => {
    for (const body of [
      {},
      { dimensions: 3, neighbors: 4, sample: 40, seed: 2 },
      { filter: { n: { $lt: 0 } }, neighbors: 1 },
    ]) {
      const [lines, stream] = await Promise.all([
        send(body, 'application/x-ndjson'),
        send(body, 'application/vnd.apache.arrow.stream'),
      ]);
      assert.equal(lines.statusCode, 200, lines.body);
      assert.equal(stream.statusCode, 200, stream.body);
      const [head, ...rows] = lines.body
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      assert.equal(head.sequence, Number(lines.headers['sagitta-sequence']));
      const table = tableFromIPC(stream.rawPayload);
      assert.equal(table.numRows, head.row_count);
      assert.equal(rows.length, head.row_count);
      const { metadata } = table.schema;
      assert.deepEqual(JSON.parse(metadata.get('variance_ratios')!), head.variance_ratios);
      assert.equal(metadata.get('neighbor_metric'), head.neighbor_metric);
      assert.equal(metadata.get('sequence'), String(head.sequence));
      for (const [i, row] of rows.entries()) {
        const { id, ...lists } = table.get(i)!.toJSON();
        assert.equal(id, row.id);
        const { id: _, ...expected } = row;
        const found = Object.entries(lists).map(([name, list]) => [name, [...list]]);
        const rounded = Object.entries(expected).map(([name, list]) => [
          name,
          (list as number[]).map(Math.fround),
        ]);
        assert.deepEqual(found, rounded);
      }
    }
  });

  it('returns them as a Parquet file, with lists of neighbors', async () => {
    for (const body of [
      { neighbors: 0 },
      { dimensions: 3, neighbors: 4, sample: 40, seed: 2 },
      { filter: { n: { $lt: 0 } }, neighbors: 2 },
      { filter: { n: { $lt: 1 } }, neighbors: 2 },
    ]) {
      const [lines, file] = await Promise.all([
        send(body, 'application/x-ndjson'),
        send(body, 'application/vnd.apache.parquet'),
      ]);
      assert.equal(file.statusCode, 200, file.body);
      const rows = lines.body.trimEnd().split('\n').slice(1);
      const bytes = new Uint8Array(file.rawPayload);
      const found = await parquetReadObjects({ file: bytes.buffer });
      assert.equal(found.length, rows.length);
      for (const [i, line] of rows.entries()) {
        const row = JSON.parse(line) as Record<string, string | number[]>;
        const expected = Object.entries(row).map(([name, value]) => [
          name,
          typeof value === 'string' ? value : value.map(Math.fround),
        ]);
        assert.deepEqual(found[i], Object.fromEntries(expected));
      }
    }
  });

  it('says which member is wrong', async () => {
    const call = (body: object) => service.call('POST', PROJECTION, { body });
    await expectProblem(call({ dimensions: 1 }), 400, 'invalid_request', '/dimensions');
    await expectProblem(call({ dimensions: 65 }), 400, 'limit_exceeded', '/dimensions');
    await expectProblem(call({ sample: 0 }), 400, 'invalid_request', '/sample');
    await expectProblem(call({ sample: 200_001 }), 400, 'limit_exceeded', '/sample');
    await expectProblem(call({ neighbors: 31 }), 400, 'limit_exceeded', '/neighbors');
    await expectProblem(call({ using: 'title' }), 400, 'invalid_request', '/using');
    await expectProblem(
      call({ filter: { n: { $no: 1 } } }),
      400,
      'invalid_filter',
      '/filter/n/$no',
    );
    const missing = service.call('POST', '/collections/none/projection', { body: {} });
    await expectProblem(missing, 404, 'collection_not_found');
  });
});
